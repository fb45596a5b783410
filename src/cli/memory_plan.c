/* memory_plan.c - see memory_plan.h. */
#include "cli/memory_plan.h"

#include <stdio.h>
#include <string.h>

#include "cli/choose.h"
#include "cli/threads.h"
#include "common/metrics.h"
#include "common/optim/rule.h"
#include "common/resident.h"
#include "server/inbox.h"
#include "server/sent.h"
#include "worker/dataset.h"
#include "worker/gradient.h"
#include "worker/local.h"
#include "worker/nn/measure.h"
#include "worker/nn/net.h"
#include "worker/sums.h"

enum {
    FLOAT_BYTES = 4,
    /* Measured with MPICH 4.0.2 over shared memory, 1 to 5 ranks: what MPI
     * adds to a process, 4 MiB of it shared; and what a step adds to a network
     * that is built (pages of the library's code). */
    MPI_BYTES = 15 << 20,
    STEP_BYTES = 5 << 20
};

int64_t coh_memory_sum(const coh_memory_parts *parts)
{
    int64_t sum = 0;

#define X(name, field, help) sum += parts->field;
    COH_MEMORY_PARTS(X)
#undef X
    return sum;
}

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- what is allocated -------------------------------------------------- */

static int64_t infer_batch(const coh_config *config, const coh_plan *plan)
{
    return config->eval.batch > 0 ? config->eval.batch : plan->batch;
}

/* Batches of the training set, and while it is evaluated those of another set;
 * with two classes the root sorts all scores, in a copy. */
static int64_t image_bytes(const coh_config *config, const coh_model *model,
                           const coh_plan *plan, int64_t evaluated)
{
    const int64_t rows =
        plan->batch + (evaluated > 0 ? infer_batch(config, plan) : 0);
    const int64_t row =
        FLOAT_BYTES * (coh_shape_count(model->input) + model->target_count);
    const int64_t scores = model->classes == 2 ? evaluated : 0;
    const int64_t depth = config->data.prefetch;

    return (depth > 0 ? depth : 1) * rows * row +
           2 * scores * (int64_t)sizeof(coh_score);
}

/* Copies of what a group adds up, MPI's or the team's; or, as the run ends, the
 * best weights as they are read. */
static int64_t exchange_bytes(const coh_config *config, const coh_plan *plan)
{
    const int64_t at_once = at_most(
        plan->parameters, plan->block_count * (int64_t)COH_SUMS_AT_ONCE);
    const bool is_mpi = config->exchange.collectives == COH_COLLECTIVES_MPI;
    const int64_t copies = plan->group_size == 1        ? 0
                           : is_mpi && plan->owners > 0 ? 2
                                                        : 1;
    const bool selects = config->eval.select == COH_SELECT_BEST;

    return FLOAT_BYTES *
           at_least(copies * at_once, selects ? plan->parameters : 0);
}

void coh_memory_count(const coh_config *config, const coh_model *model,
                      const coh_plan *plan, int64_t evaluated,
                      coh_memory_plan *out)
{
    const coh_rule rule = coh_rule_of(config);
    const coh_rule of_servers = coh_rule_of_servers(config);
    const int64_t slots = coh_rule_slots(&rule);
    const bool updates = plan->servers == 0 || coh_rule_is_local(config);
    const int64_t kept = coh_local_floats(config, plan->parameters);
    const int64_t all = FLOAT_BYTES * plan->parameters;
    const int64_t own =
        plan->owners > 0 ? FLOAT_BYTES * coh_plan_fullest(plan) : all;
    const bool shares = coh_plan_shares_update(plan);

    *out = (coh_memory_plan){ 0 };
    out->worker = (coh_memory_parts){
        .parameters = all + (shares ? own : 0),
        .gradient = all * coh_gradient_vectors(config),
        .optimizer =
            (updates ? slots * (shares ? own : all) : 0) + FLOAT_BYTES * kept,
        .images = image_bytes(config, model, plan, evaluated),
        .exchange = exchange_bytes(config, plan) +
                    (plan->owners > 0 && config->exchange.lag > 0 ? all : 0),
    };
    if (plan->servers == 0)
        return;
    /* Of the fullest server. Of all initial values it keeps its own. */
    const int64_t sent = coh_sent_floats(config, plan, own); /* bytes, as own */
    int64_t blocks = 0;
    for (int s = 0; s < plan->servers; s++)
        blocks =
            at_least(blocks, FLOAT_BYTES * coh_inbox_floats(config, plan, s));
    out->server = (coh_memory_parts){
        .parameters = own,
        .optimizer = coh_rule_slots(&of_servers) * own + sent,
        .exchange = at_least(all - sent, blocks), /* not at the same time */
    };
}

/* --- what is tried ------------------------------------------------------ */

