/* measure.c - see measure.h. */
#include "worker/nn/measure.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "worker/nn/layer_ops.h"
#include "worker/nn/meter.h"
#include "worker/nn/path.h"
#include "worker/nn/peak.h"
#include "worker/nn/stem.h"
#include "worker/nn/winograd.h"

/* Less than this is not worth a look: some 30 us of a core. */
static const double flop_least = 5e6;
static const double budget_s = 6.0;   /* of all; then less */
static const double copy_bytes = 3e7; /* of a change of layout that is timed */
static const double bytes_least = 1e6;
static const double peak_s = 0.2;
static const double long_s = 0.1; /* of a pass that is looked at once */

typedef struct measuring {
    coh_meter meter;
    const coh_model *model;
    int64_t batch;
    bool training;
    coh_path_layer *layers; /* [nlayers] */
    coh_path_copy copy;
    coh_peak peak;
} measuring;

static bool is_large(const coh_layer *layer, int64_t batch)
{
    return (double)layer->flop * (double)batch >= flop_least;
}

static coh_pass pass_of(const measuring *self, coh_chosen chosen)
{
    static const coh_pass passes[] = {
        [COH_CHOSEN_FORWARD] = COH_PASS_TRAIN,
        [COH_CHOSEN_DATA] = COH_PASS_DATA,
        [COH_CHOSEN_WEIGHTS] = COH_PASS_WEIGHTS,
    };
    return self->training ? passes[chosen] : COH_PASS_INFER;
}

/* --- changes of layout -------------------------------------------------- */

static coh_format format_of(int path_format)
{
    return (coh_format)(path_format + COH_FORMAT_PLAIN);
}

/* All six, at the layer with the largest output, on some of its rows. */
static coh_status time_copies(measuring *self, coh_err *err)
{
    const coh_layer *most = &self->model->layers[0];
    coh_tensor *tensors[COH_PATH_FORMATS] = { NULL };
    coh_status status = COH_OK;

    for (int i = 1; i < self->model->nlayers; i++) {
        const coh_layer *layer = &self->model->layers[i];
        if (coh_shape_count(layer->out) > coh_shape_count(most->out))
            most = layer;
    }
    const double row = (double)coh_shape_count(most->out) * sizeof(float);
    const int64_t rows =
        (int64_t)fmax(1, fmin((double)self->batch, floor(copy_bytes / row)));
    const coh_dims dims = { 4,
                            { rows, most->out.c, most->out.h, most->out.w } };
    for (int f = 0; f < COH_PATH_FORMATS && status == COH_OK; f++)
        status = coh_tensor_new_in(self->meter.dnn, dims, format_of(f),
                                   &tensors[f], err);
    for (int f = 0; f < COH_PATH_FORMATS && status == COH_OK; f++) {
        for (int t = 0; t < COH_PATH_FORMATS; t++) {
            if (t != f)
                self->copy[f][t] =
                    coh_meter_copy(&self->meter, coh_tensor_layout(tensors[f]),
                                   coh_tensor_layout(tensors[t])) /
                    (row * (double)rows);
        }
    }
    for (int f = 0; f < COH_PATH_FORMATS; f++)
        coh_tensor_destroy(&tensors[f]);
    return status;
}

/* --- layers with ways --------------------------------------------------- */

/* Does it take less time than the sums it stands for, at the peak? Then nothing
 * direct needs to be timed. */
static bool beats_all(const measuring *self, int i, double seconds)
{
    const double flop =
        (double)self->model->layers[i].flop * (double)self->batch;

    return seconds * 1e9 * coh_peak_gflops(&self->peak) < flop;
}

/* A pass by winograd.h, as a way; infinite seconds if it cannot be done so. */
static coh_path_way time_winograd(measuring *self, int i, coh_chosen chosen)
{
    enum { LOOKS = 3 };
    const coh_layer *layer = &self->model->layers[i];
    const bool is_conv = layer->spec.kind == COH_LAYER_CONV2D;
    const bool is_forward = chosen == COH_CHOSEN_FORWARD;
    const coh_winograd_pass pass = chosen == COH_CHOSEN_WEIGHTS
                                       ? COH_WINOGRAD_WEIGHTS
                                   : is_forward == is_conv ? COH_WINOGRAD_COARSE
                                                           : COH_WINOGRAD_FINE;
    coh_path_way way = { .seconds = INFINITY,
                         .src = COH_PATH_BLOCKED,
                         .dst = COH_PATH_BLOCKED };

    if (!coh_linear_can_winograd(layer) || !is_large(layer, self->batch))
        return way;
    const coh_winograd shape = coh_winograd_of(layer, self->batch);
    for (int n = 0; n < LOOKS && !beats_all(self, i, way.seconds) &&
                    !(way.seconds > long_s && n > 0);
         n++)
        way.seconds = fmin(way.seconds,
                           coh_winograd_time(&shape, pass, &self->meter.arena));
    way.exists = isfinite(way.seconds);
    return way;
}

