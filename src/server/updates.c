/* updates.c - see updates.h. */
#include "server/updates.h"

#include <stdlib.h>

enum { ROOM = 32 };

struct coh_updates {
    const coh_plan *plan;
    const coh_schedule *schedule;
    coh_shard *shard;
    int threads, count;
    coh_update due[ROOM]; /* of different blocks */
};

coh_updates *coh_updates_new(const coh_plan *plan, const coh_schedule *schedule,
                             coh_shard *shard, int threads)
{
    coh_updates *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;

    self->plan = plan;
    self->schedule = schedule;
    self->shard = shard;
    self->threads = threads;
    return self;
}

void coh_updates_destroy(coh_updates **self)
{
    free(*self);
    *self = NULL;
}

bool coh_updates_has(const coh_updates *self, int64_t block)
{
    for (int i = 0; i < self->count; i++) {
        if (self->due[i].push->block == block)
            return true;
    }
    return false;
}

void coh_updates_add(coh_updates *self, coh_update update)
{
    if (self->count == ROOM || coh_updates_has(self, update.push->block))
        coh_updates_run(self);
    self->due[self->count++] = update;
}

static void make(const coh_updates *self, const coh_update *it)
{
    const int64_t block = it->push->block;
    const float *gradient = it->gradient;
    double weight = it->push->weight;

    if (it->items != NULL)
        gradient = coh_gather_sum(it->items, self->plan->groups,
                                  coh_plan_block(self->plan, block).count,
                                  self->threads, &weight);
    if (gradient != NULL) /* else no group had a sample that counts */
        coh_shard_apply_late(self->shard, block, gradient, it->seen, weight,
                             coh_schedule_late_rate(self->schedule,
                                                    it->push->clock,
                                                    it->staleness));
}

void coh_updates_run(coh_updates *self)
{
    const int count = self->count;

#pragma omp parallel for schedule(dynamic) \
    num_threads(self->threads) if (count > 1)
    for (int i = 0; i < count; i++)
        make(self, &self->due[i]);
    self->count = 0;
}
