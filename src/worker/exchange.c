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

#include "common/memory.h"
#include "common/optim/clip.h"
#include "common/optim/squares.h"
#include "common/xfer.h"
#include "worker/local.h"
#include "worker/sums.h"
#include "worker/trips.h"

typedef struct block {
    coh_range range;
    int64_t version; /* of its weights, with servers */
    int64_t from;    /* of those that the gradient was calculated from */
} block;

struct coh_exchange {
    const coh_plan *plan;
    const coh_roles *roles;
    const coh_schedule *schedule;
    const coh_statistics *statistics;
    coh_shard *shard; /* what is updated here; NULL: nothing */
    coh_trips *trips; /* blocks have owners, owned; NULL: all is updated here */
    coh_local *local; /* local steps: servers, and all is updated here too;
                         owned, or NULL */
    coh_sums *sums;   /* owned */
    float *weights;
    float *landing;   /* [P] of a lag where blocks have owners, owned: where new
                         weights arrive; else NULL */
    bool lags;        /* a step is exchanged while the next is calculated */
    double most_norm; /* of a gradient; 0: any */
    bool holds;       /* blocks are used when the sums of all are made */
    coh_wait wait;
    int64_t nblocks;
    block *blocks; /* [nblocks], owned */

    /* The step under way. */
    coh_grant grant;
    float *gradient;
    double parts[3];     /* weight, stop, failed: mine, then the group's */
    coh_xfer *parts_sum; /* on its way; NULL: they are the group's */
    bool is_open;        /* between begin() and end() */
    bool is_heard;       /* the group's parts are here */
    bool is_void;        /* nothing is exchanged */
    bool is_back;        /* all is pushed, weights are on their way back */
    bool is_aside;       /* between look() and go_on(): own weights are */
    int64_t pushes;      /* blocks, as servers count them */
    double squares;      /* of the gradients whose sums are made here */
    int64_t arrived;     /* local: weights of blocks [0, arrived) are ours */

    coh_status status; /* the first failure of need() or have() */
    coh_err why;
};

/* Does every member update all weights? */
static bool updates_all(const coh_exchange *self)
{
    return self->trips == NULL || self->local != NULL;
}

static coh_status make_trips(coh_exchange *self, const coh_config *config,
                             coh_err *err)
{
    if (self->lags) {
        self->landing = coh_floats(self->plan->parameters);
        if (self->landing == NULL)
            return coh_fail(err, COH_E_NOMEM,
                            "no memory for a second copy of all weights, %.3f "
                            "GiB: write exchange.lag: 0, or fewer ranks a node",
                            4.0 * (double)self->plan->parameters / (1 << 30));
    }
    return coh_trips_new(config, self->plan, self->roles,
                         self->lags ? self->landing : self->weights,
                         &self->trips, err);
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
    for (int64_t b = 0; b < plan->nblocks; b++)
        blocks[b].range = coh_plan_block(plan, b);
    *self = (coh_exchange){ .plan = plan,
                            .roles = roles,
                            .schedule = schedule,
                            .statistics = statistics,
                            .shard = shard,
                            .weights = weights,
                            .lags = config->exchange.lag > 0,
                            .most_norm = config->optimizer.clip_norm,
                            .wait = { config->exchange.timeout, 0 },
                            .nblocks = plan->nblocks,
                            .blocks = blocks,
                            .arrived = plan->nblocks };
    /* Weights that are calculated with must not change meanwhile. */
    self->holds = self->most_norm > 0 || (self->lags && plan->owners == 0);
    coh_status status = COH_OK;
    if (plan->owners > 0)
        status = make_trips(self, config, err);
    if (status == COH_OK && plan->servers > 0 && shard != NULL)
        status = coh_local_new(config, statistics, plan->parameters, weights,
                               &self->local, err);
    if (status == COH_OK)
        status = coh_sums_new(plan, roles, updates_all(self), &self->sums, err);
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
    coh_sums_destroy(&(*self)->sums);
    coh_trips_destroy(&(*self)->trips);
    free((*self)->landing);
    coh_local_destroy(&(*self)->local);
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
    if (self->trips == NULL)
        return COH_OK;
    const coh_status status = coh_trips_wait(self->trips, end, err);
    while (status == COH_OK && self->arrived < self->nblocks &&
           self->blocks[self->arrived].range.first < end)
        coh_local_arrive(self->local, self->blocks[self->arrived++].range);
    return status;
}

