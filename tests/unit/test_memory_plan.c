/* test_memory_plan.c - the memory of a worker and of a server
 * (src/cli/memory_plan.h). No MPI. */
#include "cli/memory_plan.h"

#include "common/resident.h"
#include "server/inbox.h"
#include "support/config_text.h"
#include "worker/nn/net.h"

enum { MIB = 1 << 20 };

static coh_err err;

/* 64 x 64 inputs, 16 x 4096 + 2 x 16 weights: 65,568 parameters. */
#define NET                                                          \
    "model: {input: [1, 64, 64], layers: [dense: {units: 16, bias: " \
    "false}, dense: {units: 2, bias: false}, softmax_cross_entropy]}\n"
enum { PARAMETERS = 65568, BLOCK = 16384, IMAGE_BYTES = 4 * 64 * 64 };
#define HEAD "data: {kind: synthetic, classes: 2}\n"

typedef struct job {
    coh_config *config;
    coh_model *model;
    coh_plan plan;
} job;

static job job_of(const char *text, int ranks)
{
    job it = { .config = config_of(text) };

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_model_new(it.config, &it.model, &err), COH_OK);
    ck_assert_msg(coh_plan_make(it.config, it.model, ranks, &it.plan, &err) ==
                      COH_OK,
                  "%s", err.text);
    return it;
}

static void end(job *it)
{
    coh_plan_fini(&it->plan);
    coh_model_destroy(&it->model);
    coh_config_destroy(&it->config);
}

static coh_memory_plan count(const char *text, int ranks, int64_t evaluated)
{
    job it = job_of(text, ranks);
    coh_memory_plan out;

    ck_assert_int_eq(it.plan.parameters, PARAMETERS);
    coh_memory_count(it.config, it.model, &it.plan, evaluated, &out);
    end(&it);
    return out;
}

START_TEST(a_worker_alone_has_the_state_of_the_optimizer)
{
    const coh_memory_plan plan =
        count(HEAD NET "optimizer: {rule: adam}\n", 1, 0);

    ck_assert_int_eq(plan.worker.parameters, 4 * PARAMETERS);
    ck_assert_int_eq(plan.worker.gradient, 4 * PARAMETERS);
    ck_assert_int_eq(plan.worker.optimizer, 2 * 4 * PARAMETERS);
    ck_assert_int_eq(plan.worker.exchange, 0);
    ck_assert_int_eq(coh_memory_sum(&plan.server), 0);
}
END_TEST

START_TEST(gradients_that_are_added_up_need_a_second_vector)
{
    const coh_memory_plan plan =
        count(HEAD NET "train: {accumulate: 3}\n", 1, 0);

    ck_assert_int_eq(plan.worker.gradient, 2 * 4 * PARAMETERS);
}
END_TEST

/* What travels is not what is calculated with. */
START_TEST(a_lag_takes_a_second_gradient_and_with_servers_second_weights)
{
    const char *text = HEAD NET "groups: 1\nexchange: {lag: 1}\n";
    const coh_memory_plan alone = count(text, 1, 0);
    const coh_memory_plan served =
        count(HEAD NET "exchange: {lag: 1}\nservers: 1\n", 2, 0);

    ck_assert_int_eq(alone.worker.gradient, 2 * 4 * PARAMETERS);
    ck_assert_int_eq(alone.worker.exchange, 0);
    ck_assert_int_eq(served.worker.gradient, 2 * 4 * PARAMETERS);
    ck_assert_int_eq(served.worker.exchange, 4 * PARAMETERS);
}
END_TEST

START_TEST(owners_have_the_state_of_what_they_update_and_a_copy_of_it)
{
    const coh_memory_plan plan =
        count(HEAD NET "group_size: 2\noptimizer: {rule: adam}\nexchange: "
                       "{update: owners, lag: 1}\n",
              2, 0);
    const int64_t own = 4 * PARAMETERS / 2;

    ck_assert_int_eq(plan.worker.parameters, 4 * PARAMETERS + own);
    ck_assert_int_eq(plan.worker.optimizer, 2 * own);
    ck_assert_int_ge(plan.worker.exchange, 2 * 4 * PARAMETERS);
}
END_TEST