/* Open a set as a worker does; *count: its samples. */
static coh_status try_set(const coh_config *config, const coh_model *model,
                          coh_split split, coh_dataset **set, int64_t *count,
                          int64_t *caches, coh_err *err)
{
    const coh_status status =
        coh_dataset_open_for(config, split, model, set, err);

    if (status != COH_OK)
        return status;
    *count = coh_dataset_count(*set);
    *caches += coh_dataset_cache_bytes(*set);
    return COH_OK;
}

/* What the three sets take, and how many samples are evaluated at most. */
static coh_status try_data(const coh_config *config, const coh_model *model,
                           int64_t *bytes, int64_t *evaluated, coh_err *err)
{
    enum { SETS = COH_SPLIT_TEST + 1 };
    const int64_t before = coh_resident_bytes();
    coh_dataset *sets[SETS] = { 0 };
    int64_t counts[SETS] = { 0 }, caches = 0;
    coh_status status = COH_OK;

    for (int split = 0; split < SETS && status == COH_OK; split++)
        status = try_set(config, model, (coh_split)split, &sets[split],
                         &counts[split], &caches, err);
    if (status == COH_OK) {
        *bytes = at_least(coh_resident_bytes() - before, 0) + caches;
        *evaluated =
            at_least(counts[COH_SPLIT_VALIDATION], counts[COH_SPLIT_TEST]);
    }
    for (int split = 0; split < SETS; split++)
        coh_dataset_close(&sets[split]);
    return status;
}

/* Nobody has measured this network here: a run will, each way by itself, and
 * then mix them. *out is that of direct; becomes the larger of both. */
static coh_status try_larger(const coh_choose_task *task, int64_t infer_batch,
                             coh_net_bytes *out, coh_err *err)
{
    coh_config config = *task->config;
    coh_choose_task largest = *task;
    coh_choices *choices = NULL;
    coh_net_bytes most;

    config.compute.algorithm = COH_COMPUTE_WINOGRAD;
    largest.config = &config;
    coh_status status = coh_choose_known(&largest, &choices, err);
    if (status == COH_OK)
        status = coh_net_predict(task->model, task->batch, infer_batch,
                                 task->threads, choices, &most, err);
    coh_choices_destroy(&choices);
    if (status != COH_OK)
        return status;
    out->train = at_least(out->train, most.train);
    out->infer = at_least(out->infer, most.infer);
    out->op = at_least(out->op, most.op);
    return COH_OK;
}

/* The network as a worker will build it; alone on its node, as far as threads
 * go. */
static coh_status try_net(const coh_config *config, const coh_model *model,
                          const coh_plan *plan, coh_net_bytes *out,
                          const char **passes, coh_err *err)
{
    const coh_choose_task task = {
        .config = config,
        .model = model,
        .batch = plan->batch,
        .training = true,
        .threads = coh_threads_for(config->compute.threads, 1),
    };
    const int64_t rows = infer_batch(config, plan);
    coh_choices *choices = NULL;

    coh_status status = coh_choose_known(&task, &choices, err);
    const bool is_cold =
        status == COH_PENDING && coh_choices_need_measure(model, plan->batch);
    *passes = is_cold                                             ? "unmeasured"
              : choices == NULL                                   ? "direct"
              : config->compute.algorithm == COH_COMPUTE_WINOGRAD ? "winograd"
                                                                  : "measured";
    if (status == COH_PENDING)
        status = COH_OK;
    if (status == COH_OK)
        status = coh_net_predict(model, plan->batch, rows, task.threads,
                                 choices, out, err);
    if (status == COH_OK && is_cold)
        status = try_larger(&task, rows, out, err);
    else
        out->op = 0; /* nothing is timed */
    coh_choices_destroy(&choices);
    return status;
}

coh_status coh_memory_predict(const coh_config *config, const coh_model *model,
                              const coh_plan *plan, coh_memory_plan *out,
                              coh_err *err)
{
    const int64_t bare = coh_resident_bytes();
    int64_t data = 0, evaluated = 1;
    coh_err why = COH_ERR_INIT;
    coh_net_bytes values;
    const char *passes;

    const coh_status status =
        try_net(config, model, plan, &values, &passes, err);
    if (status != COH_OK)
        return status;
    const int64_t built = at_least(coh_resident_peak_bytes(), bare);
    const coh_status read = try_data(config, model, &data, &evaluated, &why);

    coh_memory_count(config, model, plan, evaluated, out);
    out->passes = passes;
    out->training = values.train;
    out->evaluation = values.infer;
    out->worker.values = at_least(values.train, values.infer);
    out->worker.measuring =
        at_least(values.op - coh_memory_sum(&out->worker), 0);
    out->worker.data = data;
    out->worker.program = built + MPI_BYTES + STEP_BYTES;
    if (plan->servers > 0)
        out->server.program = bare + MPI_BYTES;
    out->has_data = read == COH_OK;
    snprintf(out->why, sizeof out->why, "%.*s", (int)sizeof out->why - 1,
             out->has_data ? "" : why.text);
    return COH_OK;
}