/* All ways of one pass; if it is too small, only direct. */
static coh_status time_pass(measuring *self, int i, coh_chosen chosen,
                            const coh_op *forward, coh_err *err)
{
    const coh_layer *layer = &self->model->layers[i];
    const bool is_timed = is_large(layer, self->batch);
    coh_op_spec specs[COH_WAY_COUNT] = { { .name = NULL } };
    coh_path_way *ways = self->layers[i].ways[chosen];

    const coh_path_way winograd = time_winograd(self, i, chosen);
    if (beats_all(self, i, winograd.seconds)) {
        ways[COH_WAY_WINOGRAD] = winograd;
        return COH_OK;
    }
    for (int w = 0; w < COH_WAY_COUNT; w++) {
        if (!coh_linear_has_way(layer, (coh_way)w) ||
            (w != COH_WAY_DIRECT && !is_timed))
            continue;
        specs[w] = coh_linear_spec(layer, self->batch, pass_of(self, chosen),
                                   (coh_way)w);
        specs[w].forward = forward;
        specs[w].then_relu =
            chosen == COH_CHOSEN_FORWARD && coh_layer_is_relu(layer + 1);
    }
    const coh_status status =
        coh_meter_ways(&self->meter, specs, is_timed, ways, err);
    ways[COH_WAY_WINOGRAD] = winograd;
    return status;
}

static coh_status time_linear(measuring *self, int i, coh_err *err)
{
    coh_path_layer *it = &self->layers[i];
    const coh_layer *layer = &self->model->layers[i];
    coh_op *forward = NULL;

    it->has_ways = true;
    const coh_op_spec spec = coh_linear_spec(
        layer, self->batch, pass_of(self, COH_CHOSEN_FORWARD), COH_WAY_DIRECT);
    coh_status status = coh_op_new(self->meter.dnn, &spec, &forward, err);
    if (status == COH_OK)
        status = time_pass(self, i, COH_CHOSEN_FORWARD, NULL, err);
    if (status == COH_OK && self->training)
        status = time_pass(self, i, COH_CHOSEN_WEIGHTS, forward, err);
    if (status == COH_OK && self->training && it->has_data)
        status = time_pass(self, i, COH_CHOSEN_DATA, forward, err);
    coh_op_destroy(&forward);
    return status;
}

/* --- layers without ways ------------------------------------------------ */

/* In one format. */
static double time_pool(measuring *self, const coh_layer *layer, int format)
{
    coh_op_spec spec =
        coh_pool_spec(layer, self->batch, pass_of(self, COH_CHOSEN_FORWARD));

    spec.src = (coh_operand){
        .dims = { 4, { self->batch, layer->in.c, layer->in.h, layer->in.w } },
        .format = format_of(format)
    };
    spec.dst.format = format_of(format);
    return coh_meter_pool(&self->meter, &spec);
}

static void time_follower(measuring *self, int i)
{
    const coh_layer *layer = &self->model->layers[i];
    coh_path_layer *it = &self->layers[i];

    it->flattens = layer->spec.kind == COH_LAYER_FLATTEN ||
                   layer->spec.kind == COH_LAYER_LAYER_NORM ||
                   layer->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY;
    if (!coh_layer_is_pool(layer) || it->src_bytes < bytes_least)
        return;
    for (int f = 0; f < COH_PATH_FORMATS; f++)
        it->follow[f] = time_pool(self, layer, f);
}

/* --- all ---------------------------------------------------------------- */

static double least_of(const coh_path_way ways[COH_WAY_COUNT])
{
    double least = INFINITY;

    for (int w = 0; w < COH_WAY_COUNT; w++) {
        if (ways[w].exists)
            least = fmin(least, ways[w].seconds);
    }
    return least;
}

/* The first layer with ways as a stem, if that takes less time than its
 * passes and those of its pool by the library. */
