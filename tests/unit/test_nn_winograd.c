/* Winograd against plain loops in double, and in networks against the library.
 */
#include "support/check_run.h"
#include "support/nn_nets.h"
#include "worker/nn/choice.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/winograd.h"

enum { LANE = 16 };

/* Kernels of 2 to 5 taps in a phase; tiles that divide and that do not; sides
 * smaller than a tile, longer than wide; padding on both sides, on one, none,
 * and more than the kernel needs. */
typedef struct conv_case {
    int64_t batch, in, out, size[2], kernel[2], stride, before[2], after[2];
} conv_case;

static const conv_case cases[] = {
    { 1, 16, 32, { 13, 13 }, { 3, 3 }, 1, { 1, 1 }, { 1, 1 } },
    { 2, 32, 16, { 24, 24 }, { 7, 7 }, 2, { 3, 3 }, { 3, 3 } },
    { 1, 48, 16, { 9, 21 }, { 5, 5 }, 1, { 2, 2 }, { 2, 2 } },
    { 3, 16, 16, { 12, 12 }, { 4, 4 }, 2, { 1, 1 }, { 1, 1 } },
    { 1, 16, 48, { 17, 8 }, { 3, 3 }, 2, { 0, 0 }, { 1, 1 } },
    { 1, 32, 32, { 15, 15 }, { 5, 5 }, 2, { 2, 2 }, { 2, 2 } },
    { 2, 16, 16, { 3, 4 }, { 2, 2 }, 1, { 0, 0 }, { 0, 0 } },
    { 1, 16, 16, { 14, 11 }, { 4, 4 }, 1, { 0, 1 }, { 3, 2 } },
    { 1, 16, 16, { 11, 10 }, { 3, 5 }, 1, { 1, 2 }, { 1, 2 } },
    { 1, 16, 16, { 7, 7 }, { 3, 3 }, 1, { 2, 2 }, { 2, 2 } },
    { 14, 16, 16, { 20, 20 }, { 3, 3 }, 1, { 1, 1 }, { 1, 1 } },
};
enum { CASES = sizeof cases / sizeof cases[0] };

static coh_layer layer_of(const conv_case *it)
{
    coh_layer layer = { .spec = { .kind = COH_LAYER_CONV2D, .groups = 1 },
                        .in = { it->in, it->size[0], it->size[1] } };
    int64_t out[2];

    for (int d = 0; d < 2; d++) {
        layer.spec.kernel[d] = it->kernel[d];
        layer.spec.stride[d] = it->stride;
        layer.spec.dilation[d] = 1;
        layer.pad_before[d] = it->before[d];
        layer.pad_after[d] = it->after[d];
        out[d] = (it->size[d] + it->before[d] + it->after[d] - it->kernel[d]) /
                     it->stride +
                 1;
    }
    layer.out = (coh_shape){ it->out, out[0], out[1] };
    return layer;
}

/* 64-byte aligned, for the caller to free. */
static float *floats(int64_t count, uint64_t stream)
{
    const size_t bytes = ((size_t)count * sizeof(float) + 63) / 64 * 64;
    float *values = aligned_alloc(64, bytes);

    ck_assert_ptr_nonnull(values);
    for (int64_t i = 0; i < count; i++) {
        const uint64_t hash =
            (stream << 32 | (uint64_t)i) * 0x9e3779b97f4a7c15u;
        values[i] = (float)(int)(hash >> 48) / 32768.0f - 1;
    }
    return values;
}

typedef struct bed {
    coh_winograd shape;
    int64_t fine_count, coarse_count, weight_count;
    float *fine, *coarse, *weights, *work;
    double *sums; /* as many as the longest of the three */
} bed;