START_TEST(with_servers_the_state_is_theirs_and_each_starts_from_a_whole_copy)
{
    const coh_memory_plan plan = count(
        HEAD NET "optimizer: {rule: adam}\nservers: 2\ngroups: 1\n", 3, 0);

    ck_assert_int_eq(plan.worker.optimizer, 0);
    ck_assert_int_eq(plan.server.parameters, 4 * PARAMETERS / 2);
    ck_assert_int_eq(plan.server.optimizer, 2 * plan.server.parameters);
    ck_assert_int_eq(plan.server.exchange, 4 * PARAMETERS);
}
END_TEST

START_TEST(many_groups_have_two_blocks_each_on_a_server)
{
    const coh_memory_plan plan = count(
        HEAD NET "exchange: {block: 65536}\nservers: 1\ngroups: 100\n", 101, 0);

    ck_assert_int_ge(plan.server.exchange, 200 * 4 * (BLOCK - 4096));
    ck_assert_int_le(plan.server.exchange, 200 * 4 * BLOCK);
}
END_TEST

/* 3 x 2^31 parameters: no byte of it is lost in an int. */
START_TEST(a_network_beyond_what_an_int_counts_is_summed_up)
{
    const int64_t bytes = 4 * 3 * ((int64_t)1 << 31);
    job it = job_of("data: {kind: synthetic, classes: 2}\ngroups: 2\n"
                    "group_size: 1\nservers: 3\npolicy: sync\n"
                    "optimizer: {rule: adam}\nexchange: {block: 1073741824}\n"
                    "model: {input: [1, 512, 128], layers: [dense: {units: "
                    "98304, bias: false}, dense: {units: 2, bias: false}, "
                    "softmax_cross_entropy]}\n",
                    5);
    const int64_t all = bytes + (int64_t)4 * 2 * 98304;
    coh_memory_plan plan;

    ck_assert_int_eq(4 * it.model->parameters, all);
    ck_assert_int_eq(it.model->layers[1].weight_first, bytes / 4);
    ck_assert_int_eq(it.model->flop_forward, all / 2);
    coh_memory_count(it.config, it.model, &it.plan, 0, &plan);
    ck_assert_int_eq(plan.worker.parameters, all);
    ck_assert_int_eq(plan.worker.gradient, all);
    ck_assert_int_eq(plan.server.parameters, 4 * coh_plan_fullest(&it.plan));
    ck_assert_int_eq(plan.server.optimizer, 2 * plan.server.parameters);
    const int64_t owned = coh_plan_owned(&it.plan, 0);
    ck_assert_int_eq(coh_inbox_floats(it.config, &it.plan, 0),
                     2 * (owned + 1) * it.plan.block_count);
    end(&it);
}
END_TEST

/* What the server began with is gone by the time that these are there. */
START_TEST(a_rule_that_compensates_keeps_a_copy_a_group_where_there_is_a_delay)
{
    const char *late = HEAD NET "optimizer: {rule: dcasgd}\nservers: 1\n"
                                "groups: 3\nexchange: {block: 65536}\n";
    const char *sync = HEAD NET "optimizer: {rule: dcasgd}\nservers: 1\n"
                                "groups: 3\nexchange: {block: 65536}\n"
                                "policy: sync\n";
    const char *one = HEAD NET "optimizer: {rule: dcasgd_a}\nservers: 1\n"
                               "groups: 1\nexchange: {block: 65536}\n";
    const coh_memory_plan plan = count(late, 4, 0);

    ck_assert_int_eq(plan.server.optimizer, (1 + 3) * 4 * PARAMETERS);
    ck_assert_int_lt(plan.server.exchange, 7 * 4 * BLOCK);
    ck_assert_int_eq(count(sync, 4, 0).server.optimizer, 4 * PARAMETERS);
    ck_assert_int_eq(count(one, 2, 0).server.optimizer, 2 * 4 * PARAMETERS);
}
END_TEST

