/* test_local.c - steps on a group's own weights, and what is sent of them
 * (src/worker/local.h), together with what servers do with it. No MPI.
 *
 * Groups descend quadratics, each to a minimum of its own, in all ways against a
 * plain loop in double precision.
 */
#include "worker/local.h"

#include <string.h>

#include "common/optim/shard.h"
#include "server/gather.h"
#include "support/config_text.h"

enum { N = 67, BLOCK = 16, NBLOCKS = 5, GROUPS = 2, STEPS = 24 };
static const double tolerance = 1e-5;
static const float rate = 0.1f;
static const coh_statistics none;
static coh_err err;

static const coh_plan plan = { .groups = GROUPS,
                               .group_size = 1,
                               .servers = 1,
                               .owners = 1,
                               .parameters = N,
                               .nblocks = NBLOCKS,
                               .block_count = BLOCK };

/* A group with its rule, and its twin in double precision. */
typedef struct group {
    coh_shard *shard;
    coh_local *local;
    float gradient[N];
    bool must_arrive;
    double x[N], v[N];
} group;

static coh_config *config;
static coh_shard *centre;
static group groups[GROUPS];
static double c[N];

/* Group g pulls weight i towards this, with a strength of 1. */
static double goal(int g, int i)
{
    return (i % 7) - 3 + 2 * g;
}

static void make(const char *text)
{
    float first[N];

    err = COH_ERR_INIT;
    config = config_of(text);
    const coh_rule rule = coh_rule_of(config);
    const coh_rule theirs = coh_rule_of_servers(config);
    for (int i = 0; i < N; i++) {
        first[i] = 0.5f * (float)(i % 5);
        c[i] = (double)first[i];
    }
    ck_assert_int_eq(coh_shard_new(&plan, 0, &theirs, &none, &centre, &err),
                     COH_OK);
    coh_shard_load(centre, first);
    ck_assert_int_eq(coh_shard_nslots(centre), 0);
    for (int g = 0; g < GROUPS; g++) {
        group *it = &groups[g];
        memset(it, 0, sizeof *it);
        ck_assert_int_eq(
            coh_shard_new(&plan, -1, &rule, &none, &it->shard, &err), COH_OK);
        coh_shard_load(it->shard, first);
        ck_assert_int_eq(coh_local_new(config, &none, N,
                                       coh_shard_values(it->shard), &it->local,
                                       &err),
                         COH_OK);
        memcpy(it->x, c, sizeof c);
    }
}

static void end(void)
{
    for (int g = 0; g < GROUPS; g++) {
        coh_local_destroy(&groups[g].local);
        coh_shard_destroy(&groups[g].shard);
    }
    coh_shard_destroy(&centre);
    coh_config_destroy(&config);
}

/* The first half of a step, as the exchange does it: the gradient is a sum over
 * `weight` samples; what is sent is then in its place. */
static void update(int g, double weight, const coh_grant *grant)
{
    group *it = &groups[g];
    const double mu = config->optimizer.momentum;
    float *w = coh_shard_values(it->shard);

    coh_local_begin(it->local, grant, it->gradient);
    for (int i = 0; i < N; i++) {
        it->gradient[i] = (float)(weight * ((double)w[i] - goal(g, i)));
        it->v[i] = mu * it->v[i] + (it->x[i] - goal(g, i));
        it->x[i] -= weight > 0 ? (double)rate * it->v[i] : 0;
    }
    for (int b = NBLOCKS - 1; b >= 0; b--) {
        const coh_range range = coh_plan_block(&plan, b);
        coh_local_keep(it->local, range);
        if (weight > 0)
            coh_shard_apply(it->shard, b, it->gradient + range.first, weight,
                            rate);
        if (coh_local_exchanges(it->local))
            coh_local_fill(it->local, range, weight);
    }
}

/* The second half: the centre's weights replace the group's. */
static void receive(int g, double weight)
{
    group *it = &groups[g];

    if (coh_local_exchanges(it->local)) {
        memcpy(coh_shard_values(it->shard), coh_shard_values(centre),
               N * sizeof(float));
        for (int b = 0; b < NBLOCKS; b++)
            coh_local_arrive(it->local, coh_plan_block(&plan, b));
    }
    coh_local_end(it->local, weight);
}

static void send(int g, double weight)
{
    group *it = &groups[g];

    for (int b = 0; b < NBLOCKS && coh_local_exchanges(it->local); b++)
        coh_shard_apply(centre, b,
                        it->gradient + coh_plan_block(&plan, b).first,
                        coh_local_weight(it->local, weight), rate);
}

static void expect(const double centre_is[N])
{
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)coh_shard_values(centre)[i],
                                centre_is[i], tolerance);
    for (int g = 0; g < GROUPS; g++)
        for (int i = 0; i < N; i++)
            ck_assert_double_eq_tol(
                (double)coh_shard_values(groups[g].shard)[i], groups[g].x[i],
                tolerance);
}