static bed bed_new(const conv_case *it)
{
    const coh_layer layer = layer_of(it);
    bed self = { .shape = coh_winograd_of(&layer, it->batch) };
    int64_t work = 0;

    ck_assert(coh_winograd_fits(&layer));
    self.fine_count = it->batch * coh_shape_count(layer.in);
    self.coarse_count = it->batch * coh_shape_count(layer.out);
    self.weight_count = it->in * it->out * it->kernel[0] * it->kernel[1];
    for (int pass = 0; pass < 3; pass++) {
        const int64_t count =
            coh_winograd_work_count(&self.shape, (coh_winograd_pass)pass);
        work = work > count ? work : count;
    }
    self.fine = floats(self.fine_count, 1);
    self.coarse = floats(self.coarse_count, 2);
    self.weights = floats(self.weight_count, 3);
    self.work = floats(work, 4);
    self.sums = calloc(
        (size_t)(self.fine_count + self.coarse_count + self.weight_count),
        sizeof *self.sums);
    ck_assert_ptr_nonnull(self.sums);
    return self;
}

static void bed_end(bed *self)
{
    free(self->fine);
    free(self->coarse);
    free(self->weights);
    free(self->work);
    free(self->sums);
}

/* Where value (b, c, y, x) is in nChw16c. */
static int64_t at(int64_t channels, const int64_t size[2], int64_t b, int64_t c,
                  int64_t y, int64_t x)
{
    return (((b * channels + c / LANE * LANE) * size[0] + y * LANE) * size[1]) +
           x * LANE + c % LANE;
}

/* Add all products to the sums of one of the three. */
static void convolve(bed *self, coh_winograd_pass pass)
{
    const coh_winograd *s = &self->shape;
    const int64_t outs = s->batch * s->coarse[0] * s->coarse[1];
    const int64_t taps = s->kernel[0] * s->kernel[1];

    for (int64_t i = 0; i < outs * taps; i++) {
        const int64_t tap = i % taps, place = i / taps;
        const int64_t b = place / (s->coarse[0] * s->coarse[1]);
        const int64_t p = place / s->coarse[1] % s->coarse[0];
        const int64_t q = place % s->coarse[1];
        const int64_t y = p * s->stride + tap / s->kernel[1] - s->before[0];
        const int64_t x = q * s->stride + tap % s->kernel[1] - s->before[1];
        if (y < 0 || x < 0 || y >= s->fine[0] || x >= s->fine[1])
            continue;
        for (int64_t k = 0; k < s->fine_channels * s->coarse_channels; k++) {
            const int64_t c = k % s->fine_channels, o = k / s->fine_channels;
            const int64_t fine = at(s->fine_channels, s->fine, b, c, y, x);
            const int64_t coarse =
                at(s->coarse_channels, s->coarse, b, o, p, q);
            const int64_t w = k * taps + tap;
            if (pass == COH_WINOGRAD_COARSE)
                self->sums[coarse] +=
                    (double)self->fine[fine] * (double)self->weights[w];
            else if (pass == COH_WINOGRAD_FINE)
                self->sums[fine] +=
                    (double)self->coarse[coarse] * (double)self->weights[w];
            else
                self->sums[w] +=
                    (double)self->fine[fine] * (double)self->coarse[coarse];
        }
    }
}

static void run(bed *self, coh_winograd_pass pass, coh_winograd_end end,
                float *out)
{
    if (pass == COH_WINOGRAD_COARSE)
        coh_winograd_to_coarse(&self->shape, self->fine, self->weights, end,
                               self->work, out);
    else if (pass == COH_WINOGRAD_FINE)
        coh_winograd_to_fine(&self->shape, self->coarse, self->weights, end,
                             self->work, out);
    else
        coh_winograd_to_weights(&self->shape, self->fine, self->coarse,
                                self->work, out);
}

static int64_t count_of(const bed *self, coh_winograd_pass pass)
{
    return pass == COH_WINOGRAD_COARSE ? self->coarse_count
           : pass == COH_WINOGRAD_FINE ? self->fine_count
                                       : self->weight_count;
}

/* Relative to the root of the mean square; up to 5e-6 was measured. */
START_TEST(all_passes_give_the_sums_of_plain_loops)
{
    const coh_winograd_end plain = { .slope = 1 };
    const coh_winograd_pass pass = (coh_winograd_pass)(_i % 3);
    double error = 0, norm = 0;

    if (!coh_winograd_can_run())
        return;
    bed it = bed_new(&cases[_i / 3]);
    const int64_t count = count_of(&it, pass);
    float *out = floats(count, 5);
    it.shape.threads = NN_THREADS;
    convolve(&it, pass);
    run(&it, pass, plain, out);
    for (int64_t i = 0; i < count; i++) {
        error += pow((double)out[i] - it.sums[i], 2);
        norm += it.sums[i] * it.sums[i];
    }
    ck_assert_double_le(sqrt(error / norm), 2e-5);
    free(out);
    bed_end(&it);
}
END_TEST

