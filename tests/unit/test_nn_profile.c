/* Where the time of a step goes, and what the machine could do. */
#include "support/check_run.h"
#include "support/nn_nets.h"
#include "worker/nn/machine.h"
#include "worker/nn/peak.h"

/* Two layers with weights, one of them with an input gradient. */
static const nn_case net = {
    { 3, 8, 8 },
    2,
    { CONV(.filters = 16, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }), DENSE(3), LOSS }
};

enum { PARTS_MAX = 64 };

static int parts_with(const coh_step_part *parts, int count, int layer,
                      coh_pass pass)
{
    int found = 0;

    for (int i = 0; i < count; i++)
        found += parts[i].layer == layer && parts[i].pass == pass;
    return found;
}

START_TEST(every_pass_of_a_layer_with_weights_is_one_part)
{
    nn_trial trial = nn_trial_new(&net, 1);
    coh_step_part parts[PARTS_MAX];
    const int count = coh_net_parts(&trial.compute, NULL);

    ck_assert_int_le(count, PARTS_MAX);
    ck_assert_int_eq(coh_net_parts(&trial.compute, parts), count);
    for (int layer = 0; layer <= 3; layer += 3) {
        ck_assert_int_eq(parts_with(parts, count, layer, COH_PASS_TRAIN), 1);
        ck_assert_int_eq(parts_with(parts, count, layer, COH_PASS_WEIGHTS), 1);
        ck_assert_int_eq(parts_with(parts, count, layer, COH_PASS_DATA),
                         layer == 3);
    }
    ck_assert_str_eq(parts[0].layout + strlen(parts[0].layout) - 1, "c");
    ck_assert_str_ne(parts[0].algorithm, "");
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_timed_step_is_a_step_and_its_parts_are_not_longer_than_it)
{
    nn_trial trial = nn_trial_new(&net, 1);
    const size_t bytes = (size_t)trial.model->parameters * sizeof(float);
    float *gradient = malloc(bytes);
    coh_step_part parts[PARTS_MAX];
    const int count = coh_net_parts(&trial.compute, parts);
    double seconds = 0, sum = 0;

    nn_trial_train(&trial);
    ck_assert_ptr_nonnull(gradient);
    memset(gradient, 0xff, bytes);
    coh_net_time(&trial.compute, trial.batch, trial.weights, gradient, parts,
                 &seconds);
    ck_assert_mem_eq(gradient, trial.gradient, bytes);
    for (int i = 0; i < count; i++) {
        ck_assert(parts[i].seconds > 0);
        ck_assert(parts[i].copy_s <= parts[i].seconds);
        sum += parts[i].seconds;
    }
    ck_assert(sum <= seconds);
    free(gradient);
    nn_trial_end(&trial);
}
END_TEST

START_TEST(a_peak_is_the_larger_of_both_and_never_falls)
{
    coh_peak peak = { 0 };

    ck_assert_int_eq(coh_peak_measure(0, &peak, NULL), COH_OK);
    ck_assert(peak.probe_gflops > 0 && peak.matmul_gflops > 0);
    ck_assert(coh_peak_gflops(&peak) >= peak.probe_gflops);
    ck_assert(coh_peak_gflops(&peak) >= peak.matmul_gflops);
    peak.probe_gflops = peak.matmul_gflops = 1e9;
    ck_assert_int_eq(coh_peak_measure(0, &peak, NULL), COH_OK);
    ck_assert(coh_peak_gflops(&peak) == 1e9);
}
END_TEST

START_TEST(the_machine_has_a_name_of_one_line)
{
    char name[64];

    coh_machine_name(name, sizeof name);
    ck_assert_str_ne(name, "");
    ck_assert_ptr_null(strpbrk(name, "\n\"\\"));
    coh_machine_name(name, 4); /* cut, not overrun */
    ck_assert_uint_le(strlen(name), 3);
}
END_TEST

static Suite *nn_profile_suite(void)
{
    Suite *suite = suite_create("nn_profile");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_test(core, every_pass_of_a_layer_with_weights_is_one_part);
    tcase_add_test(core,
                   a_timed_step_is_a_step_and_its_parts_are_not_longer_than_it);
    tcase_add_test(core, a_peak_is_the_larger_of_both_and_never_falls);
    tcase_add_test(core, the_machine_has_a_name_of_one_line);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_profile_suite)
