/* sent.c - see sent.h. */
#include "server/sent.h"

#include <stdlib.h>
#include <string.h>

#include "common/memory.h"

struct coh_sent {
    const coh_plan *plan;
    int server;
    coh_shard *shard;
    float *weights;    /* [groups, count of the shard], owned */
    int64_t *versions; /* [groups, blocks of the shard], owned */
};

int64_t coh_sent_floats(const coh_config *config, const coh_plan *plan,
                        int64_t owned)
{
    const coh_rule rule = coh_rule_of(config);
    const bool is_late = plan->groups > 1 && config->policy != COH_POLICY_SYNC;

    return is_late && coh_rule_compensates(&rule) ? plan->groups * owned : 0;
}

coh_sent *coh_sent_new(const coh_plan *plan, int server, coh_shard *shard)
{
    const size_t groups = (size_t)plan->groups;
    coh_sent *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;

    *self = (coh_sent){ .plan = plan, .server = server, .shard = shard };
    self->weights = coh_floats(plan->groups * coh_shard_count(shard));
    self->versions = calloc(groups * (size_t)coh_shard_nblocks(shard) + 1,
                            sizeof *self->versions);
    if (self->weights == NULL || self->versions == NULL)
        coh_sent_destroy(&self);
    return self;
}

void coh_sent_destroy(coh_sent **self)
{
    if (*self == NULL)
        return;
    free((*self)->weights);
    free((*self)->versions);
    free(*self);
    *self = NULL;
}

/* A group's copy of a block. */
static float *weights_of(const coh_sent *self, int64_t group, int64_t block)
{
    return self->weights + group * coh_shard_count(self->shard) +
           (coh_shard_block(self->shard, block) -
            coh_shard_values(self->shard));
}

static int64_t *version_of(const coh_sent *self, int64_t group, int64_t block)
{
    return &self->versions[group * coh_shard_nblocks(self->shard) +
                           coh_plan_owned_index(self->plan, self->server,
                                                block)];
}

void coh_sent_take(coh_sent *self, int64_t group, int64_t block)
{
    if (self == NULL)
        return;
    *version_of(self, group, block) = coh_shard_version(self->shard, block);
    memcpy(weights_of(self, group, block), coh_shard_block(self->shard, block),
           (size_t)coh_plan_block(self->plan, block).count * sizeof(float));
}

const float *coh_sent_of(const coh_sent *self, int64_t group, int64_t block,
                         int64_t version)
{
    if (self == NULL)
        return NULL;
    COH_ASSERT(*version_of(self, group, block) == version);
    return weights_of(self, group, block);
}
