/* worker.c - see worker.h. */
#include "worker/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "worker/evaluate.h"
#include "worker/exchange.h"
#include "worker/gradient.h"
#include "worker/lead.h"
#include "worker/loader.h"

typedef struct worker {
    coh_worker_setup setup;
    coh_schedule schedule;
    coh_lead *lead;
    coh_loader *loader;
    coh_gradient *gradient;
    coh_exchange *exchange;
    coh_shard *shard;   /* without servers: all weights; else NULL */
    float *own_weights; /* with servers: [P], owned; else NULL */
    float *weights;     /* [P] own_weights, or the shard's values */
    double best_score;  /* of the validation set; negative: none yet */
    coh_report report;  /* of the last step, while its weights come back */
    bool is_under_way;  /* they do: the report is not sent yet */
} worker;

static bool is_root(const worker *self)
{
    return self->setup.roles->mine.member == 0;
}

static int64_t samples_here(const worker *self, const coh_grant *grant)
{
    return coh_plan_share(self->setup.plan, self->setup.roles->mine.member,
                          grant->count)
        .count;
}

/* Heard of a grant: let the loader read this member's share of it. */
static coh_status read_ahead(void *user, const coh_grant *grant, coh_err *err)
{
    worker *self = user;
    const coh_plan *plan = self->setup.plan;
    coh_status status = COH_OK;

    if (grant->kind != COH_GRANT_TRAIN)
        return COH_OK;
    const coh_range share =
        coh_plan_share(plan, self->setup.roles->mine.member, grant->count);
    const int64_t batches = coh_plan_batches(plan, share.count);
    for (int64_t i = 0; i < batches && status == COH_OK; i++) {
        const coh_range batch = coh_plan_batch(plan, share.count, i);
        const coh_piece piece = { (uint32_t)grant->epoch,
                                  grant->first + share.first + batch.first,
                                  batch.count };
        status = coh_loader_ask(self->loader, piece, err);
    }
    return status;
}

/* The last step is over once its weights are here; the chief may know. */
static coh_status end_last_step(worker *self, coh_err *err)
{
    if (!self->is_under_way)
        return COH_OK;
    self->is_under_way = false;
    const coh_status status = coh_exchange_settle(self->exchange, err);
    return status == COH_OK ? coh_lead_report(self->lead, &self->report, err)
                            : status;
}

static void need(void *user, int64_t end)
{
    worker *self = user;
    coh_exchange_need(self->exchange, end);
}

static void have(void *user, int64_t first)
{
    worker *self = user;
    coh_exchange_have(self->exchange, first);
}

/* Forward and backward on the loader's next batches, with the exchange beside.
 * What the step weighs is known with the last of them. */
static coh_status compute_step(worker *self, const coh_grant *grant,
                               coh_step_sums *sums, coh_err *err)
{
    const coh_watch watch = { self, need, have };
    const int64_t batches =
        coh_plan_batches(self->setup.plan, samples_here(self, grant));
    float *gradient = coh_gradient_values(self->gradient);
    coh_exchange_part mine = { .stop =
                                   coh_signals_poll(self->setup.signals) != 0 };

    coh_gradient_begin(self->gradient);
    for (int64_t i = 0; i < batches; i++) {
        const bool is_last = i + 1 == batches;
        coh_batch *batch = NULL;
        const coh_status status = coh_loader_take(self->loader, &batch, err);
        mine.failed = status != COH_OK;
        mine.weight += status == COH_OK ? coh_batch_weight(batch) : 0;
        if (is_last || mine.failed)
            coh_exchange_begin(self->exchange, grant, mine, gradient);
        if (mine.failed)
            return status;
        coh_gradient_add(self->gradient, self->setup.compute, batch, is_last,
                         self->weights, sums, &watch);
        coh_loader_give(self->loader, batch);
    }
    return COH_OK;
}

static coh_status check_loss(const coh_grant *grant, double loss, coh_err *err)
{
    if (isfinite(loss))
        return COH_OK;
    return coh_fail(err, COH_E_DIVERGED,
                    "the loss at step %lld is not finite: lower "
                    "optimizer.rate, add optimizer.warmup, or check the data "
                    "for extreme values",
                    (long long)grant->step);
}

/* One training step. The outcome of the group is in *report; the return value
 * is not COH_OK only if the group itself is broken (COH_E_PEER). */
