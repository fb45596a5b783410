/* timed.c - see timed.h. */
#include "worker/timed.h"

#include <math.h>
#include <stdlib.h>

typedef struct timed {
    const coh_model *model;
    coh_timed_spend spend;
    void *user;
} timed;

/* Sums over rows, of their loss_weight: all, and times c. */
typedef struct pull {
    double weight, to;
} pull;

static pull pull_of(const coh_batch *batch)
{
    pull sum = { 0, 0 };

    for (int64_t row = 0; row < batch->count; row++) {
        sum.weight += (double)batch->loss_weights[row];
        sum.to += (double)batch->loss_weights[row] *
                  (double)(batch->samples[row] % 2);
    }
    return sum;
}

/* One pass of a layer, over all rows. */
static void pass(const timed *self, const coh_layer *layer,
                 const coh_batch *batch)
{
    if (layer->flop > 0)
        self->spend(self->user, (double)layer->flop * (double)batch->capacity);
}

static int64_t end_of(const coh_layer *layer)
{
    return layer->weight_first + coh_layer_parameters(layer);
}

/* 1/2 sum (w - c)^2 over the rows and the layer's trained parameters; c is 0
 * or 1, so that c^2 is c. */
static double loss_of(const coh_layer *layer, const float *weights, pull rows)
{
    const int64_t trained = layer->weight_count + layer->bias_count;
    const float *w = weights + layer->weight_first;
    double sum = 0, squares = 0;

    for (int64_t i = 0; i < trained; i++) {
        sum += (double)w[i];
        squares += (double)w[i] * (double)w[i];
    }
    return 0.5 * rows.weight * squares - rows.to * sum +
           0.5 * rows.to * (double)trained;
}

static void forward(const timed *self, const coh_batch *batch,
                    const float *weights, coh_step_sums *sums,
                    const coh_watch *watch)
{
    const coh_model *model = self->model;
    const pull rows = pull_of(batch);

    *sums = (coh_step_sums){ .weight = rows.weight };
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        if (watch != NULL)
            watch->need(watch->user, end_of(layer));
        sums->loss += loss_of(layer, weights, rows);
        pass(self, layer, batch);
    }
    sums->terms[0] = sums->loss;
}

/* A running statistic repeats what it was, times the weight. */
static void fill_gradient(const coh_layer *layer, const float *weights,
                          pull rows, float *gradient)
{
    const int64_t first = layer->weight_first, end = end_of(layer);
    const int64_t trained = end - layer->statistic_count;
    const float weight = (float)rows.weight, to = (float)rows.to;

    for (int64_t i = first; i < trained; i++)
        gradient[i] = weight * weights[i] - to;
    for (int64_t i = trained; i < end; i++)
        gradient[i] = weight * weights[i];
}

static void backward(const timed *self, const coh_batch *batch,
                     const float *weights, float *gradient,
                     const coh_watch *watch)
{
    const pull rows = pull_of(batch);

    for (int i = self->model->nlayers - 1; i >= 0; i--) {
        const coh_layer *layer = &self->model->layers[i];
        if (layer->needs_diff[0])
            pass(self, layer, batch);
        if (watch != NULL)
            watch->have(watch->user, end_of(layer));
        pass(self, layer, batch);
        fill_gradient(layer, weights, rows, gradient);
        if (watch != NULL)
            watch->have(watch->user, layer->weight_first);
    }
}

static void train(void *thing, const coh_batch *batch, const float *weights,
                  float *gradient, coh_step_sums *sums, const coh_watch *watch)
{
    forward(thing, batch, weights, sums, watch);
    backward(thing, batch, weights, gradient, watch);
}

static void infer(void *thing, const coh_batch *batch, const float *weights,
                  float *log_probs, coh_step_sums *sums)
{
    const timed *self = thing;
    const int64_t classes = self->model->classes;

    forward(self, batch, weights, sums, NULL);
    for (int64_t i = 0; i < batch->capacity * classes; i++)
        log_probs[i] = -logf((float)classes);
}

static void destroy(void **self)
{
    free(*self);
    *self = NULL;
}

coh_status coh_timed_new(const coh_model *model, coh_timed_spend spend,
                         void *user, coh_compute *out, coh_err *err)
{
    timed *self = malloc(sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a timed network");

    *self = (timed){ model, spend, user };
    *out = (coh_compute){
        .self = self, .train = train, .infer = infer, .destroy = destroy
    };
    return COH_OK;
}