#define JOB "data: {kind: synthetic}\n" MODEL "servers: 1\ngroups: 2\n"
#define HEAD JOB "optimizer: {momentum: 0.5}\n"

/* The centre moves by what each group changed since it had the centre. */
START_TEST(every_third_step_the_change_is_added)
{
    static double seen[GROUPS][N];

    make(HEAD "exchange: {every: 3}\n");
    for (int g = 0; g < GROUPS; g++)
        memcpy(seen[g], c, sizeof c);
    for (int t = 0; t < STEPS * GROUPS; t++) {
        const int g = t % GROUPS;
        const coh_grant grant = { .groups = 1 };
        update(g, 8, &grant);
        const bool exchanges = t / GROUPS % 3 == 2;
        ck_assert_int_eq(coh_local_exchanges(groups[g].local), exchanges);
        send(g, 8);
        receive(g, 8);
        for (int i = 0; i < N && exchanges; i++) {
            c[i] += groups[g].x[i] - seen[g][i];
            groups[g].x[i] = seen[g][i] = c[i];
        }
        expect(c);
    }
    end();
}
END_TEST

/* Not in its turn, because the grant says so: nothing is lost, and the count
 * begins anew. */
START_TEST(a_grant_may_want_an_exchange_sooner)
{
    const coh_grant now = { .groups = 1, .exchange = 1 },
                    later = { .groups = 1 };

    make(HEAD "exchange: {every: 3}\n");
    for (int t = 0; t < 5; t++) {
        update(0, 8, t == 1 ? &now : &later);
        ck_assert_int_eq(coh_local_exchanges(groups[0].local),
                         t == 1 || t == 4);
        send(0, 8);
        receive(0, 8);
        if (coh_local_exchanges(groups[0].local))
            memcpy(c, groups[0].x, sizeof c);
    }
    for (int i = 0; i < N; i++) {
        ck_assert_double_eq_tol((double)coh_shard_values(centre)[i], c[i],
                                tolerance);
        ck_assert_double_eq_tol(groups[0].x[i], c[i], tolerance);
    }
    end();
}
END_TEST

/* Policy sync: the mean of the models, by the samples that each saw; one group
 * sees none in some steps. */
START_TEST(with_sync_the_models_are_averaged_by_their_samples)
{
    coh_push pushes[GROUPS][NBLOCKS];
    double seen[GROUPS] = { 0 };
    coh_gather *gather = coh_gather_new(NBLOCKS, GROUPS);

    make(JOB "exchange: {every: 4}\npolicy: sync\noptimizer: {momentum: 0}\n");
    for (int t = 0; t < STEPS; t++) {
        const coh_grant grant = { .groups = GROUPS, .exchange = t % 4 == 3 };
        const coh_gathered *items = NULL;
        double weights[GROUPS];
        for (int g = 0; g < GROUPS; g++) {
            weights[g] = g == 1 && t % 3 == 0 ? 0 : 8;
            seen[g] += weights[g];
            update(g, weights[g], &grant);
        }
        for (int b = 0; b < NBLOCKS && grant.exchange; b++) {
            const coh_range range = coh_plan_block(&plan, b);
            for (int g = 0; g < GROUPS; g++) {
                pushes[g][b] = (coh_push){ .group = g,
                                           .step = t,
                                           .block = b,
                                           .groups = GROUPS,
                                           .weight = coh_local_weight(
                                               groups[g].local, weights[g]) };
                items = coh_gather_add(
                    gather, b,
                    (coh_gathered){ &pushes[g][b],
                                    groups[g].gradient + range.first, NULL });
            }
            double weight;
            const float *sum =
                coh_gather_sum(items, GROUPS, range.count, 1, &weight);
            ck_assert_double_eq(weight, seen[0] + seen[1]);
            coh_shard_apply(centre, b, sum, weight, rate);
        }
        for (int g = 0; g < GROUPS; g++)
            receive(g, weights[g]);
        for (int i = 0; i < N && grant.exchange; i++) {
            c[i] = (seen[0] * groups[0].x[i] + seen[1] * groups[1].x[i]) /
                   (seen[0] + seen[1]);
            groups[0].x[i] = groups[1].x[i] = c[i];
        }
        if (grant.exchange)
            seen[0] = seen[1] = 0;
        expect(c);
    }
    coh_gather_destroy(&gather);
    end();
}
END_TEST

/* Both sides move by alpha (x - c), of c before. */
START_TEST(elastic_weights_and_centre_move_towards_each_other)
{
    const double alpha = 0.3;

    make(_i == 0 ? HEAD "exchange: {every: 2, elastic: 0.3}\n"
                 : HEAD "exchange: {elastic: 0.3}\n");
    for (int t = 0; t < STEPS * GROUPS; t++) {
        const int g = t % GROUPS;
        const coh_grant grant = { .groups = 1 };
        update(g, 8, &grant);
        const bool exchanges = _i == 1 || t / GROUPS % 2 == 1;
        ck_assert_int_eq(coh_local_exchanges(groups[g].local), exchanges);
        send(g, 8);
        receive(g, 8);
        for (int i = 0; i < N && exchanges; i++) {
            const double d = alpha * (groups[g].x[i] - c[i]);
            groups[g].x[i] -= d;
            c[i] += d;
        }
        expect(c);
    }
    end();
}
END_TEST