coh_status coh_exchange_settle(coh_exchange *self, coh_err *err)
{
    return wait_for(self, self->plan->parameters, err);
}

void coh_exchange_take(coh_exchange *self)
{
    if (self->trips == NULL)
        return;
    if (self->landing != NULL)
        memcpy(self->weights, self->landing,
               (size_t)self->plan->parameters * sizeof *self->weights);
    for (int64_t b = 0; b < self->nblocks; b++) {
        block *it = &self->blocks[b];
        it->from = it->version;
        it->version = coh_trips_version(self->trips, b);
    }
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
    if (self->local != NULL)
        coh_local_begin(self->local, grant, gradient);
    self->is_open = true;
    self->is_heard = self->is_void = self->is_back = false;
    self->pushes = 0;
    self->squares = 0;
    coh_sums_begin(self->sums, gradient);
}

/* The group's parts decide whether anything is exchanged. */
static coh_status hear_parts(coh_exchange *self, coh_err *err)
{
    const coh_status status = coh_xfer_wait(&self->parts_sum, &self->wait,
                                            "the weights of the members", err);

    self->is_heard = true;
    /* Policy sync: the other groups wait for this one's push. */
    self->is_void =
        self->parts[2] > 0 ||
        (self->parts[0] <= 0 && self->grant.groups <= 1 && self->local == NULL);
    return status;
}

static bool is_used_here(const coh_exchange *self, int64_t b)
{
    return updates_all(self) || coh_trips_speaks(self->trips, b);
}

/* Does what the step makes of its sums go to the servers? */
static bool must_push(const coh_exchange *self)
{
    return self->trips != NULL &&
           (self->local == NULL || coh_local_exchanges(self->local));
}

/* The weight of what is pushed after a step of this weight. */
static double push_weight(const coh_exchange *self, double weight)
{
    return self->local == NULL ? weight : coh_local_weight(self->local, weight);
}

/* With local steps: apply the sum of a block, and put what is to be pushed in
 * its place. */
static void step_locally(coh_exchange *self, int64_t b, double weight)
{
    const coh_range range = self->blocks[b].range;

    coh_local_keep(self->local, range);
    if (weight > 0)
        coh_shard_apply(self->shard, b, self->gradient + range.first, weight,
                        coh_schedule_rate(self->schedule, self->grant.clock));
    if (coh_local_exchanges(self->local))
        coh_local_fill(self->local, range, weight);
}

/* Apply the sum of a block that is used here, and put it on its way to the
 * others; or send it to its server; or both. */
static void use_sum(coh_exchange *self, int64_t b, double weight)
{
    float *gradient = self->gradient + self->blocks[b].range.first;

    if (self->local != NULL)
        step_locally(self, b, weight);
    else if (self->shard != NULL) {
        coh_shard_apply(self->shard, b, gradient, weight,
                        coh_schedule_rate(self->schedule, self->grant.clock));
        if (self->trips != NULL)
            coh_trips_put(self->trips, b, coh_shard_block(self->shard, b));
        return;
    }
    if (!must_push(self) || !coh_trips_speaks(self->trips, b))
        return;
    const coh_push head = { .step = self->grant.step,
                            .clock = self->grant.clock,
                            .groups = self->grant.groups,
                            .version = self->lags
                                           ? self->blocks[b].from
                                           : coh_trips_version(self->trips, b),
                            .weight = push_weight(self, weight) };
    coh_trips_push(self->trips, b, &head, gradient);
}

/* The sum of block b is made. One that is not finite is left out; where other
 * groups wait for the push (policy sync) it goes with weight 0. */
static void take_sum(coh_exchange *self, int64_t b)
{
    const block *it = &self->blocks[b];

    if (!is_used_here(self, b))
        return;
    const bool is_finite =
        coh_squares_add(self->statistics, it->range,
                        self->gradient + it->range.first, &self->squares);
    if (!self->holds && (is_finite || self->grant.groups > 1))
        use_sum(self, b, is_finite ? self->parts[0] : 0);
}

/* All sums are made, and norm, of all of them together, is finite. */
static void use_all(coh_exchange *self, double norm)
{
    const double factor =
        self->most_norm > 0 ? coh_clip_factor(self->most_norm, norm) : 1;

    for (int64_t b = self->nblocks - 1; b >= 0; b--) {
        const coh_range range = self->blocks[b].range;
        if (!is_used_here(self, b))
            continue;
        coh_clip(self->statistics, range, factor, self->gradient + range.first);
        use_sum(self, b, self->parts[0]);
    }
}

