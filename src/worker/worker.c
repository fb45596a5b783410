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

/* What was granted last, until it is reported. */
typedef struct doing {
    coh_report report;
    bool is_under_way; /* not reported yet: its weights may be on their way */
    bool is_open;      /* a step whose exchange has not ended */
    coh_step_sums sums;
    coh_status mine; /* of this member's part */
    coh_err why;     /* of `mine`, then of the report's status */
} doing;

typedef struct worker {
    coh_worker_setup setup;
    coh_schedule schedule;
    coh_lead *lead;
    coh_loader *loader;
    coh_gradient *gradient;
    coh_exchange *exchange;
    coh_shard *shard;   /* what is updated here, or NULL */
    float *own_weights; /* [P], owned; NULL: all is updated here */
    float *weights;     /* [P] own_weights, or the shard's values */
    double best_score;  /* of the validation set; negative: none yet */
    doing last;
    bool has_failed; /* what is granted still was before the chief knew */
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

static bool lags(const worker *self)
{
    return self->setup.config->exchange.lag > 0;
}

/* Forward and backward on the loader's next batches, with the exchange beside:
 * of this step, begun when what it weighs is known, with the last of them; or
 * with a lag, of the one before. */
static coh_status compute_step(worker *self, const coh_grant *grant,
                               coh_exchange_part *part, coh_step_sums *sums,
                               coh_err *err)
{
    const coh_watch watch = { self, need, have };
    const int64_t batches =
        coh_plan_batches(self->setup.plan, samples_here(self, grant));

    *part = (coh_exchange_part){ .stop = coh_signals_poll(
                                             self->setup.signals) != 0 };
    coh_gradient_begin(self->gradient);
    for (int64_t i = 0; i < batches; i++) {
        const bool is_last = i + 1 == batches;
        coh_batch *batch = NULL;
        const coh_status status = coh_loader_take(self->loader, &batch, err);
        part->failed = status != COH_OK;
        part->weight += status == COH_OK ? coh_batch_weight(batch) : 0;
        if ((is_last || part->failed) && !lags(self))
            coh_exchange_begin(self->exchange, grant, *part,
                               coh_gradient_values(self->gradient));
        if (part->failed)
            return status;
        coh_gradient_add(self->gradient, self->setup.compute, batch, is_last,
                         self->weights, sums, &watch);
        coh_loader_give(self->loader, batch);
    }
    return COH_OK;
}

static coh_status check_loss(int64_t step, double loss, coh_err *err)
{
    if (isfinite(loss))
        return COH_OK;
    return coh_fail(err, COH_E_DIVERGED,
                    "the loss at step %lld is not finite: lower "
                    "optimizer.rate, add optimizer.warmup, or check the data "
                    "for extreme values",
                    (long long)step);
}

static void report_text(coh_report *report, const coh_err *err)
{
    if (report->status != COH_OK)
        snprintf(report->text, sizeof report->text, "%.*s", COH_REPORT_TEXT - 1,
                 err->text);
}

/* The exchange of the last step ends, and so does what it says of the step.
 * Fails only if the group itself is broken (COH_E_PEER). */
static coh_status end_exchange(worker *self, coh_err *err)
{
    doing *it = &self->last;
    coh_report *report = &it->report;
    coh_exchange_part group = { 0 };
    coh_err why = COH_ERR_INIT;

    it->is_open = false;
    const coh_status status = coh_exchange_end(
        self->exchange, &it->sums, &group, &report->gradient_norm, &why);
    if (status == COH_E_PEER) {
        *err = why;
        return status;
    }
    if (group.failed)
        it->mine = coh_agree(self->setup.roles->group, it->mine, &it->why);
    if (it->mine == COH_OK && status != COH_OK) {
        it->mine = status;
        it->why = why;
    }
    if (it->mine == COH_OK)
        it->mine = check_loss(report->step, it->sums.loss, &it->why);
    report->pushes = coh_exchange_pushes(self->exchange);
    report->loss = it->sums.loss;
    report->weight = it->sums.weight;
    memcpy(report->losses, it->sums.terms, sizeof report->losses);
    report->stop = group.stop;
    report->status = it->mine;
    return COH_OK;
}

/* What was done last is over once its weights are here; the chief may know. */
static coh_status end_last(worker *self, coh_err *err)
{
    doing *it = &self->last;
    coh_status status = COH_OK;

    if (!it->is_under_way)
        return COH_OK;
    it->is_under_way = false;
    if (it->is_open)
        status = end_exchange(self, err);
    if (status == COH_OK)
        status = coh_exchange_settle(self->exchange, err);
    if (status != COH_OK)
        return status;
    self->has_failed = it->report.status != COH_OK;
    if (self->has_failed)
        *err = it->why;
    report_text(&it->report, &it->why);
    return coh_lead_report(self->lead, &it->report, err);
}

/* One training step; what it comes to is in self->last once its exchange has
 * ended: now, or with a lag after the next one is calculated. Fails as
 * end_exchange(). */
static coh_status train(worker *self, const coh_grant *grant, doing *now,
                        coh_err *err)
{
    const double begin_s = coh_clock_now_s();
    const double waited_s = coh_exchange_waited_s(self->exchange);
    coh_exchange_part part;

    if (grant->fresh)
        coh_exchange_take(self->exchange);
    now->mine = compute_step(self, grant, &part, &now->sums, &now->why);
    coh_status status = end_last(self, err);
    if (status != COH_OK || self->has_failed)
        return status;
    if (lags(self)) {
        coh_exchange_take(self->exchange);
        coh_exchange_begin(self->exchange, grant, part,
                           coh_gradient_values(self->gradient));
    }
    now->is_open = now->is_under_way = true;
    now->report.samples = grant->count;
    self->last = *now;
    if (!lags(self))
        status = end_exchange(self, err);
    coh_report *report = &self->last.report;
    report->wait_s = coh_exchange_waited_s(self->exchange) - waited_s;
    report->compute_s = coh_clock_now_s() - begin_s - report->wait_s;
    return status;
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

/* Evaluate the validation or the test set. */
static coh_status measure(worker *self, const coh_grant *grant,
                          coh_evaluation *out, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const coh_evaluator evaluator = { setup->config,  setup->model,
                                      setup->roles,   setup->plan->group_size,
                                      setup->compute, setup->infer_batch,
                                      alive,          self };
    const bool is_test = grant->kind == COH_GRANT_TEST;
    const bool selects = setup->config->eval.select == COH_SELECT_BEST;

    coh_status status = coh_exchange_look(self->exchange, err);
    if (status == COH_OK && is_test && selects)
        status = load_best(self, err);
    if (status == COH_OK)
        status =
            coh_evaluate(&evaluator, is_test ? setup->test : setup->validation,
                         self->weights, out, err);
    if (status == COH_OK)
        status = check_loss(grant->step, out->loss, err);
    if (status == COH_OK && !is_test && selects)
        keep_best(self, grant, out);
    return status;
}

/* As train(), but that it is over at once. */
static coh_status evaluate(worker *self, const coh_grant *grant, doing *now,
                           coh_err *err)
{
    coh_evaluation e = { .accuracy = -1, .auc = -1 };

    now->report.status = measure(self, grant, &e, &now->why);
    if (now->report.status == COH_E_PEER) {
        *err = now->why;
        return COH_E_PEER;
    }
    if (grant->kind != COH_GRANT_TEST &&
        coh_exchange_go_on(self->exchange, err) == COH_E_PEER)
        return COH_E_PEER; /* what was measured is old by now */
    now->report.samples = e.samples;
    now->report.loss = e.loss;
    now->report.weight = e.weight;
    now->report.accuracy = e.accuracy;
    now->report.auc = e.auc;
    now->is_under_way = true;
    self->last = *now;
    return COH_OK;
}

/* May what was done last end beside what is next? Both must be steps, and its
 * weights on their way: if all are updated here, without a lag, they are here
 * already. */
static bool may_overlap(const worker *self)
{
    const coh_report *report = &self->last.report;

    return (self->own_weights != NULL || lags(self) || report->pushes > 0) &&
           report->status == COH_OK && report->kind == COH_GRANT_TRAIN &&
           coh_lead_trains_next(self->lead);
}

/* Grant after grant, until STOP. */
static coh_status loop(worker *self, coh_err *err)
{
    coh_grant grant;

    for (;;) {
        coh_status status = may_overlap(self) ? COH_OK : end_last(self, err);
        if (status == COH_OK)
            status = coh_lead_take(self->lead, &grant, err);
        if (status != COH_OK)
            return status;
        if (grant.kind == COH_GRANT_STOP)
            return (coh_status)grant.status;
        if (self->has_failed)
            continue; /* granted before the chief heard of it */

        doing now = { .report = { .kind = grant.kind,
                                  .membership = grant.membership,
                                  .group = self->setup.roles->mine.group,
                                  .step = grant.step,
                                  .accuracy = -1,
                                  .auc = -1 } };
        status = grant.kind == COH_GRANT_TRAIN
                     ? train(self, &grant, &now, err)
                     : evaluate(self, &grant, &now, err);
        if (status != COH_OK)
            return status;
    }
}

/* What this member updates of the weights: nothing where servers do it alone,
 * all, or the blocks it owns, if any. */
static coh_status make_shard(worker *self, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const coh_plan *plan = setup->plan;
    const coh_rule rule = coh_rule_of(setup->config);
    const int owner = coh_plan_member_owner(plan, setup->roles->mine.member);

    if (plan->owners > 0 && owner < 0 && !coh_rule_is_local(setup->config))
        return COH_OK;
    return coh_shard_new(plan, owner, &rule, &setup->model->statistics,
                         &self->shard, err);
}

/* Of a new run, or of the checkpoint. Servers have theirs. */
static coh_status fill_weights(worker *self, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const int owner =
        coh_plan_member_owner(setup->plan, setup->roles->mine.member);

    if (self->shard == NULL || setup->plan->servers > 0)
        return COH_OK;
    if (setup->checkpoint[0] != '\0')
        return coh_checkpoint_read_part(setup->checkpoint, setup->plan,
                                        owner < 0 ? 0 : owner, self->shard,
                                        err);
    coh_model_init(setup->model, (uint64_t)setup->config->run.seed,
                   self->weights);
    if (self->own_weights != NULL)
        coh_shard_load(self->shard, self->weights);
    return COH_OK;
}

/* The weights, where they are updated, and the gradient. */
static coh_status make_weights(worker *self, coh_err *err)
{
    const coh_worker_setup *setup = &self->setup;
    const int64_t count = setup->model->parameters;

    coh_status status =
        coh_gradient_new(setup->config, count, &self->gradient, err);
    if (status == COH_OK)
        status = make_shard(self, err);
    if (status != COH_OK)
        return status;
    if (setup->plan->owners == 0 || coh_rule_is_local(setup->config))
        self->weights = coh_shard_values(self->shard);
    else
        self->weights = self->own_weights = coh_floats(count);
    if (self->weights == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %lld weights, %.3f GiB: use a smaller "
                        "network, or fewer ranks a node",
                        (long long)count, 4.0 * (double)count / (1 << 30));
    return fill_weights(self, err);
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
                        setup->plan->update_samples);
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