#define LOCAL HEAD NET "servers: 1\ngroups: 2\noptimizer: {rule: adam}\n"

START_TEST(with_local_steps_the_state_is_the_workers)
{
    const coh_memory_plan every =
        count(LOCAL "exchange: {every: 4, block: 65536}\n", 3, 0);
    const coh_memory_plan elastic =
        count(LOCAL "exchange: {elastic: 0.5, block: 65536}\n", 3, 0);

    ck_assert_int_eq(every.worker.optimizer, (2 + 1) * 4 * PARAMETERS);
    ck_assert_int_eq(elastic.worker.optimizer, 2 * 4 * PARAMETERS);
    ck_assert_int_eq(every.server.optimizer, 0);
    ck_assert_int_eq(elastic.server.optimizer, 0);
}
END_TEST

/* Policy sync holds all pushes of a group, and with whole layers a server may
 * have few large blocks or many small ones. */
START_TEST(pushes_that_are_held_take_what_each_server_owns)
{
    job it = job_of("data: {kind: synthetic, classes: 2}\ngroups: 3\n"
                    "group_size: 1\nservers: 2\npolicy: sync\n"
                    "exchange: {placement: layer, block: 1048576}\n"
                    "model: {input: [1, 8, 8], layers: [dense: {units: 2048, "
                    "bias: false}, dense: {units: 8, bias: false}, dense: "
                    "{units: 8, bias: false}, dense: {units: 2, bias: false}, "
                    "softmax_cross_entropy]}\n",
                    5);
    const int large = coh_plan_owner(&it.plan, 0);

    ck_assert_int_eq(coh_inbox_floats(it.config, &it.plan, large),
                     3 * (1 + 1) * 64 * 2048);
    ck_assert_int_eq(coh_inbox_floats(it.config, &it.plan, 1 - large),
                     3 * (3 + 1) * 2048 * 8);
    end(&it);
}
END_TEST

/* 2 batches ahead, of 8 to train and 5 to evaluate; 12 bytes a score, twice. */
START_TEST(images_are_read_ahead_for_training_and_evaluation)
{
    const char *text = HEAD NET "train: {batch: 8}\neval: {batch: 5}\n";

    ck_assert_int_eq(count(text, 1, 0).worker.images, 2 * 8 * IMAGE_BYTES);
    ck_assert_int_eq(count(text, 1, 1000).worker.images,
                     2 * (8 + 5) * IMAGE_BYTES + 2 * 12 * 1000);
}
END_TEST

START_TEST(a_group_holds_copies_of_what_it_adds_up)
{
    const char *text = HEAD NET "exchange: {block: 65536}\n";
    const coh_memory_plan one =
        count(HEAD NET "exchange: {block: 65536}\nservers: 1\n", 3, 0);
    const coh_memory_plan mpi = count(
        HEAD NET "exchange: {block: 65536, collectives: mpi}\nservers: 1\n", 3,
        0);

    ck_assert_int_eq(count(text, 1, 0).worker.exchange, 0);
    ck_assert_int_eq(count(text, 2, 0).worker.exchange, 4 * PARAMETERS);
    ck_assert_int_eq(one.worker.exchange, 4 * PARAMETERS);
    ck_assert_int_eq(mpi.worker.exchange, 2 * 4 * PARAMETERS);
}
END_TEST

/* --- the network -------------------------------------------------------- */

#define DEEP                                                                  \
    HEAD "train: {batch: 8}\ncompute: {algorithm: direct, threads: 1}\n"      \
         "model: {input: [1, 64, 64], layers: [conv2d: {filters: 64, kernel:" \
         " 3, padding: same}, relu, conv2d: {filters: 64, kernel: 3, "        \
         "padding: same}, relu, global_avgpool, dense: {units: 2}, "          \
         "softmax_cross_entropy]}\n"