/* Gradients are complete from parameter `first` on. */
static coh_status take_gradients(coh_exchange *self, int64_t first, bool all,
                                 coh_err *err)
{
    coh_status status = COH_OK;

    if (!all && self->parts_sum != NULL && !coh_xfer_test(self->parts_sum))
        return COH_OK;
    if (!self->is_heard)
        status = hear_parts(self, err);
    if (status != COH_OK || self->is_void)
        return status;
    coh_sums_ready(self->sums, first);
    for (int64_t b = 0; b >= 0 && status == COH_OK;) {
        status = coh_sums_next(self->sums, all, &self->wait, &b, err);
        if (status == COH_OK && b >= 0)
            take_sum(self, b);
    }
    return status;
}

/* The weights that travel are not those that are calculated with: see how they
 * get on. Once all is pushed from here, nothing need wait for end(). */
static coh_status look(coh_exchange *self, coh_err *err)
{
    coh_status status = COH_OK;

    if (self->is_open)
        status = take_gradients(self, 0, false, err);
    if (status != COH_OK || self->trips == NULL)
        return status;
    if (self->is_open && self->is_heard && !self->is_void && !self->holds &&
        !self->is_back && coh_sums_done(self->sums)) {
        self->is_back = true;
        return coh_trips_back(self->trips, err);
    }
    return coh_trips_wait(self->trips, 0, err);
}

void coh_exchange_need(coh_exchange *self, int64_t end)
{
    coh_team_poll(self->roles->team);
    if (self->status == COH_OK)
        self->status = self->lags ? look(self, &self->why)
                                  : wait_for(self, end, &self->why);
}

void coh_exchange_have(coh_exchange *self, int64_t first)
{
    coh_team_poll(self->roles->team);
    if (self->status == COH_OK)
        self->status = self->lags
                           ? look(self, &self->why)
                           : take_gradients(self, first, false, &self->why);
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
    all[STEP] =
        !updates_all(self) || self->roles->mine.member == 0 ? self->squares : 0;
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
    if (!self->lags)
        status = coh_exchange_settle(self, err);
    if (status == COH_OK)
        status = take_gradients(self, 0, true, err);
    if (status == COH_OK)
        status = add_up(self, sums, err);
    *group = (coh_exchange_part){ self->parts[0], self->parts[1] > 0,
                                  self->parts[2] > 0 };
    *norm = group->weight > 0 ? sqrt(self->squares) / group->weight : 0;
    self->is_open = false;
    if (status != COH_OK || self->is_void)
        return status;
    if (self->holds && isfinite(*norm))
        use_all(self, *norm);
    if (must_push(self)) {
        self->pushes =
            self->plan->servers > 0 && push_weight(self, self->parts[0]) > 0
                ? self->nblocks
                : 0;
        self->arrived = self->local != NULL ? 0 : self->nblocks;
        if (!self->is_back)
            status = coh_trips_back(self->trips, err);
    }
    if (self->local != NULL)
        coh_local_end(self->local, self->parts[0]);
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
        if (!coh_trips_speaks(self->trips, b))
            continue;
        if (self->plan->servers > 0)
            coh_trips_pull(self->trips, b, exact);
        else
            coh_trips_put(self->trips, b, coh_shard_block(self->shard, b));
    }
    status = coh_trips_back(self->trips, err);
    if (status == COH_OK)
        status = coh_exchange_settle(self, err);
    if (status == COH_OK)
        coh_exchange_take(self);
    return status;
}

coh_status coh_exchange_look(coh_exchange *self, coh_err *err)
{
    const coh_status status = coh_exchange_settle(self, err);

    if (status != COH_OK)
        return status;
    self->is_aside = self->local != NULL && coh_local_put_aside(self->local);
    return coh_exchange_pull(self, true, err);
}

coh_status coh_exchange_go_on(coh_exchange *self, coh_err *err)
{
    if (!self->is_aside)
        return coh_exchange_pull(self, false, err);
    self->is_aside = false;
    coh_local_take_back(self->local);
    return COH_OK;
}

int64_t coh_exchange_pushes(const coh_exchange *self)
{
    return self->pushes;
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
