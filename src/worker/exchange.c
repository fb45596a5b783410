/* exchange.c - see exchange.h.
 *
 * Blocks are begun and summed from the last to the first, and come back from
 * the first to the last. Each of the two orders is a line of its own (team.h),
 * since collectives of a line must begin in one order on all members.
 */
#include "worker/exchange.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/optim/clip.h"
#include "common/optim/squares.h"
#include "common/xfer.h"
#include "worker/trips.h"

typedef struct block {
    coh_range range;
    int speaker; /* member that has the sum first */
    coh_xfer *sum;
} block;

struct coh_exchange {
    const coh_plan *plan;
    const coh_roles *roles;
    const coh_schedule *schedule;
    const coh_statistics *statistics;
    coh_shard *shard; /* without servers */
    coh_trips *trips; /* with servers, owned; else NULL */
    float *weights;
    double most_norm; /* of a gradient; 0: any */
    coh_wait wait;
    int64_t nblocks;
    block *blocks; /* [nblocks], owned */

    /* The step under way. */
    coh_grant grant;
    float *gradient;
    double parts[3];     /* weight, stop, failed: mine, then the group's */
    coh_xfer *parts_sum; /* on its way; NULL: they are the group's */
    bool is_void;        /* nothing is exchanged */
    double squares;      /* of the gradients whose sums are made here */
    int64_t ready;       /* gradients of blocks [ready, nblocks) are complete */
    int64_t begun, made; /* sums of blocks [begun, nblocks), [made, nblocks) */

    coh_status status; /* the first failure of need() or have() */
    coh_err why;
};

/* Room for the blocks that are added up at a time. */
static coh_status reserve(const coh_plan *plan, const coh_roles *roles,
                          coh_err *err)
{
    const int many = plan->nblocks < COH_SUMS_AT_ONCE ? (int)plan->nblocks
                                                      : COH_SUMS_AT_ONCE;

    if (plan->group_size == 1)
        return COH_OK;
    return coh_team_reserve(roles->team, COH_LINE_SUMS, many,
                            plan->block_count * (int64_t)sizeof(float), err);
}