static coh_status train(worker *self, const coh_grant *grant,
                        coh_report *report, coh_err *err)
{
    coh_step_sums sums = { 0 };
    coh_exchange_part group = { 0 };
    const double begin_s = coh_clock_now_s();
    const double waited_s = coh_exchange_waited_s(self->exchange);

    coh_status mine = compute_step(self, grant, &sums, err);
    coh_status status = end_last_step(self, err);
    if (status != COH_OK)
        return status;
    status = coh_exchange_end(self->exchange, &sums, &group,
                              &report->gradient_norm, err);
    if (status == COH_E_PEER)
        return status;
    if (group.failed)
        mine = coh_agree(self->setup.roles->group, mine, err);
    if (mine == COH_OK)
        mine = status;
    if (mine == COH_OK)
        mine = check_loss(grant, sums.loss, err);
    report->samples = grant->count;
    report->loss = sums.loss;
    report->weight = sums.weight;
    memcpy(report->losses, sums.terms, sizeof report->losses);
    report->wait_s = coh_exchange_waited_s(self->exchange) - waited_s;
    report->compute_s = coh_clock_now_s() - begin_s - report->wait_s;
    report->stop = group.stop;
    report->status = mine;
    return COH_OK;
}

static coh_status alive(void *user, coh_err *err)
{
    worker *self = user;
    return coh_lead_alive(self->lead, err);
}

static void best_folder(const worker *self, char out[PATH_MAX])
{
    if (coh_path(out, NULL, "%s/best", self->setup.folder) != COH_OK)
        out[0] = '\0';
}

static coh_status write_best(worker *self, const coh_grant *grant, double score,
                             coh_err *err)
{
    char name[PATH_MAX], folder[PATH_MAX];
    coh_manifest manifest = *self->setup.start;

    manifest.progress.steps = grant->step;
    manifest.progress.samples = grant->clock;
    manifest.parts = 1;
    manifest.best_score = score;
    manifest.best_step = grant->step;
    best_folder(self, name);
    coh_status status = coh_path(folder, err, "%s.tmp", name);
    if (status == COH_OK)
        status = coh_checkpoint_begin(folder, err);
    if (status == COH_OK)
        status = coh_checkpoint_write_weights(
            folder, self->weights, self->setup.model->parameters, err);
    if (status == COH_OK)
        status = coh_checkpoint_commit(folder, name, &manifest,
                                       self->setup.config, err);
    return status;
}

/* Root: keep these weights in RUN/best if no others scored higher. A disk that
 * is full must not end the training: the next evaluation tries again. */
static void keep_best(worker *self, const coh_grant *grant,
                      const coh_evaluation *e)
{
    const double mean = e->weight > 0 ? e->loss / e->weight : 0;
    const double score = coh_metrics_score(e->accuracy, e->auc, mean);
    coh_err err = COH_ERR_INIT;

    if (!is_root(self) || score <= self->best_score || e->samples == 0)
        return;
    if (write_best(self, grant, score, &err) == COH_OK)
        self->best_score = score;
    else
        coh_log_write(self->setup.log, COH_LOG_ERROR,
                      "the best weights so far were NOT written: %s", err.text);
}

/* Root: the weights of RUN/best instead of the last ones. */
static coh_status read_best(worker *self, coh_err *err)
{
    char folder[PATH_MAX];
    coh_manifest manifest;

    best_folder(self, folder);
    if (!is_root(self) || !coh_path_exists(folder))
        return COH_OK; /* nothing was evaluated: the last are the best */
    coh_status status = coh_checkpoint_read_manifest(folder, &manifest, err);
    if (status == COH_OK &&
        manifest.fingerprint != self->setup.start->fingerprint)
        return coh_fail(err, COH_E_CONFIG,
                        "'%s' holds the weights of another network: remove it",
                        folder);
    if (status == COH_OK)
        status =
            coh_checkpoint_read_weights(folder, &manifest, self->weights, err);
    return status;
}

static coh_status load_best(worker *self, coh_err *err)
{
    coh_status status = read_best(self, err);

    status = coh_agree(self->setup.roles->group, status, err);
    return status == COH_OK ? coh_exchange_spread(self->exchange, err) : status;
}

/* Evaluate the validation or the test set. As train(). */
static coh_status evaluate(worker *self, const coh_grant *grant,
                           coh_report *report, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const coh_evaluator evaluator = { setup->config,  setup->model,
                                      setup->roles,   setup->plan->group_size,
                                      setup->compute, setup->infer_batch,
                                      alive,          self };
    const bool is_test = grant->kind == COH_GRANT_TEST;
    const bool selects = setup->config->eval.select == COH_SELECT_BEST;
    coh_evaluation e = { .accuracy = -1, .auc = -1 };

    coh_status mine = coh_exchange_pull(self->exchange, true, err);
    if (mine == COH_E_PEER)
        return mine;
    if (is_test && selects)
        mine = load_best(self, err);
    if (mine == COH_OK)
        mine =
            coh_evaluate(&evaluator, is_test ? setup->test : setup->validation,
                         self->weights, &e, err);
    if (mine == COH_E_PEER)
        return mine;
    if (mine == COH_OK)
        mine = check_loss(grant, e.loss, err);
    if (mine == COH_OK && !is_test && selects)
        keep_best(self, grant, &e);
    if (!is_test && coh_exchange_pull(self->exchange, false, err) == COH_E_PEER)
        return COH_E_PEER; /* what was measured is old by now */
    report->samples = e.samples;
    report->loss = e.loss;
    report->weight = e.weight;
    report->accuracy = e.accuracy;
    report->auc = e.auc;
    report->status = mine;
    return COH_OK;
}

