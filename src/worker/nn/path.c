/* path.c - see path.h.
 *
 * State at a border: f, the format of the value as the layer before leaves it,
 * and g, that of its gradient as the layer behind leaves it. Layer i goes from
 * (f, g) at its input to (f2, g2) at its output; each step of the search adds
 * the least cost of that, over all ways of its passes.
 */
#include "worker/nn/path.h"

#include <math.h>
#include <stdlib.h>

enum { FORMATS = COH_PATH_FORMATS, STATES = FORMATS * FORMATS };

/* The best way to a state at the output of a layer. */
typedef struct arrival {
    double seconds;
    int from; /* state at its input */
    coh_way ways[COH_CHOSEN_COUNT];
} arrival;

typedef struct search {
    const coh_path_layer *layers;
    const double (*copy)[FORMATS];
    bool training;
    arrival *arrivals; /* [count + 1][STATES] */
} search;

static int state_of(int f, int g)
{
    return f * FORMATS + g;
}

static void offer(arrival *best, const arrival *offered)
{
    if (offered->seconds < best->seconds)
        *best = *offered;
}

/* A layer without ways: the gradient is brought into the value's format. */
static void follow(const search *self, int i, int f, const arrival *at)
{
    const coh_path_layer *layer = &self->layers[i];
    const bool back = self->training && layer->has_data;
    const int f2 = layer->flattens ? COH_PATH_PLAIN : f;
    const int g = back ? f2 : COH_PATH_PLAIN;
    arrival next = { .from = state_of(f, g) };

    for (int g2 = 0; g2 < FORMATS; g2++) {
        next.seconds = at[next.from].seconds + layer->follow[f] +
                       self->copy[f][f2] * layer->src_bytes +
                       (back ? self->copy[g2][f2] * layer->dst_bytes : 0);
        offer(&self->arrivals[(i + 1) * STATES + state_of(f2, g2)], &next);
    }
}

/* Both backward passes, given the forward pass: adds to `next`. */
static void go_back(const search *self, int i, int f, int g2, arrival next,
                    const arrival *at)
{
    const coh_path_layer *layer = &self->layers[i];
    const coh_path_way *forward =
        &layer->ways[COH_CHOSEN_FORWARD][next.ways[COH_CHOSEN_FORWARD]];
    const int kept = forward->src == COH_PATH_ANY ? f : forward->src;
    const int f2 = forward->dst;
    arrival *best = &self->arrivals[(i + 1) * STATES + state_of(f2, g2)];

    for (int w = 0; w < COH_WAY_COUNT; w++) {
        const coh_path_way *weights = &layer->ways[COH_CHOSEN_WEIGHTS][w];
        const bool has_src = weights->src == COH_PATH_ANY ||
                             weights->src == f || weights->src == kept;
        if (!weights->exists)
            continue;
        arrival sum = next;
        sum.ways[COH_CHOSEN_WEIGHTS] = (coh_way)w;
        sum.seconds +=
            weights->seconds + self->copy[g2][weights->dst] * layer->dst_bytes;
        if (!has_src)
            sum.seconds += self->copy[f][weights->src] * layer->src_bytes;
        if (!layer->has_data) {
            sum.from = state_of(f, COH_PATH_PLAIN);
            sum.seconds += at[sum.from].seconds;
            offer(best, &sum);
            continue;
        }
        for (int d = 0; d < COH_WAY_COUNT; d++) {
            const coh_path_way *data = &layer->ways[COH_CHOSEN_DATA][d];
            arrival all = sum;
            if (!data->exists)
                continue;
            all.ways[COH_CHOSEN_DATA] = (coh_way)d;
            all.from = state_of(f, data->src == COH_PATH_ANY ? f : data->src);
            all.seconds += data->seconds + at[all.from].seconds;
            if (data->dst != weights->dst)
                all.seconds += self->copy[g2][data->dst] * layer->dst_bytes;
            offer(best, &all);
        }
    }
}

static void go(const search *self, int i, int f, const arrival *at)
{
    const coh_path_layer *layer = &self->layers[i];

    for (int w = 0; w < COH_WAY_COUNT; w++) {
        const coh_path_way *way = &layer->ways[COH_CHOSEN_FORWARD][w];
        arrival next = { .seconds = way->seconds };
        if (!way->exists)
            continue;
        next.ways[COH_CHOSEN_FORWARD] = (coh_way)w;
        if (way->src != COH_PATH_ANY)
            next.seconds += self->copy[f][way->src] * layer->src_bytes;
        for (int g2 = 0; g2 < FORMATS && self->training; g2++)
            go_back(self, i, f, g2, next, at);
        if (self->training)
            continue;
        next.from = state_of(f, COH_PATH_PLAIN);
        next.seconds += at[next.from].seconds;
        offer(&self->arrivals[(i + 1) * STATES +
                              state_of(way->dst, COH_PATH_PLAIN)],
              &next);
    }
}

/* From the best state at the output back to the input. */
static double take_path(const search *self, int count, coh_choices *choices)
{
    const arrival *last = &self->arrivals[count * STATES];
    int state = state_of(0, COH_PATH_PLAIN);

    for (int f = 1; f < FORMATS; f++) {
        if (last[state_of(f, COH_PATH_PLAIN)].seconds < last[state].seconds)
            state = state_of(f, COH_PATH_PLAIN);
    }
    const double seconds = last[state].seconds;
    COH_ASSERT(isfinite(seconds));
    for (int i = count - 1; i >= 0; i--) {
        const arrival *at = &self->arrivals[(i + 1) * STATES + state];
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++) {
            if (self->layers[i].has_ways)
                coh_choices_set(choices, i, (coh_chosen)pass, at->ways[pass]);
        }
        state = at->from;
    }
    return seconds;
}

coh_status coh_path_find(const coh_path_layer *layers, int count,
                         const coh_path_copy copy, bool training,
                         coh_choices *choices, double *seconds, coh_err *err)
{
    const size_t room = (size_t)(count + 1) * STATES;
    search self = { layers, copy, training, calloc(room, sizeof(arrival)) };

    if (self.arrivals == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory to choose algorithms");
    for (size_t k = 0; k < room; k++)
        self.arrivals[k].seconds = INFINITY;
    /* whoever makes a gradient for the input of the network, in whatever
     * format: nobody asks */
    for (int g = 0; g < FORMATS; g++)
        self.arrivals[state_of(COH_PATH_PLAIN, g)].seconds = 0;
    for (int i = 0; i < count; i++) {
        const arrival *at = &self.arrivals[i * STATES];
        for (int f = 0; f < FORMATS; f++) {
            if (layers[i].has_ways)
                go(&self, i, f, at);
            else
                follow(&self, i, f, at);
        }
    }
    *seconds = take_path(&self, count, choices);
    free(self.arrivals);
    return COH_OK;
}