static void time_stem(measuring *self)
{
    int i = 0, pool = 0;

    while (!coh_layer_has_ways(&self->model->layers[i]))
        i++; /* there is one: it was timed */
    const coh_layer *layer = &self->model->layers[i];
    coh_path_layer *it = &self->layers[i];
    if (!self->training || it->has_data || !is_large(layer, self->batch) ||
        !coh_stem_can_run() || coh_dnn_block() != 16 ||
        !coh_stem_fits(layer, &pool))
        return;
    const coh_stem stem = coh_stem_of(layer, self->batch);
    coh_arena_fini(&self->meter.arena); /* it has memory of its own */
    const double seconds = coh_stem_time(&stem);
    if (seconds >= least_of(it->ways[COH_CHOSEN_FORWARD]) +
                       least_of(it->ways[COH_CHOSEN_WEIGHTS]) +
                       it[pool].follow[COH_PATH_BLOCKED])
        return;
    for (int w = 0; w < COH_WAY_COUNT; w++)
        it->ways[COH_CHOSEN_FORWARD][w].exists =
            it->ways[COH_CHOSEN_WEIGHTS][w].exists = false;
    it->ways[COH_CHOSEN_FORWARD][COH_WAY_STEM] =
        it->ways[COH_CHOSEN_WEIGHTS][COH_WAY_STEM] =
            (coh_path_way){ true, seconds / 2, COH_PATH_PLAIN,
                            COH_PATH_BLOCKED };
    memset(it[pool].follow, 0, sizeof it[pool].follow);
}

static coh_status time_layers(measuring *self, coh_err *err)
{
    const coh_model *model = self->model;
    coh_status status = time_copies(self, err);

    for (int i = 0; i < model->nlayers && status == COH_OK; i++) {
        const coh_layer *layer = &model->layers[i];
        coh_path_layer *it = &self->layers[i];
        const double row = (double)self->batch * sizeof(float);
        it->has_data = layer->needs_diff[0];
        it->src_bytes = row * (double)coh_shape_count(layer->in);
        it->dst_bytes = row * (double)coh_shape_count(layer->out);
        if (coh_layer_has_ways(layer))
            status = time_linear(self, i, err);
        else
            time_follower(self, i);
    }
    if (status == COH_OK)
        time_stem(self);
    return status;
}

bool coh_choices_need_measure(const coh_model *model, int64_t batch)
{
    for (int i = 0; i < model->nlayers; i++) {
        if (is_large(&model->layers[i], batch))
            return true;
    }
    return false;
}

/* Begin; end with fini() whatever is returned. */
static coh_status init(measuring *self, const coh_model *model,
                       const coh_choice_key *key, bool training, coh_err *err)
{
    *self = (measuring){ .model = model,
                         .batch = key->batch,
                         .training = training };
    omp_set_num_threads(key->threads);
    self->layers = calloc((size_t)model->nlayers, sizeof *self->layers);
    if (self->layers == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory to choose algorithms");
    const coh_status status = coh_meter_init(&self->meter, budget_s, err);
    return status == COH_OK ? coh_peak_measure(peak_s, &self->peak, err)
                            : status;
}

static void fini(measuring *self)
{
    coh_meter_fini(&self->meter);
    free(self->layers);
}

coh_status coh_choices_measure(const coh_model *model,
                               const coh_choice_key *key, bool training,
                               coh_choices **out, coh_err *err)
{
    coh_choices *table = NULL;
    measuring self;
    double seconds = 0;

    coh_status status = coh_choices_new(model, key, &table, err);
    if (status != COH_OK)
        return status;
    if (coh_choices_need_measure(model, key->batch)) {
        status = init(&self, model, key, training, err);
        if (status == COH_OK)
            status = time_layers(&self, err);
        if (status == COH_OK)
            status = coh_path_find(self.layers, model->nlayers,
                                   (const double(*)[COH_PATH_FORMATS])self.copy,
                                   training, table, &seconds, err);
        fini(&self);
    }
    if (status == COH_OK)
        *out = table;
    else
        coh_choices_destroy(&table);
    return status;
}

/* --- Winograd everywhere ------------------------------------------------ */

coh_status coh_choices_winograd(const coh_model *model,
                                const coh_choice_key *key, coh_choices **out,
                                coh_err *err)
{
    const coh_status status = coh_choices_new(model, key, out, err);

    for (int i = 0; i < model->nlayers && status == COH_OK; i++) {
        if (!coh_linear_can_winograd(&model->layers[i]))
            continue;
        for (int chosen = 0; chosen < COH_CHOSEN_COUNT; chosen++)
            coh_choices_set(*out, i, (coh_chosen)chosen, COH_WAY_WINOGRAD);
    }
    return status;
}
