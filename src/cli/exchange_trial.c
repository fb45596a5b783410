/* exchange_trial.c - see exchange_trial.h. */
#include "cli/exchange_trial.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "common/resident.h"
#include "common/xfer.h"
#include "server/inbox.h"
#include "server/sent.h"
#include "worker/exchange.h"
#include "worker/sums.h"

/* As many turns as fit into this time, within bounds: of a step of the exchange
 * alone, or of a few that compute, first without it. */
static const double alone_s = 1.5, beside_s = 10;
enum { TURNS_LEAST = 5, TURNS_MOST = 200, TURN_STEPS = 4 };

/* How much of the free memory may be taken. */
static const double memory_share = 0.9;

typedef struct trial {
    const coh_trial_setup *setup;
    coh_plan plan;
    coh_schedule schedule;
    double times[TURNS_MOST], alone[TURNS_MOST]; /* a step */
    float *weights, *gradient; /* [P], of a worker; weights maybe the shard's */
    coh_exchange *exchange;
    coh_shard *shard; /* of a server, or of a worker without servers */
    coh_inbox *inbox;
} trial;

static coh_status plan_for(const coh_trial_setup *setup, coh_plan *out,
                           coh_err *err)
{
    return coh_plan_make(setup->config, setup->model, setup->roles->size, out,
                         err);
}

/* The largest of all ranks' values. Servers do their work until it is known. */
static coh_status meet(trial *self, double *value, coh_err *err)
{
    const double timeout_s = self->setup->config->exchange.timeout;
    coh_max most = { *value, self->setup->roles->rank };
    coh_xfer *xfer = coh_xfer_begin_max(self->setup->roles->world, &most, 1);
    double idle_since_s = coh_clock_now_s();

    while (self->inbox != NULL && !coh_xfer_test(xfer)) {
        bool any = false;
        const coh_status status = coh_inbox_poll(self->inbox, &any, err);
        if (status != COH_OK)
            return status;
        const double now_s = coh_clock_now_s();
        if (any)
            idle_since_s = now_s;
        else if (now_s - idle_since_s > timeout_s)
            break;
        else
            coh_xfer_rest(now_s - idle_since_s);
    }
    const coh_status status =
        coh_xfer_finish(&xfer, timeout_s, "the others' end of a step", err);
    *value = most.value;
    return status;
}

/* --- memory -------------------------------------------------------------- */

/* What this rank will allocate, and MPI for it at most. */
static int64_t bytes_for(const coh_trial_setup *setup, const coh_plan *plan)
{
    const coh_rule rule = coh_rule_of(setup->config);
    const int server = setup->roles->mine.server;
    const int64_t slots = coh_rule_slots(&rule);
    int64_t count = (2 + (plan->owners > 0 ? 0 : slots)) * plan->parameters +
                    2 * COH_SUMS_AT_ONCE * plan->block_count;

    if (coh_plan_shares_update(plan))
        count += (1 + slots) * coh_plan_fullest(plan);
    if (setup->roles->mine.is_server) {
        const int64_t owned = coh_plan_owned_parameters(plan, server);
        count = (1 + slots) * owned +
                coh_sent_floats(setup->config, plan, owned) +
                coh_inbox_floats(setup->config, plan, server);
    }
    return count * (int64_t)sizeof(float);
}

coh_status coh_trial_check_memory(const coh_trial_setup *setup, bool *fits,
                                  coh_err *err)
{
    trial self = { .setup = setup };

    coh_status status = plan_for(setup, &self.plan, err);
    if (status != COH_OK)
        return status; /* pure: the same on all ranks */
    double lacks = 0;  /* wait: what the others had last is free again */
    status = meet(&self, &lacks, err);
    if (status != COH_OK)
        return status;
    lacks = (double)bytes_for(setup, &self.plan) * setup->roles->node_ranks >
            memory_share * (double)coh_resident_free_bytes();
    status = meet(&self, &lacks, err);
    *fits = lacks <= 0;
    coh_plan_fini(&self.plan);
    return status;
}

/* --- the two roles ------------------------------------------------------- */

static coh_status make_shard(trial *self, int server, coh_err *err)
{
    const coh_rule rule = coh_rule_of(self->setup->config);

    return coh_shard_new(&self->plan, server, &rule,
                         &self->setup->model->statistics, &self->shard, err);
}

static coh_status make_worker(trial *self, coh_err *err)
{
    const coh_trial_setup *setup = self->setup;
    const coh_model *model = setup->model;
    const int owner =
        coh_plan_member_owner(&self->plan, setup->roles->mine.member);
    coh_status status = COH_OK;

    if (self->plan.owners == 0 || owner >= 0)
        status = make_shard(self, owner, err);
    if (status != COH_OK)
        return status;
    self->weights = self->plan.owners > 0 ? coh_floats(model->parameters)
                                          : coh_shard_values(self->shard);
    self->gradient = coh_floats(model->parameters);
    if (self->weights == NULL || self->gradient == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %lld weights and their gradient: see "
                        "--largest",
                        (long long)model->parameters);
    if (setup->compute != NULL)
        coh_model_init(model, (uint64_t)setup->config->run.seed, self->weights);
    if (owner >= 0)
        coh_shard_load(self->shard, self->weights);
    return coh_exchange_new(setup->config, &self->plan, setup->roles,
                            &self->schedule, &model->statistics, self->shard,
                            self->weights, &self->exchange, err);
}

