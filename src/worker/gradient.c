/* gradient.c - see gradient.h. */
#include "worker/gradient.h"

#include <stdlib.h>

#include "common/add.h"
#include "common/memory.h"

enum { CHUNK = 16384 }; /* floats a thread adds at once */

struct coh_gradient {
    int64_t count;
    float *values; /* [count], owned: of the last batch, then of all */
    float *other;  /* [count], owned: the step before, with a lag; or NULL */
    float *before; /* [count], owned: of batches before the last; or NULL */

    /* The step under way. */
    int64_t batches;  /* so far */
    int64_t complete; /* values[complete, count) are the sum of all */
    bool is_last;     /* the batch under way */
    const coh_watch *watch;
};

static bool accumulates(const coh_config *config)
{
    return config->train.accumulate > 1;
}

int coh_gradient_vectors(const coh_config *config)
{
    return 1 + accumulates(config) + (config->exchange.lag > 0);
}

static bool allocate(float **out, int64_t count, bool is_wanted)
{
    *out = is_wanted ? coh_floats(count) : NULL;
    return !is_wanted || *out != NULL;
}

coh_status coh_gradient_new(const coh_config *config, int64_t parameters,
                            coh_gradient **out, coh_err *err)
{
    coh_gradient *self = calloc(1, sizeof *self);

    if (self == NULL || !allocate(&self->values, parameters, true) ||
        !allocate(&self->other, parameters, config->exchange.lag > 0) ||
        !allocate(&self->before, parameters, accumulates(config))) {
        coh_gradient_destroy(&self);
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for the gradient of %lld weights, %.3f GiB: "
                        "use a smaller network, or fewer ranks a node",
                        (long long)parameters,
                        4.0 * (double)parameters *
                            coh_gradient_vectors(config) / (1 << 30));
    }
    self->count = parameters;
    *out = self;
    return COH_OK;
}

void coh_gradient_destroy(coh_gradient **self)
{
    if (*self == NULL)
        return;
    free((*self)->values);
    free((*self)->other);
    free((*self)->before);
    free(*self);
    *self = NULL;
}

float *coh_gradient_values(coh_gradient *self)
{
    return self->values;
}

void coh_gradient_begin(coh_gradient *self)
{
    if (self->other != NULL) {
        float *values = self->values;
        self->values = self->other;
        self->other = values;
    }
    self->batches = 0;
    self->complete = self->count;
}

static void add_all(int64_t count, float *sum, const float *more)
{
#pragma omp parallel for schedule(static) if (count > CHUNK)
    for (int64_t from = 0; from < count; from += CHUNK)
        coh_add(count - from < CHUNK ? count - from : CHUNK, sum + from,
                more + from);
}

static void need(void *user, int64_t end)
{
    const coh_gradient *self = user;
    self->watch->need(self->watch->user, end);
}

static void have(void *user, int64_t first)
{
    coh_gradient *self = user;

    if (!self->is_last) {
        self->watch->need(self->watch->user, 0);
        return;
    }
    if (self->batches > 0 && first < self->complete) {
        add_all(self->complete - first, self->values + first,
                self->before + first);
        self->complete = first;
    }
    self->watch->have(self->watch->user, first);
}

static void add_sums(coh_step_sums *sums, const coh_step_sums *more)
{
    sums->loss += more->loss;
    sums->weight += more->weight;
    for (int i = 0; i < COH_LOSSES_MAX; i++)
        sums->terms[i] += more->terms[i];
}

void coh_gradient_add(coh_gradient *self, const coh_compute *compute,
                      const coh_batch *batch, bool is_last,
                      const float *weights, coh_step_sums *sums,
                      const coh_watch *watch)
{
    const coh_watch own = { self, need, have };
    const bool is_first = self->batches == 0;
    float *values = is_first && !is_last ? self->before : self->values;
    coh_step_sums more = { 0 };

    self->watch = watch;
    self->is_last = is_last;
    compute->train(compute->self, batch, weights, values, &more, &own);
    if (!is_first && !is_last)
        add_all(self->count, self->before, self->values);
    if (is_first)
        *sums = more;
    else
        add_sums(sums, &more);
    self->batches++;
}