START_TEST(what_is_predicted_of_a_network_is_what_it_takes)
{
    job it = job_of(DEEP, 1);
    coh_net_bytes bytes = { 0 };
    coh_compute compute;
    const int64_t bare = coh_resident_bytes();

    ck_assert_int_eq(coh_net_predict(it.model, 8, 8, 1, NULL, &bytes, &err),
                     COH_OK);
    const int64_t before = coh_resident_bytes();
    ck_assert_int_ge(bytes.train, 16 * MIB);
    ck_assert_int_lt(bytes.infer, bytes.train);
    ck_assert_int_lt(before - bare, bytes.train); /* code, nothing of it */

    ck_assert_int_eq(coh_net_new(it.model, 8, 8, 1, 1, NULL, &compute, &err),
                     COH_OK);
    const int64_t taken = coh_resident_bytes() - before;
    ck_assert_int_gt(taken, bytes.train - 2 * MIB);
#ifndef __SANITIZE_THREAD__ /* keeps four bytes or more for each */
    ck_assert_int_lt(taken, bytes.train + bytes.train / 4);
#endif
    compute.destroy(&compute.self);
    end(&it);
}
END_TEST

START_TEST(all_is_predicted_without_files)
{
    job it = job_of(DEEP, 1);
    coh_memory_plan plan;

    ck_assert_int_eq(
        coh_memory_predict(it.config, it.model, &it.plan, &plan, &err), COH_OK);
    ck_assert_str_eq(plan.passes, "direct");
    ck_assert(plan.has_data);
    ck_assert_str_eq(plan.why, "");
    ck_assert_int_eq(plan.worker.values, plan.training);
    ck_assert_int_gt(plan.training, plan.evaluation);
    ck_assert_int_gt(plan.worker.program, 16 * MIB);
    end(&it);

    it = job_of("data: {kind: hdf5, train: ['/nowhere/*.h5']}\n" MODEL, 1);
    ck_assert_int_eq(
        coh_memory_predict(it.config, it.model, &it.plan, &plan, &err), COH_OK);
    ck_assert(!plan.has_data);
    ck_assert_ptr_nonnull(strstr(plan.why, "/nowhere/*.h5"));
    ck_assert_int_eq(plan.worker.data, 0);
    end(&it);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("memory_plan");
    TCase *core = tcase_create("core"), *net = tcase_create("net");

    tcase_add_test(core, a_worker_alone_has_the_state_of_the_optimizer);
    tcase_add_test(
        core, a_lag_takes_a_second_gradient_and_with_servers_second_weights);
    tcase_add_test(core,
                   owners_have_the_state_of_what_they_update_and_a_copy_of_it);
    tcase_add_test(core, gradients_that_are_added_up_need_a_second_vector);
    tcase_add_test(
        core,
        with_servers_the_state_is_theirs_and_each_starts_from_a_whole_copy);
    tcase_add_test(core, many_groups_have_two_blocks_each_on_a_server);
    tcase_add_test(core, a_network_beyond_what_an_int_counts_is_summed_up);
    tcase_add_test(
        core,
        a_rule_that_compensates_keeps_a_copy_a_group_where_there_is_a_delay);
    tcase_add_test(core, with_local_steps_the_state_is_the_workers);
    tcase_add_test(core, pushes_that_are_held_take_what_each_server_owns);
    tcase_add_test(core, images_are_read_ahead_for_training_and_evaluation);
    tcase_add_test(core, a_group_holds_copies_of_what_it_adds_up);
    suite_add_tcase(s, core);
    tcase_add_test(net, what_is_predicted_of_a_network_is_what_it_takes);
    tcase_add_test(net, all_is_predicted_without_files);
    suite_add_tcase(s, net);
    return s;
}

CHECK_MAIN(suite)
