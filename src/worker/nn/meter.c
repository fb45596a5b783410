/* meter.c - see meter.h. */
#include "worker/nn/meter.h"

#include <math.h>

#include "common/clock.h"

static const double look_s = 0.03;     /* of repetitions */
static const double late_s = 0.05;     /* the same, after the budget */
static const double enough_s = 0.5;    /* of all ways of one pass */
static const double bytes_least = 1e6; /* of weights whose copy counts */
static const double never_s = 1e9;
enum { LOOKS_LEAST = 3, LOOKS_MOST = 10 };

coh_status coh_meter_init(coh_meter *self, double budget_s, coh_err *err)
{
    *self = (coh_meter){ .end = coh_clock_now_s() + budget_s };
    return coh_dnn_new(&self->dnn, err);
}

void coh_meter_fini(coh_meter *self)
{
    coh_arena_fini(&self->arena);
    coh_dnn_destroy(&self->dnn);
}

static double look(const coh_meter *self, coh_probe *probe)
{
    double least = coh_probe_time(probe), sum = 0;

    if (least > late_s && coh_clock_now_s() > self->end)
        return least;
    for (int n = 1; n < LOOKS_MOST && (n < LOOKS_LEAST || sum < look_s); n++) {
        const double seconds = coh_probe_time(probe);
        least = fmin(least, seconds);
        sum += seconds;
    }
    return least;
}

double coh_meter_copy(coh_meter *self, const coh_layout *from,
                      const coh_layout *to)
{
    coh_probe *probe = NULL;
    double seconds = never_s;

    if (coh_probe_new_reorder(self->dnn, from, to, &self->arena, &probe,
                              NULL) == COH_OK)
        seconds = look(self, probe);
    coh_probe_destroy(&probe);
    return seconds;
}

static int path_format_of(const coh_layout *layout)
{
    return (int)coh_layout_format(layout) - COH_FORMAT_PLAIN;
}

/* Weights are plain in the flat vector, and so is their gradient. */
static double copy_weights(coh_meter *self, const coh_op *op, coh_dims dims)
{
    const coh_layout *read = coh_op_layout(op, COH_ARG_WEIGHTS);
    const coh_layout *written = coh_op_layout(op, COH_ARG_DIFF_WEIGHTS);
    const coh_layout *layout = read != NULL ? read : written;
    coh_tensor *plain = NULL;
    double seconds = 0;

    if ((double)coh_layout_bytes(layout) < bytes_least ||
        coh_tensor_new_plain(self->dnn, dims, &plain, NULL) != COH_OK)
        return 0;
    const coh_layout *flat = coh_tensor_layout(plain);
    if (!coh_layout_equal(flat, layout))
        seconds = read != NULL ? coh_meter_copy(self, flat, layout)
                               : coh_meter_copy(self, layout, flat);
    coh_tensor_destroy(&plain);
    return seconds;
}

static const coh_layout *either(const coh_op *op, coh_arg arg, coh_arg gradient)
{
    const coh_layout *layout = coh_op_layout(op, arg);
    return layout != NULL ? layout : coh_op_layout(op, gradient);
}

static void take_formats(const coh_op *op, bool takes_any, coh_path_way *way)
{
    *way = (coh_path_way){
        .exists = true,
        .seconds = 0,
        .src = takes_any
                   ? COH_PATH_ANY
                   : path_format_of(either(op, COH_ARG_SRC, COH_ARG_DIFF_SRC)),
        .dst = path_format_of(either(op, COH_ARG_DST, COH_ARG_DIFF_DST)),
    };
}

/* Sets the seconds of all ways that have a probe. */
static void race(const coh_meter *self, coh_probe *const *probes,
                 coh_path_way *ways)
{
    double best = INFINITY, sum = 0;

    for (int w = 0; w < COH_WAY_COUNT; w++)
        ways[w].seconds = INFINITY;
    for (int n = 0; n < LOOKS_MOST && (n < LOOKS_LEAST || sum < look_s); n++) {
        for (int w = 0; w < COH_WAY_COUNT; w++) {
            if (!ways[w].exists || (n > 0 && ways[w].seconds > 3 * best))
                continue;
            const double seconds = coh_probe_time(probes[w]);
            ways[w].seconds = fmin(ways[w].seconds, seconds);
            sum += seconds;
        }
        for (int w = 0; w < COH_WAY_COUNT; w++)
            best = fmin(best, ways[w].seconds);
        if ((sum > late_s && coh_clock_now_s() > self->end) ||
            (n > 0 && sum > enough_s))
            break;
    }
}

/* A probe for each way there is. */
static coh_status make_probes(coh_meter *self, const coh_op_spec *specs,
                              coh_path_way *ways, coh_probe **probes,
                              coh_err *err)
{
    for (int w = 0; w < COH_WAY_COUNT; w++) {
        coh_err refusal = COH_ERR_INIT;
        if (specs[w].name == NULL)
            continue;
        const coh_status status = coh_probe_new(
            self->dnn, &specs[w], &self->arena, &probes[w], &refusal);
        if (status == COH_OK)
            take_formats(coh_probe_op(probes[w]),
                         w == COH_WAY_DIRECT && specs[w].kind == COH_OP_DENSE,
                         &ways[w]);
        if (status == COH_OK && w != COH_WAY_DIRECT &&
            coh_op_is_reference(coh_probe_op(probes[w])))
            ways[w].exists = false;
        if (status != COH_OK && w == COH_WAY_DIRECT)
            return coh_fail(err, status, "%s", refusal.text);
    }
    return COH_OK;
}

coh_status coh_meter_ways(coh_meter *self, const coh_op_spec *specs,
                          bool is_timed, coh_path_way *ways, coh_err *err)
{
    coh_probe *probes[COH_WAY_COUNT] = { NULL };

    const coh_status status = make_probes(self, specs, ways, probes, err);
    if (status == COH_OK && is_timed)
        race(self, probes, ways);
    for (int w = 0; w < COH_WAY_COUNT; w++) {
        if (status == COH_OK && is_timed && ways[w].exists)
            ways[w].seconds += copy_weights(self, coh_probe_op(probes[w]),
                                            specs[w].weights.dims);
        coh_probe_destroy(&probes[w]);
    }
    return status;
}

double coh_meter_pool(coh_meter *self, const coh_op_spec *spec)
{
    coh_probe *forward = NULL, *backward = NULL;
    double seconds = 0;

    if (coh_probe_new(self->dnn, spec, &self->arena, &forward, NULL) != COH_OK)
        return 0;
    seconds += look(self, forward);
    coh_op_spec back = *spec;
    back.pass = COH_PASS_DATA;
    back.forward = coh_probe_op(forward);
    if (spec->pass == COH_PASS_TRAIN &&
        coh_probe_new(self->dnn, &back, &self->arena, &backward, NULL) ==
            COH_OK)
        seconds += look(self, backward);
    coh_probe_destroy(&backward);
    coh_probe_destroy(&forward);
    return seconds;
}