/* Where nothing is computed weights stay 0: nobody looks. */
static coh_status fill_shard(trial *self, coh_err *err)
{
    const coh_model *model = self->setup->model;
    float *weights = coh_floats(model->parameters);

    if (weights == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the first weights");
    coh_model_init(model, (uint64_t)self->setup->config->run.seed, weights);
    coh_shard_load(self->shard, weights);
    free(weights);
    return COH_OK;
}

static coh_status make_server(trial *self, coh_err *err)
{
    const coh_trial_setup *setup = self->setup;

    coh_status status = make_shard(self, setup->roles->mine.server, err);
    if (status == COH_OK && setup->compute != NULL)
        status = fill_shard(self, err);
    if (status == COH_OK)
        status = coh_inbox_new(setup->config, &self->plan, setup->roles,
                               setup->threads, &self->schedule, self->shard,
                               &self->inbox, err);
    return status;
}

static void fini(trial *self)
{
    coh_exchange_destroy(&self->exchange);
    coh_inbox_destroy(&self->inbox);
    if (self->plan.owners > 0)
        free(self->weights);
    coh_shard_destroy(&self->shard);
    free(self->gradient);
    coh_plan_fini(&self->plan);
}

/* --- steps --------------------------------------------------------------- */

static void need(void *user, int64_t end)
{
    trial *self = user;
    coh_exchange_need(self->exchange, end);
}

static void have(void *user, int64_t first)
{
    trial *self = user;
    coh_exchange_have(self->exchange, first);
}

static void compute(trial *self, const coh_watch *watch, coh_step_sums *sums)
{
    const coh_trial_setup *setup = self->setup;

    setup->compute->train(setup->compute->self, setup->batch, self->weights,
                          self->gradient, sums, watch);
}

/* A worker's step number n. Its new weights need not be here at the end. Without
 * computing the gradient is 0 everywhere: the weights never change. */
static coh_status step(trial *self, int n, coh_err *err)
{
    const coh_plan *plan = &self->plan;
    const bool is_sync = self->setup->config->policy == COH_POLICY_SYNC;
    const coh_grant grant = { .kind = COH_GRANT_TRAIN,
                              .step = n,
                              .count = plan->step_samples,
                              .clock = n * plan->step_samples,
                              .groups = is_sync ? plan->groups : 1 };
    const coh_exchange_part mine = { .weight = (double)plan->batch };
    const coh_watch watch = { self, need, have };
    coh_exchange_part group;
    coh_step_sums sums = { 0 };
    double norm;

    coh_exchange_begin(self->exchange, &grant, mine, self->gradient);
    if (self->setup->compute != NULL)
        compute(self, &watch, &sums);
    else
        coh_exchange_have(self->exchange, 0);
    return coh_exchange_end(self->exchange, &sums, &group, &norm, err);
}

static int turn_steps(const trial *self)
{
    return self->setup->compute != NULL ? TURN_STEPS : 1;
}

/* The steps of turn n, the first of which waits for nothing. */
static coh_status run_turn(trial *self, int n, double *seconds, coh_err *err)
{
    const int steps = turn_steps(self);
    const double begin_s = coh_clock_now_s();
    coh_status status = COH_OK;

    if (self->exchange == NULL)
        return COH_OK;
    for (int i = 0; i < steps && status == COH_OK; i++)
        status = step(self, n * steps + i, err);
    if (status == COH_OK)
        status = coh_exchange_settle(self->exchange, err);
    *seconds = (coh_clock_now_s() - begin_s) / steps;
    return status;
}

static void compute_turn(trial *self, double *seconds)
{
    const int steps = turn_steps(self);
    const double begin_s = coh_clock_now_s();
    coh_step_sums sums;

    if (self->setup->compute == NULL || self->exchange == NULL)
        return;
    for (int i = 0; i < steps; i++)
        compute(self, NULL, &sums);
    *seconds = (coh_clock_now_s() - begin_s) / steps;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, by_size);
    return times[count / 2];
}

/* All ranks know all times, so they stop together. The first turn is not
 * counted: it touches the memory. */
static coh_status run_turns(trial *self, coh_trial *out, coh_err *err)
{
    const bool computes = self->setup->compute != NULL;
    const double limit_s = computes ? beside_s : alone_s;
    const int least = computes ? 2 : TURNS_LEAST;
    double sum_s = 0;
    int count = 0;

    for (int n = 0; n <= TURNS_MOST; n++) {
        double beside = 0, alone = 0;
        compute_turn(self, &alone);
        coh_status status = meet(self, &alone, err);
        if (status == COH_OK)
            status = run_turn(self, n, &beside, err);
        if (status == COH_OK)
            status = meet(self, &beside, err);
        if (status != COH_OK)
            return status;
        if (n > 0) {
            self->alone[count] = alone;
            self->times[count++] = beside;
            sum_s += (alone + beside) * turn_steps(self);
        }
        if (count >= least && sum_s > limit_s)
            break;
    }
    out->steps = count * turn_steps(self);
    out->median_s = median(self->times, count);
    out->best_s = self->times[0];
    out->alone_s = median(self->alone, count);
    return COH_OK;
}

coh_status coh_trial_run(const coh_trial_setup *setup, coh_trial *out,
                         coh_err *err)
{
    trial self = { .setup = setup };

    coh_status status = plan_for(setup, &self.plan, err);
    if (status != COH_OK)
        return status; /* pure: the same on all ranks */
    self.schedule =
        coh_schedule_of(setup->config, self.plan.update_samples * TURNS_MOST,
                        self.plan.update_samples);
    status = setup->roles->mine.is_server ? make_server(&self, err)
                                          : make_worker(&self, err);
    status = coh_agree(setup->roles->world, status, err);
    *out = (coh_trial){ .parameters = self.plan.parameters,
                        .speakers = self.plan.speakers,
                        .nblocks = self.plan.nblocks,
                        .block_count = self.plan.block_count };
    if (status == COH_OK)
        status = run_turns(&self, out, err);
    if (status != COH_E_PEER)
        fini(&self); /* else MPI may still write into it */
    return status;
}