START_TEST(any_number_of_threads_gives_the_same_bits)
{
    const coh_winograd_end plain = { .slope = 1 };
    const coh_winograd_pass pass = (coh_winograd_pass)_i;

    if (!coh_winograd_can_run() || NN_THREADS == 1)
        return;
    bed it = bed_new(&cases[1]);
    const int64_t count = count_of(&it, pass);
    float *one = floats(count, 5), *five = floats(count, 6);
    it.shape.threads = 1;
    run(&it, pass, plain, one);
    it.shape.threads = 5;
    run(&it, pass, plain, five);
    ck_assert_mem_eq(one, five, (size_t)count * sizeof(float));
    free(one);
    free(five);
    bed_end(&it);
}
END_TEST

START_TEST(bias_and_relu_are_applied_to_the_sums)
{
    const coh_winograd_pass pass = (coh_winograd_pass)_i;

    if (!coh_winograd_can_run())
        return;
    bed it = bed_new(&cases[1]);
    const int64_t count = count_of(&it, pass);
    const int64_t channels = pass == COH_WINOGRAD_COARSE
                                 ? it.shape.coarse_channels
                                 : it.shape.fine_channels;
    const int64_t plane = count / it.shape.batch / channels;
    float *plain = floats(count, 5), *ended = floats(count, 6);
    float *bias = floats(channels, 7);
    it.shape.threads = 1;
    run(&it, pass, (coh_winograd_end){ .slope = 1 }, plain);
    run(&it, pass, (coh_winograd_end){ bias, 0.25f }, ended);
    for (int64_t i = 0; i < count; i++) {
        const int64_t channel =
            i / (plane * LANE) % (channels / LANE) * LANE + i % LANE;
        const float sum = plain[i] + bias[channel];
        ck_assert_float_eq_tol(ended[i], sum < 0 ? 0.25f * sum : sum, 1e-6f);
    }
    free(plain);
    free(ended);
    free(bias);
    bed_end(&it);
}
END_TEST

START_TEST(a_bias_has_the_sum_of_its_channel_as_gradient)
{
    enum { BATCH = 3, CHANNELS = 48, PLANE = 700 };
    float sums[CHANNELS];

    if (!coh_winograd_can_run())
        return;
    float *values = floats(BATCH * CHANNELS * PLANE, 1);
    coh_winograd_sum(values, BATCH, CHANNELS, PLANE, sums);
    for (int c = 0; c < CHANNELS; c++) {
        double sum = 0;
        for (int64_t i = 0; i < BATCH * PLANE; i++)
            sum += (double)
                values[(i / PLANE * CHANNELS + c / LANE * LANE) * PLANE +
                       i % PLANE * LANE + c % LANE];
        ck_assert_double_eq_tol((double)sums[c], sum, 1e-4);
    }
    free(values);
}
END_TEST

START_TEST(what_cannot_be_done_does_not_fit)
{
    for (int i = 0; i < 9; i++) {
        coh_layer layer = layer_of(&cases[0]);
        ck_assert(coh_winograd_fits(&layer));
        switch (i) {
        case 0:
            layer.spec.groups = 2;
            break;
        case 1:
            layer.in.c = 24;
            break;
        case 2:
            layer.out.c = 8;
            break;
        case 3:
            layer.spec.stride[1] = 2;
            break;
        case 4:
            layer.spec.stride[0] = layer.spec.stride[1] = 3;
            break;
        case 5:
            layer.spec.dilation[0] = 2;
            break;
        case 6:
            layer.spec.kernel[0] = 6;
            break;
        case 7:
            layer.spec.kernel[0] = layer.spec.kernel[1] = 1;
            break;
        default:
            layer.spec.kind = COH_LAYER_DENSE;
            break;
        }
        ck_assert_msg(!coh_winograd_fits(&layer), "change %d", i);
    }
}
END_TEST

