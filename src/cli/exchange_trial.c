/* exchange_trial.c - see exchange_trial.h. */
#include "cli/exchange_trial.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "common/resident.h"
#include "common/xfer.h"
#include "server/inbox.h"
#include "worker/exchange.h"

/* As many steps as fit into this time, within bounds. */
static const double steps_s = 1.5;
enum { STEPS_LEAST = 5, STEPS_MOST = 200 };

/* How much of the free memory may be taken. */
static const double memory_share = 0.9;

typedef struct trial {
    const coh_trial_setup *setup;
    coh_plan plan;
    coh_schedule schedule;
    coh_statistics none;
    double times[STEPS_MOST];
    float *weights, *gradient; /* [P], of a worker */
    coh_exchange *exchange;
    coh_shard *shard; /* of a server */
    coh_inbox *inbox;
} trial;

/* The parameters are one vector: a balanced plan asks for no layers. */
static coh_status plan_for(const coh_trial_setup *setup, coh_plan *out,
                           coh_err *err)
{
    const coh_model model = { .parameters = setup->parameters,
                              .trained = setup->parameters };

    return coh_plan_make(setup->config, &model, setup->roles->size, out, err);
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
    int64_t count =
        2 * (plan->parameters + COH_SUMS_AT_ONCE * plan->block_count);

    if (setup->roles->mine.is_server)
        count = (1 + coh_rule_slots(&rule)) *
                    coh_plan_owned_parameters(plan, server) +
                coh_inbox_floats(setup->config, plan, server);
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

static coh_status make_worker(trial *self, coh_err *err)
{
    const coh_trial_setup *setup = self->setup;

    self->weights = coh_floats(setup->parameters);
    self->gradient = coh_floats(setup->parameters);
    if (self->weights == NULL || self->gradient == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %lld weights and their gradient: see "
                        "--largest",
                        (long long)setup->parameters);
    return coh_exchange_new(setup->config, &self->plan, setup->roles,
                            &self->schedule, &self->none, NULL, self->weights,
                            self->gradient, &self->exchange, err);
}

static coh_status make_server(trial *self, coh_err *err)
{
    const coh_trial_setup *setup = self->setup;
    const coh_rule rule = coh_rule_of(setup->config);

    coh_status status = coh_shard_new(&self->plan, setup->roles->mine.server,
                                      &rule, &self->none, &self->shard, err);
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
    coh_shard_destroy(&self->shard);
    free(self->weights);
    free(self->gradient);
    coh_plan_fini(&self->plan);
}

/* --- steps --------------------------------------------------------------- */

/* A worker's step number n. The gradient is 0 everywhere: the weights never
 * change, so no rate is too high. */
static coh_status step(trial *self, int n, double *seconds, coh_err *err)
{
    const coh_plan *plan = &self->plan;
    const bool is_sync = self->setup->config->policy == COH_POLICY_SYNC;
    const coh_grant grant = { .kind = COH_GRANT_TRAIN,
                              .step = n,
                              .count = plan->step_samples,
                              .clock = n * plan->step_samples,
                              .groups = is_sync ? plan->groups : 1 };
    const coh_exchange_part mine = { .weight = (double)plan->batch };
    coh_exchange_part group;
    coh_step_sums sums = { 0 };
    double norm;

    const double begin_s = coh_clock_now_s();
    coh_exchange_begin(self->exchange, &grant, mine);
    coh_exchange_have(self->exchange, 0);
    coh_status status =
        coh_exchange_end(self->exchange, &sums, &group, &norm, err);
    if (status == COH_OK)
        status = coh_exchange_settle(self->exchange, err);
    *seconds = coh_clock_now_s() - begin_s;
    return status;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* All ranks know all times, so they stop together. The first step is not
 * counted: it touches the memory. */
static coh_status run_steps(trial *self, coh_trial *out, coh_err *err)
{
    double *times = self->times, sum_s = 0;
    int count = 0;

    for (int n = 0; n <= STEPS_MOST; n++) {
        double seconds = 0;
        coh_status status = COH_OK;
        if (self->exchange != NULL)
            status = step(self, n, &seconds, err);
        if (status == COH_OK)
            status = meet(self, &seconds, err);
        if (status != COH_OK)
            return status;
        if (n > 0) {
            times[count++] = seconds;
            sum_s += seconds;
        }
        if (count >= STEPS_LEAST && sum_s > steps_s)
            break;
    }
    qsort(times, (size_t)count, sizeof *times, by_size);
    out->steps = count;
    out->best_s = times[0];
    out->median_s = times[count / 2];
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
        coh_schedule_of(setup->config, self.plan.update_samples * STEPS_MOST,
                        self.plan.update_samples);
    status = setup->roles->mine.is_server ? make_server(&self, err)
                                          : make_worker(&self, err);
    status = coh_agree(setup->roles->world, status, err);
    *out = (coh_trial){ .parameters = setup->parameters,
                        .speakers = self.plan.speakers,
                        .nblocks = self.plan.nblocks,
                        .block_count = self.plan.block_count };
    if (status == COH_OK)
        status = run_steps(&self, out, err);
    if (status != COH_E_PEER)
        fini(&self); /* else MPI may still write into it */
    return status;
}
