/* exchange.c - see exchange.h. */
#include "worker/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/optim/squares.h"
#include "common/xfer.h"

/* A block on its way through the root. */
typedef struct block {
    coh_range range;
    int server_rank;
    coh_push push;
    coh_reply reply;
    coh_xfer *sum, *trip, *spread;
} block;

struct coh_exchange {
    const coh_plan *plan;
    const coh_roles *roles;
    const coh_schedule *schedule;
    const coh_statistics *statistics;
    coh_shard *shard; /* NULL with servers */
    float *weights, *gradient;
    double timeout_s;
    int64_t nblocks;
    block *blocks; /* [nblocks], owned */
};

coh_status coh_exchange_new(const coh_config *config, const coh_plan *plan,
                            const coh_roles *roles,
                            const coh_schedule *schedule,
                            const coh_statistics *statistics, coh_shard *shard,
                            float *weights, float *gradient, coh_exchange **out,
                            coh_err *err)
{
    coh_exchange *self = calloc(1, sizeof *self);
    block *blocks = calloc((size_t)plan->nblocks, sizeof *blocks);

    if (self == NULL || blocks == NULL) {
        free(self);
        free(blocks);
        return coh_fail(err, COH_E_NOMEM, "no memory for the exchange");
    }
    for (int64_t b = 0; b < plan->nblocks; b++) {
        blocks[b].range = coh_plan_block(plan, b);
        blocks[b].push.group = roles->mine.group;
        blocks[b].push.block = b;
        if (plan->servers > 0)
            blocks[b].server_rank =
                coh_plan_server_rank(plan, (int)(b % plan->servers));
    }
    *self = (coh_exchange){ .plan = plan,
                            .roles = roles,
                            .schedule = schedule,
                            .statistics = statistics,
                            .shard = shard,
                            .weights = weights,
                            .gradient = gradient,
                            .timeout_s = config->exchange.timeout,
                            .nblocks = plan->nblocks,
                            .blocks = blocks };
    *out = self;
    return COH_OK;
}

void coh_exchange_destroy(coh_exchange **self)
{
    if (*self == NULL)
        return;
    free((*self)->blocks);
    free(*self);
    *self = NULL;
}

static bool is_root(const coh_exchange *self)
{
    return self->roles->mine.member == 0;
}

static bool is_alone(const coh_exchange *self)
{
    return self->plan->group_size == 1;
}

static coh_status finish(coh_exchange *self, coh_xfer **xfer, const char *what,
                         coh_err *err)
{
    return coh_xfer_finish(xfer, self->timeout_s, what, err);
}

coh_status coh_exchange_add_up(coh_exchange *self, coh_exchange_sums *sums,
                               coh_err *err)
{
    enum { STEP = sizeof sums->step / sizeof(double) };
    double all[STEP + 2];

    if (is_alone(self))
        return COH_OK;
    memcpy(all, &sums->step, sizeof sums->step);
    all[STEP] = sums->stop;
    all[STEP + 1] = sums->failed;
    coh_xfer *xfer = coh_xfer_begin_sum_f64(self->roles->group, all, STEP + 2);
    const coh_status status = finish(self, &xfer, "the sum of losses", err);
    memcpy(&sums->step, all, sizeof sums->step);
    sums->stop = all[STEP] > 0;
    sums->failed = all[STEP + 1] > 0;
    return status;
}

static coh_status diverged(const coh_grant *grant, coh_err *err)
{
    return coh_fail(err, COH_E_DIVERGED,
                    "the gradient of step %lld is not finite: lower "
                    "optimizer.rate, add optimizer.warmup, or check the data "
                    "for extreme values",
                    (long long)grant->step);
}

/* Add up block b, if there is one. */
static void begin_sum(coh_exchange *self, int64_t b)
{
    if (is_alone(self) || b >= self->nblocks)
        return;
    block *it = &self->blocks[b];
    float *gradient = self->gradient + it->range.first;
    it->sum =
        self->shard != NULL
            ? coh_xfer_begin_sum(self->roles->group, gradient, it->range.count)
            : coh_xfer_begin_gather_sum(self->roles->group, gradient,
                                        it->range.count);
}

static void begin_sums(coh_exchange *self)
{
    for (int64_t b = 0; b < COH_SUMS_AT_ONCE; b++)
        begin_sum(self, b);
}

/* The sum of block b is there; another one may begin. */
static coh_status finish_sum(coh_exchange *self, int64_t b, coh_err *err)
{
    const coh_status status =
        finish(self, &self->blocks[b].sum, "a gradient sum", err);

    if (status == COH_OK)
        begin_sum(self, b + COH_SUMS_AT_ONCE);
    return status;
}