START_TEST(elastic_weights_are_as_they_were_after_the_centre_was_measured)
{
    float before[N];

    make(HEAD "exchange: {elastic: 0.3}\n");
    float *w = coh_shard_values(groups[0].shard);
    memcpy(before, w, sizeof before);
    ck_assert(!coh_local_put_aside(groups[0].local)); /* it made no step */
    const coh_grant grant = { .groups = 1 };
    coh_local_begin(groups[0].local, &grant, groups[0].gradient);
    ck_assert(coh_local_put_aside(groups[0].local));
    memset(w, 0, sizeof before);
    coh_local_take_back(groups[0].local);
    ck_assert_mem_eq(w, before, sizeof before);
    end();
    make(HEAD "exchange: {every: 3}\n");
    ck_assert(!coh_local_put_aside(groups[0].local));
    end();
}
END_TEST

static coh_statistic one = { 2, 5, 0.75 };
static const coh_statistics some = { 1, &one };

static bool is_statistic(int i)
{
    return i >= one.first && i < one.first + one.count;
}

/* Both groups brought a variance of 1 down to 0.25, from the same 1: with the
 * sum of changes it would be -0.5. */
START_TEST(a_groups_running_statistics_replace_those_of_servers)
{
    const coh_grant grant = { .groups = 1, .exchange = 1 };
    const coh_range range = coh_plan_block(&plan, 0);
    const coh_rule add = { .kind = COH_RULE_ADD };
    float start[N], w[N], sent[N];
    coh_shard *shard = NULL;
    coh_local *local = NULL;

    err = COH_ERR_INIT;
    config = config_of(HEAD "exchange: {every: 3}\n");
    for (int i = 0; i < N; i++)
        start[i] = 1;
    ck_assert_int_eq(coh_shard_new(&plan, 0, &add, &some, &shard, &err),
                     COH_OK);
    coh_shard_load(shard, start);
    for (int g = 0; g < GROUPS; g++) {
        memcpy(w, start, sizeof w);
        ck_assert_int_eq(coh_local_new(config, &some, N, w, &local, &err),
                         COH_OK);
        coh_local_begin(local, &grant, sent);
        coh_local_keep(local, range);
        for (int i = 0; i < BLOCK; i++)
            w[i] = 0.25f;
        coh_local_fill(local, range, 8);
        coh_shard_apply(shard, 0, sent, coh_local_weight(local, 8), rate);
        coh_local_destroy(&local);
    }
    for (int i = 0; i < BLOCK; i++)
        ck_assert_float_eq(coh_shard_values(shard)[i],
                           is_statistic(i) ? 0.25f : -0.5f);
    coh_shard_destroy(&shard);
    coh_config_destroy(&config);
}
END_TEST

/* Elastic servers move towards statistics as they do towards weights; g is a
 * sum over 2. */
START_TEST(elastic_servers_take_statistics_as_weights)
{
    const coh_rule elastic = { .kind = COH_RULE_ELASTIC, .elastic = 0.5f };
    float values[N], theirs[BLOCK];
    coh_shard *shard = NULL;

    err = COH_ERR_INIT;
    for (int i = 0; i < N; i++)
        values[i] = (float)i;
    for (int i = 0; i < BLOCK; i++)
        theirs[i] = 8;
    ck_assert_int_eq(coh_shard_new(&plan, 0, &elastic, &some, &shard, &err),
                     COH_OK);
    coh_shard_load(shard, values);
    coh_shard_apply(shard, 0, theirs, 2, rate);
    for (int i = 0; i < BLOCK; i++)
        ck_assert_float_eq(coh_shard_values(shard)[i], 0.5f * (values[i] + 4));
    coh_shard_destroy(&shard);
}
END_TEST

static Suite *local_suite(void)
{
    Suite *suite = suite_create("local");
    TCase *core = tcase_create("core");

    tcase_add_test(core, every_third_step_the_change_is_added);
    tcase_add_test(core, a_grant_may_want_an_exchange_sooner);
    tcase_add_test(core, with_sync_the_models_are_averaged_by_their_samples);
    tcase_add_loop_test(
        core, elastic_weights_and_centre_move_towards_each_other, 0, 2);
    tcase_add_test(
        core, elastic_weights_are_as_they_were_after_the_centre_was_measured);
    tcase_add_test(core, a_groups_running_statistics_replace_those_of_servers);
    tcase_add_test(core, elastic_servers_take_statistics_as_weights);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(local_suite)