static void report_text(coh_report *report, const coh_err *err)
{
    if (report->status != COH_OK)
        snprintf(report->text, sizeof report->text, "%.*s", COH_REPORT_TEXT - 1,
                 err->text);
}

/* May the weights of what was done last come back during what is next? Both
 * must be steps, with servers: without, the weights are here already. */
static bool may_overlap(const worker *self)
{
    return self->shard == NULL && self->report.kind == COH_GRANT_TRAIN &&
           coh_lead_trains_next(self->lead);
}

/* Grant after grant, until STOP. */
static coh_status loop(worker *self, coh_err *err)
{
    coh_grant grant;
    bool has_failed = false;

    for (;;) {
        coh_status status = COH_OK;
        if (has_failed || !may_overlap(self))
            status = end_last_step(self, err);
        if (status == COH_OK)
            status = coh_lead_take(self->lead, &grant, err);
        if (status != COH_OK)
            return status;
        if (grant.kind == COH_GRANT_STOP)
            return (coh_status)grant.status;
        if (has_failed)
            continue; /* granted before the chief heard of it */

        coh_report report = { .kind = grant.kind,
                              .membership = grant.membership,
                              .group = self->setup.roles->mine.group,
                              .step = grant.step,
                              .accuracy = -1,
                              .auc = -1 };
        status = grant.kind == COH_GRANT_TRAIN
                     ? train(self, &grant, &report, err)
                     : evaluate(self, &grant, &report, err);
        if (status != COH_OK)
            return status;
        has_failed = report.status != COH_OK;
        report_text(&report, err);
        self->report = report;
        self->is_under_way = true;
    }
}

/* The weights and where they are updated. */
static coh_status make_weights(worker *self, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const int64_t count = setup->model->parameters;
    const coh_rule rule = coh_rule_of(setup->config);

    coh_status status = coh_gradient_new(
        count, setup->config->train.accumulate > 1, &self->gradient, err);
    if (status != COH_OK)
        return status;
    if (setup->plan->servers > 0) {
        self->weights = self->own_weights = coh_floats(count);
        if (self->weights != NULL)
            return COH_OK;
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %lld weights, %.3f GiB: use a smaller "
                        "network, or fewer ranks a node",
                        (long long)count, 4.0 * (double)count / (1 << 30));
    }

    status = coh_shard_new(setup->plan, -1, &rule, &setup->model->statistics,
                           &self->shard, err);
    if (status != COH_OK)
        return status;
    self->weights = coh_shard_values(self->shard);
    if (setup->checkpoint[0] != '\0')
        return coh_checkpoint_read_part(setup->checkpoint, setup->plan, 0,
                                        self->shard, err);
    coh_model_init(setup->model, (uint64_t)setup->config->run.seed,
                   self->weights);
    return COH_OK;
}

static coh_status make_parts(worker *self, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const coh_lead_local local = { setup->chief, self->shard };

    coh_status status = coh_loader_new(
        setup->train, setup->model->input, setup->plan->batch,
        setup->config->data.prefetch, (uint64_t)setup->config->run.seed, true,
        &self->loader, err);
    if (status == COH_OK)
        status =
            coh_exchange_new(setup->config, setup->plan, setup->roles,
                             &self->schedule, &setup->model->statistics,
                             self->shard, self->weights, &self->exchange, err);
    if (status == COH_OK)
        status = coh_lead_new(setup->config, setup->plan, setup->roles, local,
                              read_ahead, self, &self->lead, err);
    return status;
}

static void fini(worker *self)
{
    coh_lead_destroy(&self->lead);
    coh_exchange_destroy(&self->exchange);
    coh_loader_destroy(&self->loader);
    coh_gradient_destroy(&self->gradient);
    coh_shard_destroy(&self->shard);
    free(self->own_weights);
}

coh_status coh_worker_run(const coh_worker_setup *setup, coh_err *err)
{
    const coh_report ready = { .kind = COH_REPORT_READY,
                               .group = setup->roles->mine.group };
    worker self = { .setup = *setup, .best_score = setup->start->best_score };

    self.schedule =
        coh_schedule_of(setup->config, coh_dataset_count(setup->train),
                        setup->plan->step_samples);
    coh_status status = make_weights(&self, err);
    if (status == COH_OK)
        status = make_parts(&self, err);
    status = coh_agree(setup->roles->world, status, err);
    if (status == COH_OK)
        status = coh_exchange_pull(self.exchange, false, err);
    if (status == COH_OK)
        status = coh_lead_report(self.lead, &ready, err);
    if (status == COH_OK)
        status = loop(&self, err);
    if (status != COH_E_PEER)
        fini(&self); /* else MPI may still write into it */
    return status;
}
