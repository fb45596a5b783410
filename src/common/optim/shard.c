/* shard.c - see shard.h. */
#include "common/optim/shard.h"

#include <inttypes.h>

#include "common/memory.h"

struct coh_shard {
    coh_plan plan;
    int server;
    coh_rule rule;
    const coh_statistics *statistics; /* borrowed */
    int64_t count, nblocks;
    float *values;               /* [count], owned */
    float *slots[COH_SLOTS_MAX]; /* [count] each, owned; NULL if not used */
    int64_t *versions;           /* [nblocks], owned */
    int64_t *starts; /* [nblocks + 1], owned: of blocks in the vectors */
};

/* The parameters of the owned block number `index`. */
static coh_range owned_range(const coh_shard *self, int64_t index)
{
    return coh_plan_block(
        &self->plan, coh_plan_owned_block(&self->plan, self->server, index));
}

coh_status coh_shard_new(const coh_plan *plan, int server, const coh_rule *rule,
                         const coh_statistics *statistics, coh_shard **out,
                         coh_err *err)
{
    const int64_t count = coh_plan_owned_parameters(plan, server);
    const int64_t nblocks = coh_plan_owned(plan, server);

    coh_shard *self = calloc(1, sizeof *self);
    if (self == NULL)
        goto no_memory;
    *self = (coh_shard){ .plan = *plan,
                         .server = server,
                         .rule = *rule,
                         .statistics = statistics,
                         .count = count,
                         .nblocks = nblocks };
    self->values = coh_floats(count);
    self->versions = calloc((size_t)nblocks + 1, sizeof *self->versions);
    self->starts = calloc((size_t)nblocks + 1, sizeof *self->starts);
    if (self->values == NULL || self->versions == NULL || self->starts == NULL)
        goto no_memory;
    for (int64_t i = 0; i < nblocks; i++)
        self->starts[i + 1] = self->starts[i] + owned_range(self, i).count;
    for (int i = 0; i < coh_rule_slots(rule); i++) {
        self->slots[i] = coh_floats(count);
        if (self->slots[i] == NULL)
            goto no_memory;
    }
    *out = self;
    return COH_OK;

no_memory:
    coh_shard_destroy(&self);
    return coh_fail(err, COH_E_NOMEM,
                    "no memory for %" PRId64 " parameters and their optimizer "
                    "state, %.3f GiB: use %s",
                    count,
                    (double)(1 + coh_rule_slots(rule)) * sizeof(float) *
                        (double)count / (1 << 30),
                    server < 0 ? "servers, or fewer ranks a node"
                               : "more servers");
}

void coh_shard_destroy(coh_shard **self)
{
    if (*self == NULL)
        return;
    free((*self)->values);
    for (int i = 0; i < COH_SLOTS_MAX; i++)
        free((*self)->slots[i]);
    free((*self)->versions);
    free((*self)->starts);
    free(*self);
    *self = NULL;
}

/* Which of the owned blocks this is. */
static int64_t local_index(const coh_shard *self, int64_t block)
{
    const int64_t index =
        coh_plan_owned_index(&self->plan, self->server, block);

    COH_ASSERT(index >= 0 && index < self->nblocks &&
               coh_plan_owned_block(&self->plan, self->server, index) == block);
    return index;
}

void coh_shard_load(coh_shard *self, const float *values)
{
    for (int64_t i = 0; i < self->nblocks; i++) {
        const coh_range range = owned_range(self, i);
        memcpy(self->values + self->starts[i], values + range.first,
               (size_t)range.count * sizeof *values);
        self->versions[i] = 0;
    }
    for (int i = 0; i < coh_shard_nslots(self); i++)
        memset(self->slots[i], 0, (size_t)self->count * sizeof *self->slots[i]);
}

void coh_shard_apply(coh_shard *self, int64_t block, const float *gradient,
                     double weight, float rate)
{
    coh_shard_apply_late(self, block, gradient, NULL, weight, rate);
}

/* Of a statistic's values, not of what was measured, nothing old is left. */
static float momentum_of(const coh_shard *self, const coh_statistic *statistic)
{
    return self->rule.kind == COH_RULE_ADD ? 0 : (float)statistic->momentum;
}

void coh_shard_apply_late(coh_shard *self, int64_t block, const float *gradient,
                          const float *seen, double weight, float rate)
{
    COH_ASSERT(weight > 0);
    const int64_t index = local_index(self, block);
    const coh_range range = coh_plan_block(&self->plan, block);
    const int64_t end = range.first + range.count;
    const float scale = (float)(1.0 / weight);
    const int64_t version = ++self->versions[index];
    const coh_statistic *statistic;

    for (int64_t from = 0, n; from < range.count; from += n) {
        const int64_t at = range.first + from;
        n = coh_statistics_run(self->statistics, at, end, &statistic);
        const float *g = gradient + from;
        const int64_t own = self->starts[index] + from;
        float *w = self->values + own;
        float *slots[COH_SLOTS_MAX] = { 0 };
        for (int i = 0; i < coh_shard_nslots(self); i++)
            slots[i] = self->slots[i] + own;
        if (statistic != NULL && self->rule.kind != COH_RULE_ELASTIC)
            coh_rule_average(momentum_of(self, statistic), n, g, scale, w);
        else if (seen != NULL)
            coh_rule_apply_late(&self->rule, rate, version, n, g, scale,
                                seen + from, w, slots);
        else
            coh_rule_apply(&self->rule, rate, version, n, g, scale, w, slots);
    }
}

int64_t coh_shard_count(const coh_shard *self)
{
    return self->count;
}

int64_t coh_shard_nblocks(const coh_shard *self)
{
    return self->nblocks;
}

int coh_shard_nslots(const coh_shard *self)
{
    return coh_rule_slots(&self->rule);
}

float *coh_shard_values(coh_shard *self)
{
    return self->values;
}

float *coh_shard_slot(coh_shard *self, int slot)
{
    return self->slots[slot];
}

int64_t *coh_shard_versions(coh_shard *self)
{
    return self->versions;
}

float *coh_shard_block(coh_shard *self, int64_t block)
{
    return self->values + self->starts[local_index(self, block)];
}

int64_t coh_shard_version(const coh_shard *self, int64_t block)
{
    return self->versions[local_index(self, block)];
}
