/* Ways that are chosen by measurement, and what they calculate. */
#include <math.h>

#include "support/check_run.h"
#include "support/nn_nets.h"
#include "worker/nn/dnn.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/measure.h"

/* Large enough to be timed, small enough for a test. */
static const nn_case net = {
    { 3, 20, 20 },
    3,
    { CONV(.filters = 32, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }),
      CONV(.filters = 32, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      CONV(.filters = 32, .kernel = { 3, 3 }, .same = true, .bias = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }), DENSE(64), RELU, DENSE(4), LOSS }
};
/* Layers with weights that have no ways, also before the first convolution,
 * which would make a stem. */
static const nn_case normed = {
    { 3, 20, 20 },
    3,
    { BATCH_NORM, CONV(.filters = 32, .kernel = { 3, 3 }, .same = true), RELU,
      MAXPOOL(.kernel = { 2, 2 }),
      CONV(.filters = 32, .kernel = { 3, 3 }, .same = true), BATCH_NORM, RELU,
      CONV(.filters = 32, .kernel = { 3, 3 }, .same = true), LAYER_NORM, RELU,
      DENSE(4), LOSS }
};
static const nn_case tiny = { { 2, 12, 12 },
                              8,
                              { CONV(.filters = 8, .kernel = { 3, 3 }), RELU,
                                DENSE(3), LOSS } };

static coh_choice_key key_of(const coh_model *model, int64_t batch)
{
    char library[32];

    coh_dnn_version(library, sizeof library);
    return coh_choice_key_of(model, batch, true, NN_THREADS, library);
}

typedef coh_status maker(const coh_model *model, const coh_choice_key *key,
                         bool training, coh_choices **out, coh_err *err);

static coh_status winograd(const coh_model *model, const coh_choice_key *key,
                           bool training, coh_choices **out, coh_err *err)
{
    (void)training;
    return coh_choices_winograd(model, key, out, err);
}

static coh_choices *choices_of(const nn_case *shape, maker *make)
{
    coh_model *model = nn_model_new(shape);
    const coh_choice_key key = key_of(model, shape->batch);
    coh_err err = COH_ERR_INIT;
    coh_choices *table = NULL;

    ck_assert_msg(make(model, &key, true, &table, &err) == COH_OK, "%s",
                  err.text);
    coh_model_destroy(&model);
    return table;
}

/* A table with the same way for all that can have it. */
static coh_choices *all(const nn_case *shape, coh_way way)
{
    coh_model *model = nn_model_new(shape);
    const coh_choice_key key = key_of(model, shape->batch);
    coh_choices *table = NULL;

    ck_assert_int_eq(coh_choices_new(model, &key, &table, NULL), COH_OK);
    for (int i = 0; i < model->nlayers; i++) {
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++)
            coh_choices_set(table, i, (coh_chosen)pass, way);
    }
    coh_model_destroy(&model);
    return table;
}

static void must_agree_on(const nn_case *shape, const coh_choices *table)
{
    nn_trial direct = nn_trial_new(shape, NN_THREADS);
    nn_trial chosen = nn_trial_new_by(shape, NN_THREADS, table);
    double difference = 0, norm = 0;

    nn_trial_train(&direct);
    nn_trial_train(&chosen);
    for (int64_t i = 0; i < direct.model->parameters; i++) {
        const double d = (double)direct.gradient[i];
        difference += pow((double)chosen.gradient[i] - d, 2);
        norm += d * d;
    }
    ck_assert(sqrt(difference / norm) <= 1e-4);
    ck_assert_double_eq_tol(chosen.sums.loss, direct.sums.loss, 1e-4);

    nn_trial_infer(&direct);
    nn_trial_infer(&chosen);
    for (int64_t i = 0; i < shape->batch * 4; i++)
        ck_assert_double_eq_tol((double)chosen.log_probs[i],
                                (double)direct.log_probs[i], 1e-4);
    nn_trial_end(&direct);
    nn_trial_end(&chosen);
}

static void must_agree(const coh_choices *table)
{
    must_agree_on(&net, table);
}

