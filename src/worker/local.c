/* local.c - see local.h. */
#include "worker/local.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/memory.h"
#include "common/optim/rule.h"
#include "common/simd.h"

struct coh_local {
    const coh_statistics *statistics;
    float *weights;
    float *gradient; /* of the last step; NULL: there was none */
    float *start;    /* [P], owned: the servers' weights; NULL if elastic */
    int64_t parameters, every;
    float elastic;
    bool is_sync, exchanges; /* this step */
    int64_t steps;           /* since weights came, without this one */
    double weight;           /* of their samples */
};

int64_t coh_local_floats(const coh_config *config, int64_t parameters)
{
    return coh_rule_is_local(config) && config->exchange.elastic <= 0
               ? parameters
               : 0;
}

coh_status coh_local_new(const coh_config *config,
                         const coh_statistics *statistics, int64_t parameters,
                         float *weights, coh_local **out, coh_err *err)
{
    const int64_t floats = coh_local_floats(config, parameters);
    coh_local *self = calloc(1, sizeof *self);

    if (self != NULL) {
        *self = (coh_local){ .statistics = statistics,
                             .weights = weights,
                             .parameters = parameters,
                             .every = config->exchange.every,
                             .elastic = (float)config->exchange.elastic };
        if (floats > 0)
            self->start = coh_floats(floats);
    }
    if (self == NULL || (floats > 0 && self->start == NULL)) {
        coh_local_destroy(&self);
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for another copy of %" PRId64 " weights, as "
                        "exchange.every needs: use fewer ranks a node",
                        parameters);
    }
    *out = self;
    return COH_OK;
}

void coh_local_destroy(coh_local **self)
{
    if (*self == NULL)
        return;
    free((*self)->start);
    free(*self);
    *self = NULL;
}

void coh_local_begin(coh_local *self, const coh_grant *grant, float *gradient)
{
    const bool is_wanted = grant->exchange != 0 && self->start != NULL;

    self->gradient = gradient;
    self->is_sync = grant->groups > 1;
    self->exchanges =
        is_wanted || (!self->is_sync && self->steps + 1 >= self->every);
}

bool coh_local_exchanges(const coh_local *self)
{
    return self->exchanges;
}

void coh_local_keep(coh_local *self, coh_range range)
{
    if (self->start != NULL && self->steps == 0)
        memcpy(self->start + range.first, self->weights + range.first,
               (size_t)range.count * sizeof(float));
}

COH_SIMD static void take_change(int64_t n, float scale,
                                 const float *restrict now,
                                 const float *restrict before,
                                 float *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = scale * (now[i] - before[i]);
}

COH_SIMD static void take_values(int64_t n, float scale,
                                 const float *restrict now, float *restrict out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = scale * now[i];
}

double coh_local_weight(const coh_local *self, double weight)
{
    return self->is_sync ? self->weight + weight : 1;
}

void coh_local_fill(coh_local *self, coh_range range, double weight)
{
    const float scale = (float)coh_local_weight(self, weight);
    const int64_t end = range.first + range.count;
    const coh_statistic *statistic;

    if (self->start == NULL) {
        memcpy(self->gradient + range.first, self->weights + range.first,
               (size_t)range.count * sizeof(float));
        return;
    }
    for (int64_t at = range.first, n; at < end; at += n) {
        n = coh_statistics_run(self->statistics, at, end, &statistic);
        if (statistic != NULL)
            take_values(n, scale, self->weights + at, self->gradient + at);
        else
            take_change(n, scale, self->weights + at, self->start + at,
                        self->gradient + at);
    }
}

void coh_local_end(coh_local *self, double weight)
{
    self->steps = self->exchanges ? 0 : self->steps + 1;
    self->weight = self->exchanges ? 0 : self->weight + weight;
}

/* x, at the place of c, from x and c. */
COH_SIMD static void draw_near(int64_t n, float share, const float *restrict x,
                               float *restrict c)
{
    for (int64_t i = 0; i < n; i++)
        c[i] = x[i] - share * (x[i] - c[i]);
}

void coh_local_arrive(coh_local *self, coh_range range)
{
    if (self->start == NULL)
        draw_near(range.count, self->elastic / (1 - self->elastic),
                  self->gradient + range.first, self->weights + range.first);
}

bool coh_local_put_aside(coh_local *self)
{
    if (self->start != NULL || self->gradient == NULL)
        return false;
    memcpy(self->gradient, self->weights,
           (size_t)self->parameters * sizeof(float));
    return true;
}

void coh_local_take_back(coh_local *self)
{
    memcpy(self->weights, self->gradient,
           (size_t)self->parameters * sizeof(float));
}