/* --- in networks --------------------------------------------------------- */

static const nn_case nets[] = {
    { { 16, 24, 24 },
      2,
      { CONV(.filters = 32, .kernel = { 7, 7 }, .stride = { 2, 2 },
             .padding = { 3, 3 }, .bias = true),
        RELU,
        CONV(.filters = 16, .kernel = { 3, 3 }, .same = true, .bias = true),
        LEAKY_RELU(0.2),
        DECONV(.filters = 32, .kernel = { 4, 4 }, .stride = { 2, 2 },
               .padding = { 1, 1 }, .bias = true),
        RELU, DENSE(3), LOSS } },
    { { 3, 16, 16 },
      1,
      { CONV(.filters = 16, .kernel = { 3, 3 }), RELU,
        CONV(.filters = 16, .kernel = { 3, 3 }), MAXPOOL(.kernel = { 2, 2 }),
        CONV(.filters = 48, .kernel = { 3, 3 }, .same = true), RELU, DENSE(3),
        LOSS } },
};
enum { NETS = sizeof nets / sizeof nets[0], MIXES = 9 };

/* Winograd in some passes, by chance, beside other ways. */
static coh_choices *mix_of(const nn_case *net, int seed)
{
    static const coh_way others[] = { COH_WAY_DIRECT, COH_WAY_LAST };
    coh_model *model = nn_model_new(net);
    const coh_choice_key key = { .threads = NN_THREADS };
    coh_choices *table = NULL;

    ck_assert_int_eq(coh_choices_new(model, &key, &table, NULL), COH_OK);
    for (int i = 0; i < model->nlayers; i++) {
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++) {
            const int dice = (seed * 37 + i * 11 + pass * 5) % 7;
            coh_choices_set(table, i, (coh_chosen)pass,
                            seed == 0 || dice < 3 ? COH_WAY_WINOGRAD
                                                  : others[dice % 2]);
        }
    }
    coh_model_destroy(&model);
    return table;
}

START_TEST(a_network_of_any_mix_calculates_what_the_library_does)
{
    const nn_case *net = &nets[_i / MIXES];
    coh_choices *table = mix_of(net, _i % MIXES);
    nn_trial direct = nn_trial_new(net, NN_THREADS);
    nn_trial mixed = nn_trial_new_by(net, NN_THREADS, table);
    double most = 0;

    nn_trial_train(&direct);
    nn_trial_train(&mixed);
    for (int64_t i = 0; i < direct.model->parameters; i++)
        most = fmax(most, fabs((double)direct.gradient[i]));
    for (int64_t i = 0; i < direct.model->parameters; i++)
        ck_assert_double_eq_tol((double)mixed.gradient[i],
                                (double)direct.gradient[i], 5e-5 * most);
    ck_assert_double_eq_tol(mixed.sums.loss, direct.sums.loss, 1e-4);
    nn_trial_infer(&direct);
    nn_trial_infer(&mixed);
    for (int64_t i = 0; i < net->batch * 3; i++)
        ck_assert_double_eq_tol((double)mixed.log_probs[i],
                                (double)direct.log_probs[i], 1e-4);
    nn_trial_end(&direct);
    nn_trial_end(&mixed);
    coh_choices_destroy(&table);
}
END_TEST

static Suite *nn_winograd_suite(void)
{
    Suite *suite = suite_create("nn_winograd");
    TCase *core = tcase_create("core");

    tcase_set_timeout(core, 60);
    tcase_add_loop_test(core, all_passes_give_the_sums_of_plain_loops, 0,
                        3 * CASES);
    tcase_add_loop_test(core, any_number_of_threads_gives_the_same_bits, 0, 3);
    tcase_add_loop_test(core, bias_and_relu_are_applied_to_the_sums, 0, 2);
    tcase_add_test(core, a_bias_has_the_sum_of_its_channel_as_gradient);
    tcase_add_test(core, what_cannot_be_done_does_not_fit);
    tcase_add_loop_test(core,
                        a_network_of_any_mix_calculates_what_the_library_does,
                        0, NETS * MIXES);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(nn_winograd_suite)
