/* inbox.c - see inbox.h. */
#include "server/inbox.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/xfer.h"

/* A speaker's corner: its push under way, and the answer to the last one. */
typedef struct corner {
    int rank;
    coh_push push;
    coh_reply reply;
    float *gradient; /* [block_count], owned */
    float *weights;  /* [block_count], owned: a copy, since another group
                          may change the block while it is being sent */
    coh_xfer *in, *out;
} corner;

struct coh_inbox {
    const coh_plan *plan;
    const coh_roles *roles;
    const coh_schedule *schedule;
    coh_shard *shard;
    double timeout_s;
    int ncorners;       /* speakers of all groups */
    corner *corners;    /* [ncorners], owned */
    int64_t *staleness; /* [groups, COH_STALENESS_BINS], owned */
    double busy_s;
};

static void post(coh_inbox *self, corner *c)
{
    const coh_xfer_part parts[] = {
        { COH_XFER_RECV, c->rank, COH_TAG_PUSH, &c->push, sizeof c->push },
        { COH_XFER_RECV, c->rank, COH_TAG_GRADIENT, c->gradient,
          self->plan->block_count * (int64_t)sizeof(float) },
    };
    c->in = coh_xfer_begin(self->roles->world, parts, 2);
}

static bool make_corners(coh_inbox *self)
{
    for (int i = 0; i < self->ncorners; i++) {
        corner *c = &self->corners[i];
        c->rank = coh_plan_speaker_rank(self->plan, i / self->plan->speakers,
                                        i % self->plan->speakers);
        c->gradient = coh_floats(self->plan->block_count);
        c->weights = coh_floats(self->plan->block_count);
        if (c->gradient == NULL || c->weights == NULL)
            return false;
    }
    for (int i = 0; i < self->ncorners; i++)
        post(self, &self->corners[i]);
    return true;
}

coh_status coh_inbox_new(const coh_config *config, const coh_plan *plan,
                         const coh_roles *roles, const coh_schedule *schedule,
                         coh_shard *shard, coh_inbox **out, coh_err *err)
{
    const size_t groups = (size_t)plan->groups;
    coh_inbox *self = calloc(1, sizeof *self);
    if (self == NULL)
        goto no_memory;

    *self = (coh_inbox){ .plan = plan,
                         .roles = roles,
                         .schedule = schedule,
                         .shard = shard,
                         .timeout_s = config->exchange.timeout,
                         .ncorners = plan->groups * plan->speakers };
    self->corners = calloc((size_t)self->ncorners, sizeof *self->corners);
    self->staleness =
        calloc(groups * COH_STALENESS_BINS, sizeof *self->staleness);
    if (self->corners == NULL || self->staleness == NULL || !make_corners(self))
        goto no_memory;
    *out = self;
    return COH_OK;

no_memory:
    coh_inbox_destroy(&self);
    return coh_fail(err, COH_E_NOMEM,
                    "no memory for the pushes of %d groups: use more servers, "
                    "or a smaller exchange.block",
                    plan->groups);
}

void coh_inbox_destroy(coh_inbox **self)
{
    if (*self == NULL)
        return;
    for (int i = 0; (*self)->corners != NULL && i < (*self)->ncorners; i++) {
        corner *c = &(*self)->corners[i];
        coh_xfer_cancel(&c->in);
        coh_xfer_cancel(&c->out);
        free(c->gradient);
        free(c->weights);
    }
    free((*self)->corners);
    free((*self)->staleness);
    free(*self);
    *self = NULL;
}

/* Apply a push to the block; a pull leaves it as it is. */
static void apply(coh_inbox *self, corner *c)
{
    const coh_push *push = &c->push;
    const int64_t version = coh_shard_version(self->shard, push->block);
    int64_t *bins = self->staleness + push->group * COH_STALENESS_BINS;

    c->reply.staleness = 0;
    if (push->weight <= 0)
        return;
    c->reply.staleness = version - push->version;
    COH_ASSERT(c->reply.staleness >= 0);
    bins[c->reply.staleness < COH_STALENESS_BINS ? c->reply.staleness
                                                 : COH_STALENESS_BINS - 1]++;
    coh_shard_apply(self->shard, push->block, c->gradient, push->weight,
                    coh_schedule_late_rate(self->schedule, push->clock,
                                           c->reply.staleness));
}

static coh_status handle(coh_inbox *self, corner *c, coh_err *err)
{
    const double begin_s = coh_clock_now_s();

    coh_status status = coh_xfer_finish(&c->in, self->timeout_s, "a push", err);
    if (status == COH_OK)
        status = coh_xfer_finish(&c->out, self->timeout_s,
                                 "a worker to take its weights", err);
    if (status != COH_OK)
        return status;

    apply(self, c);
    const int64_t block = c->push.block;
    const size_t bytes =
        (size_t)coh_plan_block(self->plan, block).count * sizeof(float);
    c->reply.membership = c->push.membership;
    c->reply.block = block;
    c->reply.version = coh_shard_version(self->shard, block);
    memcpy(c->weights, coh_shard_block(self->shard, block), bytes);
    post(self, c);
    const coh_xfer_part parts[] = {
        { COH_XFER_SEND, c->rank, COH_TAG_REPLY, &c->reply, sizeof c->reply },
        { COH_XFER_SEND, c->rank, COH_TAG_WEIGHTS, c->weights, (int64_t)bytes },
    };
    c->out = coh_xfer_begin(self->roles->world, parts, 2);
    self->busy_s += coh_clock_now_s() - begin_s;
    return COH_OK;
}

coh_status coh_inbox_poll(coh_inbox *self, bool *any, coh_err *err)
{
    for (int i = 0; i < self->ncorners; i++) {
        corner *c = &self->corners[i];
        /* The last answer must be gone before its buffers are used again. */
        if (!coh_xfer_test(c->in) || (c->out != NULL && !coh_xfer_test(c->out)))
            continue;
        *any = true;
        const coh_status status = handle(self, c, err);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

int64_t *coh_inbox_staleness(coh_inbox *self)
{
    return self->staleness;
}

double coh_inbox_busy_s(const coh_inbox *self)
{
    return self->busy_s;
}
