/* test_plan.c - ranks, blocks, servers, shares (src/common/plan.h). No MPI. */
#include "common/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/config_text.h"

static coh_config *config;
static coh_err err;
static const coh_model some = { .parameters = 100000 };
static const coh_model few = { .parameters = 11 };

static void setup(void)
{
    config = config_of(DATA MODEL);
    err = COH_ERR_INIT;
}

static void teardown(void)
{
    coh_config_destroy(&config);
}

static coh_plan plan_of(int groups, int group_size, int servers, int ranks,
                        int64_t parameters)
{
    const coh_model model = { .parameters = parameters };
    coh_plan plan;

    config->groups = groups;
    config->group_size = group_size;
    config->servers = servers;
    const coh_status status = coh_plan_make(config, &model, ranks, &plan, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    return plan;
}

/* groups, group_size as configured and as resolved, servers, ranks. */
static const struct {
    int groups, configured, size, servers, ranks;
} layouts[] = {
    { 1, 0, 1, 0, 1 },        { 1, 0, 7, 0, 7 }, { 1, 4, 4, 0, 4 },
    { 2, 0, 1, 1, 3 },        { 2, 0, 3, 2, 8 }, { 3, 5, 5, 4, 19 },
    { 9, 1, 1, 6, 15 },       { 2, 2, 2, 1, 0 }, { 5, 0, 1, 2, 0 },
    { 9, 0, 1064, 14, 9590 },
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

START_TEST(every_rank_has_one_role)
{
    const int groups = layouts[_i].groups, servers = layouts[_i].servers;
    const int size = layouts[_i].size;
    const coh_plan plan = plan_of(groups, layouts[_i].configured, servers,
                                  layouts[_i].ranks, 100000);
    int worker = 0, server = 0;

    ck_assert_int_eq(plan.group_size, size);
    ck_assert_int_eq(coh_plan_ranks(&plan), groups * size + servers);
    for (int rank = 0; rank < groups * size + servers; rank++) {
        const coh_role role = coh_plan_role(&plan, rank);
        if (role.is_server) {
            ck_assert_int_eq(role.server, server++);
            ck_assert_int_eq(role.group, -1);
            ck_assert_int_eq(role.member, -1);
            ck_assert_int_eq(coh_plan_server_rank(&plan, role.server), rank);
            continue;
        }
        ck_assert_int_eq(role.group, worker / size);
        ck_assert_int_eq(role.member, worker % size);
        ck_assert_int_eq(role.server, -1);
        ck_assert_int_eq(coh_plan_worker_rank(&plan, role.group, role.member),
                         rank);
        if (role.member == 0)
            ck_assert_int_eq(coh_plan_root_rank(&plan, role.group), rank);
        worker++;
    }
    ck_assert_int_eq(worker, groups * size);
    ck_assert_int_eq(server, servers);
    ck_assert(!coh_plan_role(&plan, 0).is_server);
}
END_TEST

/* Ranks on nodes as launchers put them: node after node, as many on each. */
START_TEST(servers_are_spread_over_the_nodes)
{
    enum { NODES_MAX = 40 };

    for (int servers = 1; servers <= 12; servers++) {
        const int workers = 1 + _i;
        const coh_plan plan = plan_of(1, workers, servers, 0, 100000);
        const int ranks = coh_plan_ranks(&plan);
        for (int nodes = 1; nodes <= NODES_MAX && nodes <= ranks; nodes++) {
            int on[NODES_MAX] = { 0 }, most = 0;
            if (ranks % nodes != 0)
                continue;
            for (int s = 0; s < servers; s++) {
                const int node =
                    coh_plan_server_rank(&plan, s) / (ranks / nodes);
                on[node]++;
                most = on[node] > most ? on[node] : most;
            }
            ck_assert_msg(most <= (servers + nodes - 1) / nodes,
                          "%d servers of %d ranks on one of %d nodes", most,
                          ranks, nodes);
        }
    }
}
END_TEST

static const struct {
    int groups, size, servers, ranks;
    const char *sum, *launch;
} misfits[] = {
    { 2, 4, 2, 9, "servers 2 + groups 2 x group_size 4 = 10 ranks, but 9 were",
      "-n 10" },
    { 2, 4, 2, 11, "= 10 ranks, but 11 were", "-n 10" },
    { 2, 4, 2, 1, "= 10 ranks, but 1 was", "mpiexec of another MPI" },
    { 1, 3, 0, 1, "servers 0 + groups 1 x group_size 3 = 3 ranks", "-n 3" },
    { 2, 0, 1, 4, "servers 1 + groups 2 x group_size 1 = 3 ranks, but 4",
      "-n 3" },
    { 3, 0, 2, 2, "servers 2 + groups 3 x group_size 1 = 5 ranks, but 2",
      "-n 5" },
    { 4, 0, 5, 3, "= 9 ranks, but 3 were", "-n 9" },
};
enum { MISFITS = sizeof misfits / sizeof misfits[0] };

START_TEST(a_wrong_number_of_ranks_is_refused_with_the_sum)
{
    coh_plan plan = { .groups = -1 };

    config->groups = misfits[_i].groups;
    config->group_size = misfits[_i].size;
    config->servers = misfits[_i].servers;
    const coh_status status =
        coh_plan_make(config, &some, misfits[_i].ranks, &plan, &err);
    ck_assert_int_eq(status, COH_E_LAUNCH);
    ck_assert_int_eq(coh_status_exit_code(status), 4);
    must_say(&err, misfits[_i].sum);
    must_say(&err, misfits[_i].launch);
    ck_assert_int_eq(plan.groups, -1); /* untouched */
}
END_TEST

START_TEST(more_ranks_than_an_int_can_count_are_refused)
{
    coh_plan plan;

    config->groups = config->group_size = 1000000;
    ck_assert_int_eq(coh_plan_make(config, &some, 0, &plan, &err),
                     COH_E_LAUNCH);
}
END_TEST

START_TEST(more_servers_than_parameters_are_refused)
{
    coh_plan plan;

    config->servers = 12;
    ck_assert_int_eq(coh_plan_make(config, &few, 0, &plan, &err), COH_E_LAUNCH);
    must_say(&err, "servers: 12 for a model of 11 parameters");
}
END_TEST

static const int64_t sizes[] = { 1,        2,         15,         16,
                                 17,       100,       161,        1000,
                                 7850,     16400,     262144,     262145,
                                 594178,   1048576,   999983,     4493442,
                                 79201498, 300000001, 5000000000, 70000000000 };
enum { SIZES = sizeof sizes / sizeof sizes[0] };
static const int server_counts[] = { 0, 1, 2, 3, 6, 7, 14, 16, 33, 64, 100 };
enum { SERVER_COUNTS = sizeof server_counts / sizeof server_counts[0] };

/* Blocks follow each other without gap; each belongs to one server, under the
 * number that the server gives it. */
static void check_cover(const coh_plan *plan)
{
    int64_t next = 0, wrong = 0;

    for (int64_t b = 0; b < plan->nblocks; b++) {
        const coh_range range = coh_plan_block(plan, b);
        wrong += range.first != next || range.count <= 0 ||
                 range.count > plan->block_count;
        next += range.count;
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(next, plan->parameters);
}

static void check_owners(const coh_plan *plan)
{
    const int first = plan->servers > 0 ? 0 : -1;
    const int last = plan->servers > 0 ? plan->servers - 1 : -1;
    int64_t blocks = 0, parameters = 0, wrong = 0;

    for (int s = first; s <= last; s++) {
        const int64_t owned = coh_plan_owned(plan, s);
        int64_t sum = 0;
        for (int64_t i = 0; i < owned; i++) {
            const int64_t b = coh_plan_owned_block(plan, s, i);
            wrong += s >= 0 && coh_plan_owner(plan, b) != s;
            wrong += coh_plan_owned_index(plan, s, b) != i;
            sum += coh_plan_block(plan, b).count;
        }
        ck_assert_int_eq(coh_plan_owned_parameters(plan, s), sum);
        blocks += owned;
        parameters += sum;
    }
    ck_assert_int_eq(wrong, 0);
    ck_assert_int_eq(blocks, plan->nblocks);
    ck_assert_int_eq(parameters, plan->parameters);
}

START_TEST(blocks_and_owners_cover_the_vector_once)
{
    for (int i = 0; i < SERVER_COUNTS; i++) {
        if (sizes[_i] < server_counts[i])
            continue;
        const coh_plan plan = plan_of(1, 1, server_counts[i], 0, sizes[_i]);
        check_cover(&plan);
        check_owners(&plan);
    }
}
END_TEST

START_TEST(no_block_is_larger_than_the_option)
{
    const int64_t options[] = { 65536, 65540, 100000, 1048576, 1073741824 };

    for (int k = 0; k < 5; k++) {
        config->exchange.block = options[k];
        for (int i = 0; i < SERVER_COUNTS; i++) {
            if (sizes[_i] < server_counts[i])
                continue;
            const coh_plan plan = plan_of(1, 1, server_counts[i], 0, sizes[_i]);
            ck_assert_int_le(plan.block_count * 4, options[k]);
        }
    }
}
END_TEST

/* Whatever the layers are: at most a tenth, or one parameter, over the mean. */
START_TEST(the_fullest_server_holds_at_most_a_tenth_over_the_mean)
{
    for (int i = 1; i < SERVER_COUNTS; i++) {
        const int servers = server_counts[i];
        if (sizes[_i] < servers)
            continue;
        const coh_plan plan = plan_of(1, 1, servers, 0, sizes[_i]);
        const double mean = (double)sizes[_i] / servers;
        for (int s = 0; s < servers; s++)
            ck_assert_double_le((double)coh_plan_owned_parameters(&plan, s),
                                mean * 1.1 > mean + 1 ? mean * 1.1 : mean + 1);
    }
}
END_TEST

/* A block that is pushed by cache lines starts at one. */
START_TEST(blocks_of_a_large_model_start_at_cache_lines)
{
    const coh_plan plan = plan_of(1, 1, 3, 0, 594178);

    for (int64_t b = 0; b < plan.nblocks; b++)
        ck_assert_int_eq(coh_plan_block(&plan, b).first % 16, 0);
}
END_TEST

/* --- Placement by layers -------------------------------------------------- */

/* Layers with so many parameters; 0 ends. */
enum { LAYERS_MAX = 12 };
static const int64_t nets[][LAYERS_MAX] = {
    { 1 },
    { 160, 4640, 128, 202000 },
    { 3584, 147584, 147584, 147584, 147584, 258 },
    { 5, 4, 3, 3, 3 },
    { 1000000, 1, 1000000, 7, 400000, 300000, 300000 },
    { 16384, 16385, 32768, 32769, 262144, 262145 },
};
enum { NETS = sizeof nets / sizeof nets[0] };

/* Layers without parameters stand between those with. */
static coh_model model_of(const int64_t *counts, coh_layer *layers)
{
    coh_model model = { .layers = layers };

    memset(layers, 0, 2 * LAYERS_MAX * sizeof *layers);
    for (int i = 0; i < LAYERS_MAX && counts[i] > 0; i++) {
        coh_layer *layer = &layers[2 * i];
        snprintf(layer->spec.name, sizeof layer->spec.name, "layer%d", i);
        layer->weight_first = model.parameters;
        layer->weight_count = counts[i] - counts[i] / 4;
        layer->bias_count = counts[i] / 4;
        model.parameters += counts[i];
        model.nlayers += 2;
    }
    return model;
}

static coh_status plan_layers(int net, int servers, coh_plan *out)
{
    coh_layer layers[2 * LAYERS_MAX];
    const coh_model model = model_of(nets[net], layers);

    config->servers = servers;
    config->exchange.placement = COH_PLACEMENT_LAYER;
    return coh_plan_make(config, &model, 0, out, &err);
}

static int layers_in(int net)
{
    int count = 0;

    while (count < LAYERS_MAX && nets[net][count] > 0)
        count++;
    return count;
}

/* No block reaches over a layer's end, and a layer has one owner. */
static void check_layers(const coh_plan *plan, int net)
{
    int64_t b = 0, end = 0;

    for (int l = 0; l < layers_in(net); l++) {
        const int owner = plan->servers > 0 ? coh_plan_owner(plan, b) : 0;
        end += nets[net][l];
        for (int64_t at = end - nets[net][l]; at < end; b++) {
            const coh_range range = coh_plan_block(plan, b);
            ck_assert_int_eq(range.first, at);
            ck_assert_int_le(range.count * 4, config->exchange.block);
            if (plan->servers > 0)
                ck_assert_int_eq(coh_plan_owner(plan, b), owner);
            at += range.count;
            ck_assert_int_le(at, end);
        }
    }
    ck_assert_int_eq(b, plan->nblocks);
}

START_TEST(blocks_end_with_layers_and_a_layer_has_one_owner)
{
    const int64_t options[] = { 65536, 1048576 };

    for (int k = 0; k < 2; k++)
        for (int servers = 0; servers <= layers_in(_i); servers++) {
            coh_plan plan;
            config->exchange.block = options[k];
            ck_assert_int_eq(plan_layers(_i, servers, &plan), COH_OK);
            check_cover(&plan);
            check_owners(&plan);
            check_layers(&plan, _i);
            coh_plan_fini(&plan);
        }
}
END_TEST

START_TEST(a_layer_that_fits_is_one_block)
{
    coh_plan plan;
    config->exchange.block = 262144 * 4;

    ck_assert_int_eq(plan_layers(5, 2, &plan), COH_OK);
    ck_assert_int_eq(plan.nblocks, 7); /* the last is one too large */
    ck_assert_int_eq(plan.block_count, 262144);
    coh_plan_fini(&plan);
}
END_TEST

/* 5, 4, 3, 3, 3 over two: greedy gives 5 + 3 and 4 + 3 + 3. */
START_TEST(the_largest_layer_goes_first_to_the_emptiest_server)
{
    const int owners[] = { 0, 1, 1, 0, 1 };
    coh_plan plan;

    ck_assert_int_eq(plan_layers(3, 2, &plan), COH_OK);
    for (int b = 0; b < 5; b++)
        ck_assert_int_eq(coh_plan_owner(&plan, b), owners[b]);
    ck_assert_int_eq(coh_plan_owned_parameters(&plan, 0), 8);
    ck_assert_int_eq(coh_plan_owned_parameters(&plan, 1), 10);
    ck_assert_int_eq(coh_plan_fullest(&plan), 10);
    coh_plan_fini(&plan);
}
END_TEST

START_TEST(with_as_many_servers_as_layers_each_has_one)
{
    coh_plan plan;

    ck_assert_int_eq(plan_layers(2, 6, &plan), COH_OK);
    for (int s = 0; s < 6; s++)
        ck_assert_int_eq(coh_plan_owned(&plan, s), 1);
    coh_plan_fini(&plan);
}
END_TEST

START_TEST(more_servers_than_layers_are_refused)
{
    coh_plan plan = { .groups = -1 };

    ck_assert_int_eq(plan_layers(2, 7, &plan), COH_E_LAUNCH);
    must_say(&err, "servers: 7 for a model of 6 layers with parameters: use "
                   "fewer, or exchange.placement: balanced");
    ck_assert_int_eq(plan.groups, -1); /* untouched */
}
END_TEST

START_TEST(a_rule_that_takes_layers_needs_each_in_one_block)
{
    coh_plan plan;

    config->optimizer.rule = COH_RULE_LARS;
    config->exchange.block = 590336; /* 4 x 147584 */
    ck_assert_int_eq(plan_layers(2, 2, &plan), COH_OK);
    ck_assert_int_eq(plan.nblocks, 6);
    coh_plan_fini(&plan);
    config->exchange.block = 590335;
    ck_assert_int_eq(plan_layers(2, 2, &plan), COH_E_CONFIG);
    must_say(&err, "exchange.block: 590335, but optimizer.rule needs each "
                   "layer in one block, and layer1 has 590336 bytes of "
                   "parameters: write exchange.block: 590336, or another");
    config->optimizer.rule = COH_RULE_ADAMW;
    ck_assert_int_eq(plan_layers(2, 2, &plan), COH_OK);
    coh_plan_fini(&plan);
}
END_TEST

/* 3 x 2^31 parameters are three times what an int counts, and 12 times in
 * bytes; every number of a block is beyond it in the second layer. */
START_TEST(a_layer_beyond_what_an_int_counts_is_cut_and_placed)
{
    const int64_t large = 3 * ((int64_t)1 << 31), counts[3] = { large, large };
    coh_layer layers[2 * LAYERS_MAX];
    const coh_model model = model_of(counts, layers);
    coh_plan plan;

    config->servers = _i;
    config->exchange.placement = COH_PLACEMENT_LAYER;
    ck_assert_int_eq(coh_plan_make(config, &model, 0, &plan, &err), COH_OK);
    check_cover(&plan);
    check_owners(&plan);
    ck_assert_int_eq(plan.nblocks, 2 * large / 262144);
    if (_i > 0)
        ck_assert_int_eq(coh_plan_fullest(&plan), 2 * large / _i);
    coh_plan_fini(&plan);
}
END_TEST

/* A block, and so a message, is at most 1 GiB: no count of MPI outgrows an int.
 */
START_TEST(no_rule_makes_a_block_that_a_message_cannot_hold)
{
    const int64_t counts[2] = { (int64_t)1 << 29 };
    coh_layer layers[2 * LAYERS_MAX];
    const coh_model model = model_of(counts, layers);
    coh_plan plan;

    config->optimizer.rule = COH_RULE_LAMB;
    config->exchange.placement = COH_PLACEMENT_LAYER;
    config->exchange.block = COH_BLOCK_BYTES_MAX;
    ck_assert_int_eq(coh_plan_make(config, &model, 0, &plan, &err),
                     COH_E_CONFIG);
    must_say(&err, "layer0 has 2147483648 bytes of parameters, more than the "
                   "largest block: use another rule");
}
END_TEST

/* --- Samples -------------------------------------------------------------- */

/* batch, group_batch, group_size, accumulate. */
static const int64_t batches[][4] = {
    { 8, 0, 4, 1 },     { 1, 0, 1, 1 },  { 32, 1000, 3, 1 }, { 32, 7, 8, 1 },
    { 32, 64, 4, 1 },   { 5, 1, 3, 1 },  { 8, 0, 4, 3 },     { 1, 0, 1, 7 },
    { 32, 1000, 3, 4 }, { 32, 7, 8, 2 }, { 32, 64, 4, 5 },   { 5, 13, 3, 2 },
};
enum { BATCHES = sizeof batches / sizeof batches[0] };

/* 0: all members; never more than there are, nor than blocks. */
START_TEST(speakers_take_turns_and_are_members)
{
    static const struct {
        int size, wanted, speakers;
        int64_t parameters;
    } cases[] = {
        { 4, 0, 4, 10000000 }, { 4, 1, 1, 10000000 }, { 4, 3, 3, 10000000 },
        { 2, 9, 2, 10000000 }, { 4, 0, 1, 1000 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        config->exchange.speakers = cases[i].wanted;
        const coh_plan plan =
            plan_of(2, cases[i].size, 1, 0, cases[i].parameters);
        ck_assert_int_eq(plan.speakers, cases[i].speakers);
        for (int64_t b = 0; b < plan.nblocks; b++) {
            const int speaker = coh_plan_speaker(&plan, b);
            ck_assert_int_eq(speaker, (int)(b % plan.speakers));
            const coh_role role =
                coh_plan_role(&plan, coh_plan_speaker_rank(&plan, 1, speaker));
            ck_assert(role.group == 1 && role.member == speaker);
        }
    }
}
END_TEST

static coh_plan plan_of_batches(const int64_t of[4])
{
    config->train.batch = of[0];
    config->train.group_batch = of[1];
    config->train.accumulate = of[3];
    return plan_of(1, (int)of[2], 0, 0, 1000);
}

/* Each block has one owner, its speaker; members beyond own nothing. */
START_TEST(members_share_out_the_update)
{
    static const struct {
        int size, speakers, owners;
        int64_t parameters;
    } cases[] = {
        { 4, 0, 4, 10000000 }, { 4, 1, 1, 10000000 }, { 4, 3, 3, 10000000 },
        { 2, 9, 2, 10000000 }, { 4, 0, 3, 3 },        { 1, 0, 0, 10000000 },
    };

    config->exchange.update = COH_UPDATE_OWNERS;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        config->exchange.speakers = cases[i].speakers;
        const coh_plan plan =
            plan_of(1, cases[i].size, 0, 0, cases[i].parameters);
        int64_t sum = 0;
        ck_assert_int_eq(plan.owners, cases[i].owners);
        ck_assert(coh_plan_shares_update(&plan) == (plan.owners > 0));
        ck_assert_int_eq(coh_plan_parts(&plan),
                         plan.owners > 0 ? plan.owners : 1);
        for (int m = 0; m < cases[i].size; m++) {
            const int owner = coh_plan_member_owner(&plan, m);
            ck_assert_int_eq(owner, m < plan.owners ? m : -1);
            sum += owner < 0 ? 0 : coh_plan_owned_parameters(&plan, owner);
        }
        ck_assert_int_eq(sum, plan.owners > 0 ? cases[i].parameters : 0);
        for (int64_t b = 0; b < plan.nblocks && plan.owners > 0; b++)
            ck_assert_int_eq(coh_plan_speaker(&plan, b),
                             coh_plan_owner(&plan, b));
    }
}
END_TEST

START_TEST(members_share_the_samples_of_a_step)
{
    const int64_t *of = batches[_i];
    const coh_plan plan = plan_of_batches(of);

    ck_assert_int_eq(plan.step_samples,
                     of[1] > 0 ? of[1] : of[0] * of[2] * of[3]);
    for (int64_t samples = 0; samples <= plan.step_samples; samples++) {
        int64_t next = 0;
        for (int m = 0; m < of[2]; m++) {
            const coh_range share = coh_plan_share(&plan, m, samples);
            ck_assert_int_eq(share.first, next);
            ck_assert_int_ge(share.count, 0);
            ck_assert_int_le(share.count, plan.share);
            next += share.count;
        }
        ck_assert_int_eq(next, samples);
    }
}
END_TEST

START_TEST(a_share_is_calculated_in_batches)
{
    const coh_plan plan = plan_of_batches(batches[_i]);

    for (int64_t samples = 0; samples <= plan.share; samples++) {
        const int64_t count = coh_plan_batches(&plan, samples);
        int64_t next = 0;
        ck_assert_int_ge(count, 1);
        ck_assert_int_le(count, batches[_i][3]);
        for (int64_t i = 0; i < count; i++) {
            const coh_range batch = coh_plan_batch(&plan, samples, i);
            ck_assert_int_eq(batch.first, next);
            ck_assert_int_ge(batch.count, samples > 0);
            ck_assert_int_le(batch.count, plan.batch);
            next += batch.count;
        }
        ck_assert_int_eq(next, samples);
    }
}
END_TEST

START_TEST(the_least_batch_is_the_smallest_that_is_not_empty)
{
    const coh_plan plan = plan_of_batches(batches[_i]);
    int64_t least = plan.step_samples;

    for (int m = 0; m < batches[_i][2]; m++) {
        const int64_t share = coh_plan_share(&plan, m, plan.step_samples).count;
        for (int64_t i = 0; i < coh_plan_batches(&plan, share); i++) {
            const int64_t count = coh_plan_batch(&plan, share, i).count;
            if (count > 0 && count < least)
                least = count;
        }
    }
    ck_assert_int_eq(coh_plan_least_batch(&plan), least);
}
END_TEST

static Suite *plan_suite(void)
{
    Suite *suite = suite_create("plan");

    TCase *ranks = tcase_create("ranks");
    tcase_add_checked_fixture(ranks, setup, teardown);
    tcase_add_loop_test(ranks, every_rank_has_one_role, 0, LAYOUTS);
    tcase_add_loop_test(ranks, a_wrong_number_of_ranks_is_refused_with_the_sum,
                        0, MISFITS);
    tcase_add_test(ranks, more_ranks_than_an_int_can_count_are_refused);
    tcase_add_loop_test(ranks, servers_are_spread_over_the_nodes, 0, 60);
    tcase_add_test(ranks, more_servers_than_parameters_are_refused);
    suite_add_tcase(suite, ranks);

    TCase *blocks = tcase_create("blocks");
    tcase_add_checked_fixture(blocks, setup, teardown);
    tcase_add_loop_test(blocks, blocks_and_owners_cover_the_vector_once, 0,
                        SIZES);
    tcase_add_loop_test(blocks, no_block_is_larger_than_the_option, 0, SIZES);
    tcase_add_loop_test(blocks,
                        the_fullest_server_holds_at_most_a_tenth_over_the_mean,
                        0, SIZES);
    tcase_add_test(blocks, blocks_of_a_large_model_start_at_cache_lines);
    tcase_add_test(blocks, speakers_take_turns_and_are_members);
    tcase_add_test(blocks, members_share_out_the_update);
    suite_add_tcase(suite, blocks);

    TCase *layers = tcase_create("layers");
    tcase_add_checked_fixture(layers, setup, teardown);
    tcase_add_loop_test(
        layers, blocks_end_with_layers_and_a_layer_has_one_owner, 0, NETS);
    tcase_add_test(layers, a_layer_that_fits_is_one_block);
    tcase_add_test(layers, the_largest_layer_goes_first_to_the_emptiest_server);
    tcase_add_test(layers, with_as_many_servers_as_layers_each_has_one);
    tcase_add_test(layers, more_servers_than_layers_are_refused);
    tcase_add_test(layers, a_rule_that_takes_layers_needs_each_in_one_block);
    tcase_add_loop_test(
        layers, a_layer_beyond_what_an_int_counts_is_cut_and_placed, 0, 3);
    tcase_add_test(layers, no_rule_makes_a_block_that_a_message_cannot_hold);
    suite_add_tcase(suite, layers);

    TCase *shares = tcase_create("shares");
    tcase_add_checked_fixture(shares, setup, teardown);
    tcase_add_loop_test(shares, members_share_the_samples_of_a_step, 0,
                        BATCHES);
    tcase_add_loop_test(
        shares, the_least_batch_is_the_smallest_that_is_not_empty, 0, BATCHES);
    tcase_add_loop_test(shares, a_share_is_calculated_in_batches, 0, BATCHES);
    suite_add_tcase(suite, shares);
    return suite;
}

CHECK_MAIN(plan_suite)