/* 2e-6 was measured. Without AVX-512 both are direct. */
START_TEST(winograd_gradients_are_those_of_direct_within_1e_4)
{
    coh_choices *table = choices_of(&net, winograd);

    must_agree(table);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(every_way_calculates_the_same_and_one_that_is_refused_is_direct)
{
    coh_choices *table = all(&net, (coh_way)_i);

    must_agree(table);
    coh_choices_destroy(&table);
}
END_TEST

static int references(const nn_trial *trial)
{
    coh_step_part parts[64];
    const int count = coh_net_parts(&trial->compute, parts);
    int found = 0;

    ck_assert_int_le(count, 64);
    for (int i = 0; i < count; i++)
        found += strncmp(parts[i].algorithm, "ref", 3) == 0;
    return found;
}

/* oneDNN does whatever is asked, if need be by plain loops. */
START_TEST(no_way_makes_the_library_fall_back_on_its_reference)
{
    coh_choices *table = all(&net, (coh_way)_i);
    nn_trial direct = nn_trial_new(&net, NN_THREADS);
    nn_trial other = nn_trial_new_by(&net, NN_THREADS, table);

    ck_assert_int_le(references(&other), references(&direct));
    nn_trial_end(&direct);
    nn_trial_end(&other);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(what_is_measured_calculates_the_same)
{
    coh_choices *table = choices_of(&net, coh_choices_measure);

    must_agree(table);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(layers_with_weights_but_without_ways_are_no_trouble)
{
    coh_choices *table =
        choices_of(&normed, _i == 0 ? coh_choices_measure : winograd);
    coh_model *model = nn_model_new(&normed);
    char text[128];
    int passes = 0, one, used;

    must_agree_on(&normed, table);
    coh_choices_summarize(table, model, true, text, sizeof text);
    ck_assert_ptr_null(strstr(text, "stem"));
    for (const char *at = text; sscanf(at, "%d %*[a-z_]%n", &one, &used) == 1;
         at += strspn(at, ", ")) {
        passes += one;
        at += used;
    }
    ck_assert_int_eq(passes, 4 * 3);
    coh_model_destroy(&model);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(equal_choices_give_equal_bits)
{
    coh_choices *table = choices_of(&net, coh_choices_measure);
    nn_trial a = nn_trial_new_by(&net, NN_THREADS, table);
    nn_trial b = nn_trial_new_by(&net, NN_THREADS, table);

    nn_trial_train(&a);
    nn_trial_train(&b);
    ck_assert_mem_eq(a.gradient, b.gradient,
                     (size_t)a.model->parameters * sizeof(float));
    ck_assert(a.sums.loss == b.sums.loss);
    nn_trial_end(&a);
    nn_trial_end(&b);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(a_small_network_is_direct_without_being_measured)
{
    coh_choices *table = choices_of(&tiny, coh_choices_measure);
    coh_model *model = nn_model_new(&tiny);
    char text[64];

    ck_assert(!coh_choices_need_measure(model, tiny.batch));
    ck_assert(coh_choices_need_measure(model, 10000));
    coh_choices_summarize(table, model, true, text, sizeof text);
    ck_assert_str_eq(text, "5 direct");
    coh_model_destroy(&model);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(a_layer_that_cannot_be_measured_is_named)
{
    coh_model *model = nn_model_new(&net);
    const coh_choice_key key = key_of(model, net.batch);
    coh_err err = COH_ERR_INIT;
    coh_choices *table = NULL;

    model->layers[3].pad_after[0] += 5;
    ck_assert_int_eq(coh_choices_measure(model, &key, true, &table, &err),
                     COH_E_FAILED);
    ck_assert_ptr_null(table);
    ck_assert_msg(strstr(err.text, "layer3") != NULL, "%s", err.text);
    coh_model_destroy(&model);
}
END_TEST

/* Blocked, its one channel, and the weights of each, would be sixteen. */
START_TEST(dense_on_few_channels_is_not_measured_as_on_many)
{
    const coh_layer layer = {
        .spec = { .kind = COH_LAYER_DENSE, .filters = 4 },
        .in = { 1, 64, 64 },
        .out = { 4, 1, 1 },
    };
    coh_layer many = layer;

    many.in = (coh_shape){ 64, 8, 8 };
    ck_assert_int_eq(
        coh_linear_spec(&layer, 1, COH_PASS_INFER, COH_WAY_DIRECT).src.format,
        COH_FORMAT_PLAIN);
    ck_assert_int_eq(
        coh_linear_spec(&many, 1, COH_PASS_INFER, COH_WAY_DIRECT).src.format,
        COH_FORMAT_BLOCKED);
}
END_TEST

static Suite *nn_measure_suite(void)
{
    Suite *suite = suite_create("nn_measure");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_test(core, winograd_gradients_are_those_of_direct_within_1e_4);
    tcase_add_loop_test(
        core, every_way_calculates_the_same_and_one_that_is_refused_is_direct,
        0, COH_WAY_COUNT);
    tcase_add_loop_test(core,
                        no_way_makes_the_library_fall_back_on_its_reference, 0,
                        COH_WAY_COUNT);
    tcase_add_test(core, what_is_measured_calculates_the_same);
    tcase_add_loop_test(
        core, layers_with_weights_but_without_ways_are_no_trouble, 0, 2);
    tcase_add_test(core, equal_choices_give_equal_bits);
    tcase_add_test(core, a_small_network_is_direct_without_being_measured);
    tcase_add_test(core, a_layer_that_cannot_be_measured_is_named);
    tcase_add_test(core, dense_on_few_channels_is_not_measured_as_on_many);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_measure_suite)