/* Without servers: apply each block as its sum completes. */
static coh_status step_here(coh_exchange *self, const coh_grant *grant,
                            double weight, double *squares, coh_err *err)
{
    const float rate = coh_schedule_rate(self->schedule, grant->clock);

    for (int64_t b = 0; b < self->nblocks; b++) {
        block *it = &self->blocks[b];
        const float *gradient = self->gradient + it->range.first;
        const coh_status status = finish_sum(self, b, err);
        if (status != COH_OK)
            return status;
        if (coh_squares_add(self->statistics, it->range, gradient, squares))
            coh_shard_apply(self->shard, b, gradient, weight, rate);
    }
    return COH_OK;
}

/* Send a block's head and gradient, and be ready for the answer. */
static void begin_trip(coh_exchange *self, block *it, int64_t count)
{
    const int64_t bytes = it->range.count * (int64_t)sizeof(float);
    float *weights = self->weights + it->range.first;
    float *gradient = self->gradient + it->range.first;
    const coh_xfer_part parts[] = {
        { COH_XFER_RECV, it->server_rank, COH_TAG_REPLY, &it->reply,
          sizeof it->reply },
        { COH_XFER_RECV, it->server_rank, COH_TAG_WEIGHTS, weights, bytes },
        { COH_XFER_SEND, it->server_rank, COH_TAG_PUSH, &it->push,
          sizeof it->push },
        { COH_XFER_SEND, it->server_rank, COH_TAG_GRADIENT, gradient,
          count * (int64_t)sizeof(float) },
    };
    it->trip = coh_xfer_begin(self->roles->world, parts, 4);
}

/* Root: push each block as its sum completes. */
static coh_status push_all(coh_exchange *self, const coh_grant *grant,
                           double weight, double *squares, coh_err *err)
{
    for (int64_t b = 0; b < self->nblocks; b++) {
        block *it = &self->blocks[b];
        const coh_status status = finish_sum(self, b, err);
        if (status != COH_OK)
            return status;
        if (!coh_squares_add(self->statistics, it->range,
                             self->gradient + it->range.first, squares))
            continue;
        it->push.step = grant->step;
        it->push.clock = grant->clock;
        it->push.groups = grant->groups;
        it->push.weight = weight;
        begin_trip(self, it, it->range.count);
    }
    return COH_OK;
}

/* Every block's answer, if it made a trip, goes to the whole group. */
coh_status coh_exchange_spread(coh_exchange *self, coh_err *err)
{
    coh_status status = COH_OK;

    for (int64_t b = 0; b < self->nblocks && status == COH_OK; b++) {
        block *it = &self->blocks[b];
        if (it->trip != NULL) {
            status = finish(self, &it->trip, "new weights from a server", err);
            it->push.version = it->reply.version;
        }
        if (status == COH_OK && !is_alone(self))
            it->spread = coh_xfer_begin_spread(
                self->roles->group, self->weights + it->range.first,
                it->range.count * (int64_t)sizeof(float));
    }
    for (int64_t b = 0; b < self->nblocks && status == COH_OK; b++)
        status = finish(self, &self->blocks[b].spread,
                        "new weights from the root", err);
    return status;
}

/* Members that are not the root send their part and hear the answer. */
static coh_status finish_sums(coh_exchange *self, coh_err *err)
{
    coh_status status = COH_OK;

    for (int64_t b = 0; b < self->nblocks && status == COH_OK; b++)
        status = finish_sum(self, b, err);
    return status;
}

/* All members must know whether the root's sums were finite. */
static coh_status spread_squares(coh_exchange *self, double *squares,
                                 coh_err *err)
{
    if (is_alone(self))
        return COH_OK;
    coh_xfer *xfer =
        coh_xfer_begin_spread(self->roles->group, squares, sizeof *squares);
    return finish(self, &xfer, "the gradient's norm from the root", err);
}

coh_status coh_exchange_step(coh_exchange *self, const coh_grant *grant,
                             double weight, double *norm, coh_err *err)
{
    double squares = 0;
    coh_status status;

    begin_sums(self);
    if (self->shard != NULL) {
        status = step_here(self, grant, weight, &squares, err);
    } else {
        status = is_root(self) ? push_all(self, grant, weight, &squares, err)
                               : finish_sums(self, err);
        if (status == COH_OK)
            status = spread_squares(self, &squares, err);
        if (status == COH_OK)
            status = coh_exchange_spread(self, err);
    }
    *norm = weight > 0 ? sqrt(squares) / weight : 0;
    if (status == COH_OK && !isfinite(squares))
        return diverged(grant, err);
    return status;
}

coh_status coh_exchange_pull(coh_exchange *self, coh_err *err)
{
    if (self->shard != NULL)
        return COH_OK;
    for (int64_t b = 0; b < self->nblocks && is_root(self); b++) {
        self->blocks[b].push.groups = 0;
        self->blocks[b].push.weight = 0;
        begin_trip(self, &self->blocks[b], 0);
    }
    return coh_exchange_spread(self, err);
}
