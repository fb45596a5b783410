/* The stem against the same layers by the library, which the other tests hold
 * against plain loops: convolution, relu, pool, and back. */
#include <math.h>

#include "support/check_run.h"
#include "support/nn_nets.h"
#include "worker/nn/choice.h"
#include "worker/nn/dnn.h"
#include "worker/nn/stem.h"

#define STEM(...) \
    CONV(.filters = 64, .kernel = { 3, 3 }, .bias = true, __VA_ARGS__)
#define POOL MAXPOOL(.kernel = { 2, 2 })

/* 1 to 3 channels; columns that divide into tiles and that do not; an odd row
 * and column that the pool leaves out; padding on all sides, on one, none;
 * relu, leaky, none; with and without bias. */
static const nn_case nets[] = {
    { { 3, 12, 12 }, 3, { STEM(.same = true), RELU, POOL, DENSE(3), LOSS } },
    { { 1, 13, 23 }, 2, { STEM(), RELU, POOL, DENSE(3), LOSS } },
    { { 2, 9, 16 },
      2,
      { STEM(.padding = { 1, 2 }), LEAKY_RELU(0.2), POOL, DENSE(3), LOSS } },
    { { 3, 8, 8 }, 1, { STEM(.same = true), POOL, DENSE(3), LOSS } },
    { { 3, 10, 14 },
      2,
      { CONV(.filters = 32, .kernel = { 3, 3 }), RELU, POOL, DROPOUT(0.3),
        CONV(.filters = 32, .kernel = { 3, 3 }), RELU, DENSE(3), LOSS } },
};
enum { NETS = sizeof nets / sizeof nets[0] };

static coh_choices *stem_of(const nn_case *net)
{
    coh_model *model = nn_model_new(net);
    const coh_choice_key key = { .threads = NN_THREADS };
    coh_choices *table = NULL;

    ck_assert_int_eq(coh_choices_new(model, &key, &table, NULL), COH_OK);
    for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++)
        coh_choices_set(table, 0, (coh_chosen)pass, COH_WAY_STEM);
    coh_model_destroy(&model);
    return table;
}

static bool runs_here(void)
{
    return coh_stem_can_run() && coh_dnn_block() == 16;
}

/* Is there a part of our own for layer 0? */
static bool has_stem(const nn_trial *trial)
{
    coh_step_part parts[64];

    ck_assert_int_le(coh_net_parts(&trial->compute, parts), 64);
    return parts[0].layer == 0 &&
           strcmp(parts[0].algorithm, "cohort:stem") == 0;
}

START_TEST(a_stem_calculates_what_the_library_does)
{
    coh_choices *table = stem_of(&nets[_i]);
    nn_trial direct = nn_trial_new(&nets[_i], NN_THREADS);
    nn_trial stem = nn_trial_new_by(&nets[_i], NN_THREADS, table);
    double most = 0;

    nn_trial_train(&direct);
    nn_trial_train(&stem);
    ck_assert(has_stem(&stem) == runs_here());
    for (int64_t i = 0; i < direct.model->parameters; i++)
        most = fmax(most, fabs((double)direct.gradient[i]));
    for (int64_t i = 0; i < direct.model->parameters; i++)
        ck_assert_double_eq_tol((double)stem.gradient[i],
                                (double)direct.gradient[i], 1e-5 * most);
    ck_assert_double_eq_tol(stem.sums.loss, direct.sums.loss, 1e-4);

    nn_trial_infer(&direct); /* the stem is for training */
    nn_trial_infer(&stem);
    ck_assert_mem_eq(stem.log_probs, direct.log_probs, 3 * sizeof(float));
    nn_trial_end(&direct);
    nn_trial_end(&stem);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(the_same_step_of_a_stem_gives_the_same_bits)
{
    coh_choices *table = stem_of(&nets[0]);
    nn_trial trial = nn_trial_new_by(&nets[0], NN_THREADS, table);
    const size_t bytes = (size_t)trial.model->parameters * sizeof(float);
    float *before = malloc(bytes);

    ck_assert_ptr_nonnull(before);
    nn_trial_train(&trial);
    memcpy(before, trial.gradient, bytes);
    memset(trial.gradient, 0xff, bytes);
    nn_trial_train(&trial);
    ck_assert_mem_eq(before, trial.gradient, bytes);
    free(before);
    nn_trial_end(&trial);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(what_is_no_stem_does_not_fit)
{
    coh_model *model = nn_model_new(&nets[0]);
    coh_layer *conv = &model->layers[0], *last = &model->layers[2];
    int pool = 0;

    ck_assert(coh_stem_fits(conv, &pool));
    ck_assert_int_eq(pool, 2);
    for (int i = 0; i < 8; i++) {
        const coh_layer was[] = { *conv, *last };
        switch (i) {
        case 0:
            conv->spec.kernel[1] = 5;
            break;
        case 1:
            conv->spec.stride[0] = 2;
            break;
        case 2:
            conv->in.c = 4;
            break;
        case 3:
            conv->spec.filters = 48;
            break;
        case 4:
            last->spec.kernel[0] = 3;
            break;
        case 5:
            last->pad_after[1] = 1;
            break;
        case 6:
            last->spec.kind = COH_LAYER_AVGPOOL;
            break;
        default:
            last->out.w = 2;
            break;
        }
        ck_assert(!coh_stem_fits(conv, &pool));
        *conv = was[0];
        *last = was[1];
    }
    ck_assert(coh_stem_fits(conv, &pool));
    coh_model_destroy(&model);
}
END_TEST

/* A NaN must not vanish in our relu and pool. It may in the library's: what is
 * not finite is caught before, in the data (dataset.c) and in the weights. */
START_TEST(a_nan_in_the_image_passes_the_stem)
{
    coh_choices *table = stem_of(&nets[0]);
    nn_trial trial = nn_trial_new_by(&nets[0], NN_THREADS, table);
    const int64_t count = coh_shape_count(trial.model->input);

    for (int64_t i = 0; i < count; i++)
        trial.batch->images[i] = NAN;
    nn_trial_train(&trial);
    ck_assert(!runs_here() || !isfinite(trial.sums.loss));
    nn_trial_end(&trial);
    coh_choices_destroy(&table);
}
END_TEST

static Suite *nn_stem_suite(void)
{
    Suite *suite = suite_create("nn_stem");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, a_stem_calculates_what_the_library_does, 0, NETS);
    tcase_add_test(core, the_same_step_of_a_stem_gives_the_same_bits);
    tcase_add_test(core, what_is_no_stem_does_not_fit);
    tcase_add_test(core, a_nan_in_the_image_passes_the_stem);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_stem_suite)