coh_status coh_exchange_new(const coh_config *config, const coh_plan *plan,
                            const coh_roles *roles,
                            const coh_schedule *schedule,
                            const coh_statistics *statistics, coh_shard *shard,
                            float *weights, coh_exchange **out, coh_err *err)
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
        blocks[b].speaker = coh_plan_speaker(plan, b);
    }
    *self = (coh_exchange){ .plan = plan,
                            .roles = roles,
                            .schedule = schedule,
                            .statistics = statistics,
                            .shard = shard,
                            .weights = weights,
                            .most_norm = config->optimizer.clip_norm,
                            .wait = { config->exchange.timeout, 0 },
                            .nblocks = plan->nblocks,
                            .blocks = blocks };
    coh_status status = reserve(plan, roles, err);
    if (status == COH_OK && plan->servers > 0)
        status = coh_trips_new(config, plan, roles, weights, &self->trips, err);
    if (status != COH_OK) {
        coh_exchange_destroy(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

void coh_exchange_destroy(coh_exchange **self)
{
    if (*self == NULL)
        return;
    coh_trips_destroy(&(*self)->trips);
    free((*self)->blocks);
    free(*self);
    *self = NULL;
}

double coh_exchange_waited_s(const coh_exchange *self)
{
    return self->wait.waited_s +
           (self->trips != NULL ? coh_trips_waited_s(self->trips) : 0);
}

static bool is_alone(const coh_exchange *self)
{
    return self->plan->group_size == 1;
}

/* --- weights on their way back ------------------------------------------- */

static coh_status wait_for(coh_exchange *self, int64_t end, coh_err *err)
{
    return self->trips != NULL ? coh_trips_wait(self->trips, end, err) : COH_OK;
}

coh_status coh_exchange_settle(coh_exchange *self, coh_err *err)
{
    return wait_for(self, self->plan->parameters, err);
}

void coh_exchange_need(coh_exchange *self, int64_t end)
{
    coh_team_poll(self->roles->team);
    if (self->status == COH_OK)
        self->status = wait_for(self, end, &self->why);
}

/* --- gradients on their way out ------------------------------------------ */

void coh_exchange_begin(coh_exchange *self, const coh_grant *grant,
                        coh_exchange_part mine, float *gradient)
{
    self->grant = *grant;
    self->gradient = gradient;
    self->parts[0] = mine.weight;
    self->parts[1] = mine.stop;
    self->parts[2] = mine.failed;
    if (!is_alone(self))
        self->parts_sum = coh_team_begin_sum_f64(
            self->roles->team, COH_LINE_STEPS, 0, self->parts, 3);
    self->is_void = false;
    self->squares = 0;
    self->ready = self->begun = self->made = self->nblocks;
}

/* The group's parts decide whether anything is exchanged. */
static coh_status hear_parts(coh_exchange *self, coh_err *err)
{
    const coh_status status = coh_xfer_wait(&self->parts_sum, &self->wait,
                                            "the weights of the members", err);

    /* Policy sync: the other groups wait for this one's push. */
    self->is_void =
        self->parts[2] > 0 || (self->parts[0] <= 0 && self->grant.groups <= 1);
    return status;
}

static void begin_sum(coh_exchange *self, block *it)
{
    float *gradient = self->gradient + it->range.first;

    if (is_alone(self))
        return;
    it->sum =
        self->shard != NULL
            ? coh_team_begin_sum(self->roles->team, COH_LINE_SUMS, it->speaker,
                                 gradient, it->range.count)
            : coh_team_begin_gather_sum(self->roles->team, COH_LINE_SUMS,
                                        it->speaker, gradient, it->range.count);
}

static bool is_used_here(const coh_exchange *self, int64_t b)
{
    return self->trips == NULL || coh_trips_speaks(self->trips, b);
}

/* Apply the sum of a block that is used here, or send it to its server. */
static void use_sum(coh_exchange *self, int64_t b, double weight)
{
    const block *it = &self->blocks[b];
    float *gradient = self->gradient + it->range.first;

    if (self->shard != NULL) {
        coh_shard_apply(self->shard, b, gradient, weight,
                        coh_schedule_rate(self->schedule, self->grant.clock));
        return;
    }
    const coh_push head = { .step = self->grant.step,
                            .clock = self->grant.clock,
                            .groups = self->grant.groups,
                            .weight = weight };
    coh_trips_push(self->trips, b, &head, gradient);
}

/* The sum of block b is made. One that is not finite is left out; where other
 * groups wait for the push (policy sync) it goes with weight 0. If all are to
 * be clipped, they are used when all are made. */
static void take_sum(coh_exchange *self, int64_t b)
{
    const block *it = &self->blocks[b];

    if (!is_used_here(self, b))
        return;
    const bool is_finite =
        coh_squares_add(self->statistics, it->range,
                        self->gradient + it->range.first, &self->squares);
    if (self->most_norm == 0 && (is_finite || self->grant.groups > 1))
        use_sum(self, b, is_finite ? self->parts[0] : 0);
}

/* All sums are made, and norm, of all of them together, is finite. */
static void use_clipped(coh_exchange *self, double norm)
{
    const double factor = coh_clip_factor(self->most_norm, norm);

    for (int64_t b = self->nblocks - 1; b >= 0; b--) {
        const coh_range range = self->blocks[b].range;
        if (!is_used_here(self, b))
            continue;
        coh_clip(self->statistics, range, factor, self->gradient + range.first);
        use_sum(self, b, self->parts[0]);
    }
}

/* Begin sums whose gradients are complete, a few at a time, and take those that
 * are made, in that order. `all`: wait for them. */
static coh_status sum_up(coh_exchange *self, bool all, coh_err *err)
{
    for (;;) {
        while (self->begun > self->ready &&
               self->made - self->begun < COH_SUMS_AT_ONCE)
            begin_sum(self, &self->blocks[--self->begun]);
        if (self->made == self->begun)
            return COH_OK;
        block *it = &self->blocks[self->made - 1];
        if (!all && it->sum != NULL && !coh_xfer_test(it->sum))
            return COH_OK;
        const coh_status status =
            coh_xfer_wait(&it->sum, &self->wait, "a gradient sum", err);
        if (status != COH_OK)
            return status;
        take_sum(self, --self->made);
    }
}

/* Gradients are complete from parameter `first` on. */
static coh_status take_gradients(coh_exchange *self, int64_t first, bool all,
                                 coh_err *err)
{
    coh_status status = COH_OK;

    if (self->ready == self->nblocks)
        status = hear_parts(self, err);
    if (status != COH_OK || self->is_void)
        return status;
    while (self->ready > 0 &&
           self->blocks[self->ready - 1].range.first >= first)
        self->ready--;
    return sum_up(self, all, err);
}

void coh_exchange_have(coh_exchange *self, int64_t first)
{
    coh_team_poll(self->roles->team);
    if (self->status == COH_OK)
        self->status = take_gradients(self, first, false, &self->why);
}

/* --- the end of a step --------------------------------------------------- */

/* The members' losses, and the squares: those of a sum that all have count
 * once. */
static coh_status add_up(coh_exchange *self, coh_step_sums *sums, coh_err *err)
{
    enum { STEP = sizeof *sums / sizeof(double) };
    double all[STEP + 1];

    if (is_alone(self))
        return COH_OK;
    memcpy(all, sums, sizeof *sums);
    all[STEP] = self->shard == NULL || self->roles->mine.member == 0
                    ? self->squares
                    : 0;
    coh_xfer *xfer = coh_team_begin_sum_f64(self->roles->team, COH_LINE_STEPS,
                                            0, all, STEP + 1);
    const coh_status status =
        coh_xfer_wait(&xfer, &self->wait, "the sum of losses", err);
    memcpy(sums, all, sizeof *sums);
    self->squares = all[STEP];
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

coh_status coh_exchange_end(coh_exchange *self, coh_step_sums *sums,
                            coh_exchange_part *group, double *norm,
                            coh_err *err)
{
    coh_status status = self->status;

    if (status != COH_OK)
        return coh_fail(err, status, "%s", self->why.text);
    status = coh_exchange_settle(self, err);
    if (status == COH_OK)
        status = take_gradients(self, 0, true, err);
    if (status == COH_OK)
        status = add_up(self, sums, err);
    *group = (coh_exchange_part){ self->parts[0], self->parts[1] > 0,
                                  self->parts[2] > 0 };
    *norm = group->weight > 0 ? sqrt(self->squares) / group->weight : 0;
    if (status != COH_OK || self->is_void)
        return status;
    if (self->most_norm > 0 && isfinite(*norm))
        use_clipped(self, *norm);
    if (self->trips != NULL)
        status = coh_trips_back(self->trips, err);
    if (status == COH_OK && !isfinite(self->squares))
        return diverged(&self->grant, err);
    return status;
}

/* --- weights without gradients ------------------------------------------- */

coh_status coh_exchange_pull(coh_exchange *self, bool exact, coh_err *err)
{
    coh_status status = coh_exchange_settle(self, err);

    if (status != COH_OK || self->trips == NULL)
        return status;
    for (int64_t b = 0; b < self->nblocks; b++) {
        if (coh_trips_speaks(self->trips, b))
            coh_trips_pull(self->trips, b, exact);
    }
    status = coh_trips_back(self->trips, err);
    return status == COH_OK ? coh_exchange_settle(self, err) : status;
}

coh_status coh_exchange_spread(coh_exchange *self, coh_err *err)
{
    enum { ROOT = 0 };
    coh_status status = coh_exchange_settle(self, err);

    for (int64_t b = 0; b < self->nblocks && status == COH_OK; b++) {
        const coh_range range = self->blocks[b].range;
        if (is_alone(self))
            break;
        coh_xfer *xfer = coh_team_begin_spread(
            self->roles->team, COH_LINE_SPREADS, ROOT,
            self->weights + range.first, range.count * (int64_t)sizeof(float));
        status = coh_xfer_wait(&xfer, &self->wait, "the root's weights", err);
    }
    return status;
}
