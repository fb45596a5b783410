/* train.c - `cohort train`: check everything, claim the run folder, run. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/job.h"
#include "common/files.h"
#include "common/mpi_check.h"
#include "common/optim/momentum.h"
#include "common/optim/rule.h"
#include "common/resident.h"
#include "common/run_folder.h"
#include "common/xfer.h"
#include "server/server.h"
#include "worker/worker.h"

/* What a training run has besides its job. */
typedef struct training {
    coh_job job;
    coh_run_folder folder; /* on all ranks */
    coh_manifest start;    /* on all ranks */
    bool is_done;          /* a summary says so; on all ranks */
    coh_chief *chief;      /* on the chief's rank */
    coh_max peaks[2];      /* of memory: workers, servers */
} training;

static int chief_rank(const training *self)
{
    const coh_plan *plan = &self->job.plan;
    return plan->servers > 0 ? coh_plan_server_rank(plan, 0) : 0;
}

static bool is_chief(const training *self)
{
    return self->job.rank == chief_rank(self);
}

static coh_status read_file(const coh_args *args, coh_config **out,
                            coh_err *err)
{
    return coh_config_load(args->target, args->sets, args->nsets, out, err);
}

/* What a checkpoint must agree with. */
static coh_status check_manifest(const training *self, const char *checkpoint,
                                 coh_err *err)
{
    const coh_manifest *m = &self->start;
    const coh_job *job = &self->job;
    const int64_t parts = coh_plan_parts(&job->plan);
    const coh_rule rule = coh_rule_of_servers(job->config);

    if (m->parameters != job->model->parameters ||
        m->fingerprint != coh_model_fingerprint(job->model))
        return coh_fail(err, COH_E_CONFIG,
                        "checkpoint '%s' is of another network: resume with "
                        "the model it was saved with, or begin a new run "
                        "(run.name)",
                        checkpoint);
    if (m->parts != parts || m->block_count != job->plan.block_count)
        return coh_fail(
            err, COH_E_CONFIG,
            "checkpoint '%s' was saved by %" PRId64
            " owners of parameters in blocks of %" PRId64 ", not %" PRId64
            " in blocks of %" PRId64
            ": resume with the exchange.placement, block and servers of then, "
            "or, without servers, exchange.update, speakers and workers",
            checkpoint, m->parts, m->block_count, parts, job->plan.block_count);
    if (m->rule != rule.kind && !coh_rule_takes_weights(&rule))
        return coh_fail(err, COH_E_CONFIG,
                        "checkpoint '%s' was trained with another "
                        "optimizer.rule, whose state this one cannot use, or "
                        "holds weights only (exchange.every above 1, elastic): "
                        "resume with the keys of then",
                        checkpoint);
    if (m->seed != job->config->run.seed)
        return coh_fail(err, COH_E_CONFIG,
                        "checkpoint '%s' was trained with run.seed %" PRId64
                        ": resume with the same, or samples would be used "
                        "twice",
                        checkpoint, m->seed);
    return COH_OK;
}

/* Choose what to resume from, check it, and only then claim the folder; on
 * rank 0 alone. */
static coh_status claim(training *self, const coh_args *args, coh_err *err)
{
    const char *checkpoint = self->folder.checkpoint;

    coh_status status = coh_run_folder_choose(self->job.config, args->resume,
                                              &self->folder, err);
    if (status == COH_OK && checkpoint[0] != '\0')
        status = coh_checkpoint_read_manifest(checkpoint, &self->start, err);
    if (status == COH_OK && checkpoint[0] != '\0')
        status = check_manifest(self, checkpoint, err);
    self->start.rule = coh_rule_of_servers(self->job.config).kind;
    return status == COH_OK
               ? coh_run_folder_claim(self->job.config, &self->folder, err)
               : status;
}

/* The manifest of a run that begins. */
static coh_manifest fresh_manifest(const coh_job *job)
{
    return (coh_manifest){
        .seed = job->config->run.seed,
        .parameters = job->model->parameters,
        .fingerprint = coh_model_fingerprint(job->model),
        .parts = coh_plan_parts(&job->plan),
        .block_count = job->plan.block_count,
        .rule = coh_rule_of_servers(job->config).kind,
        .best_score = -1,
    };
}

static coh_status make_chief(training *self, coh_err *err)
{
    coh_job *job = &self->job;
    const coh_journal_facts facts = {
        .config = job->config,
        .model = job->model,
        .plan = &job->plan,
        .folder = self->folder.path,
        .log = job->log,
        .epoch_samples = job->train_count,
        .total_samples = coh_schedule_total(job->config, job->train_count,
                                            job->plan.update_samples),
    };

    if (!is_chief(self))
        return COH_OK;
    return coh_chief_new(&facts, &self->start, job->has_validation,
                         &job->signals, &self->chief, err);
}

static void announce_optimizer(const coh_job *job)
{
    char text[COH_MOMENTUM_TEXT];

    if (coh_momentum_describe(job->config, text))
        coh_log_write(job->log, COH_LOG_INFO, "%s", text);
    if (coh_momentum_warn(job->config, text))
        coh_log_write(job->log, COH_LOG_WARN, "%s", text);
}

/* What runs, in a few lines. */
static void announce(const training *self)
{
    const coh_job *job = &self->job;
    const coh_plan *plan = &job->plan;
    const bool resumed = self->folder.checkpoint[0] != '\0';

    if (!is_chief(self))
        return;
    coh_log_write(job->log, COH_LOG_INFO,
                  "cohort %s: %s, %d group%s x %d worker%s + %d server%s, "
                  "%d thread%s a worker",
                  COH_VERSION, job->config->run.name, plan->groups,
                  plan->groups == 1 ? "" : "s", plan->group_size,
                  plan->group_size == 1 ? "" : "s", plan->servers,
                  plan->servers == 1 ? "" : "s", job->threads,
                  job->threads == 1 ? "" : "s");
    coh_log_write(job->log, COH_LOG_INFO,
                  "network of %" PRId64 " parameters in %" PRId64
                  " blocks, %.4g GFLOP an image and training step; %" PRId64
                  " training samples, %" PRId64 " a step of a group",
                  job->model->parameters, plan->nblocks,
                  (double)job->model->flop_step / 1e9, job->train_count,
                  plan->step_samples);
    coh_log_write(job->log, COH_LOG_INFO,
                  "passes of layers with weights: %s; see choices.txt",
                  job->algorithms);
    announce_optimizer(job);
    if (resumed)
        coh_log_write(job->log, COH_LOG_INFO,
                      "resuming from %s: step %" PRId64 ", %" PRId64 " samples",
                      self->folder.checkpoint, self->start.progress.steps,
                      self->start.progress.samples);
    if (resumed && coh_rule_is_local(job->config))
        coh_log_write(job->log, COH_LOG_INFO,
                      "the groups' optimizer state is not in a checkpoint "
                      "(exchange.every, elastic): it begins from zero");
}

/* The network and the normalisation: those of the checkpoint that is resumed
 * from, so that the numbers do not change under way; else new ones. */
static coh_status make_ready(training *self, coh_err *err)
{
    coh_job *job = &self->job;
    const char *checkpoint = self->folder.checkpoint;
    const bool resumes = checkpoint[0] != '\0';
    coh_status status = COH_OK;
    char *known = NULL;

    if (job->rank == 0 && resumes)
        status = coh_checkpoint_read_choices(checkpoint, &known, err);
    status = coh_agree(MPI_COMM_WORLD, status, err);
    if (status == COH_OK)
        status = coh_job_make_compute(job, true, known, err);
    free(known);
    return status == COH_OK
               ? coh_job_normalize(job, resumes ? &self->start.normal : NULL,
                                   err)
               : status;
}

/* Into the run folder, for people. */
static coh_status write_choices(const training *self, coh_err *err)
{
    char path[PATH_MAX];
    coh_status status = COH_OK;

    if (self->job.rank == 0)
        status = coh_path(path, err, "%s/choices.txt", self->folder.path);
    if (self->job.rank == 0 && status == COH_OK) {
        FILE *file = fopen(path, "w");
        const bool is_whole =
            file != NULL && fputs(self->job.choices, file) >= 0;
        if ((file != NULL && fclose(file) != 0) || !is_whole)
            status = coh_fail(err, COH_E_IO, "%s: %s", path, strerror(errno));
    }
    return coh_agree(MPI_COMM_WORLD, status, err);
}

/* Everything up to the first step. */
static coh_status prepare(training *self, const coh_args *args, coh_err *err)
{
    coh_job *job = &self->job;
    char logs[PATH_MAX];

    coh_status status = coh_job_load(job, args, read_file, err);
    if (status == COH_OK)
        status = coh_model_check_share(job->model,
                                       coh_plan_least_batch(&job->plan), err);
    if (status == COH_OK)
        status = coh_job_open_data(job, true, err);
    if (status != COH_OK)
        return status;

    self->start = fresh_manifest(job);
    if (args->resume == NULL) /* before a new folder is claimed */
        status = make_ready(self, err);
    if (status == COH_OK && job->rank == 0)
        status = claim(self, args, err);
    status =
        coh_job_share(job, status, &self->folder, sizeof self->folder, err);
    if (status == COH_OK)
        status =
            coh_job_share(job, COH_OK, &self->start, sizeof self->start, err);
    if (job->rank == 0 && status == COH_OK)
        self->is_done = self->folder.checkpoint[0] != '\0' &&
                        coh_run_folder_is_done(self->folder.path);
    if (status == COH_OK)
        status = coh_job_share(job, COH_OK, &self->is_done,
                               sizeof self->is_done, err);
    if (status == COH_OK && args->resume != NULL)
        status = make_ready(self, err);
    if (status == COH_OK)
        status = write_choices(self, err);
    if (status != COH_OK)
        return status;
    self->start.normal = job->normal;
    self->start.choices = job->choices;
    if (coh_path(logs, NULL, "%s/log", self->folder.path) == COH_OK)
        coh_log_open(job->log, logs);
    return coh_agree(MPI_COMM_WORLD, make_chief(self, err), err);
}

static coh_status run_worker(training *self, coh_err *err)
{
    coh_job *job = &self->job;
    const coh_worker_setup setup = {
        .config = job->config,
        .model = job->model,
        .plan = &job->plan,
        .roles = &job->roles,
        .log = job->log,
        .signals = &job->signals,
        .compute = &job->compute,
        .infer_batch = job->infer_batch,
        .train = job->train,
        .validation = job->validation,
        .test = job->test,
        .start = &self->start,
        .checkpoint = self->folder.checkpoint,
        .folder = self->folder.path,
        .chief = self->chief,
    };
    return coh_worker_run(&setup, err);
}

static coh_status run_server(training *self, coh_server_outcome *outcome,
                             coh_err *err)
{
    coh_job *job = &self->job;
    const coh_server_setup setup = {
        .config = job->config,
        .model = job->model,
        .plan = &job->plan,
        .roles = &job->roles,
        .log = job->log,
        .threads = job->threads,
        .epoch_samples = job->train_count,
        .checkpoint = self->folder.checkpoint,
        .chief = self->chief,
    };
    return coh_server_run(&setup, outcome, err);
}

/* The largest worker and the largest server, on all ranks. Here we would be
 * the first to miss a rank that is gone: everything else is done by now. */
static coh_status compare_memory(training *self, coh_memory_peaks *out,
                                 coh_err *err)
{
    const coh_job *job = &self->job;
    coh_max *peaks = self->peaks;

    for (int i = 0; i < 2; i++)
        peaks[i] = (coh_max){ 0, job->rank };
    peaks[job->roles.mine.is_server].value = (double)coh_resident_peak_bytes();
    coh_xfer *xfer = coh_xfer_begin_max(job->roles.world, peaks, 2);
    const coh_status status = coh_xfer_finish(
        &xfer, job->config->exchange.timeout, "the end of the run", err);
    out->worker = (coh_memory_peak){ peaks[0].rank, (int64_t)peaks[0].value };
    out->server = (coh_memory_peak){ peaks[1].rank, (int64_t)peaks[1].value };
    return status;
}

/* A lost peer, as seen from here: said at once, and written to the summary if
 * the chief lives here. No rank can be waited for any more. */
static coh_status end_lost(training *self, const coh_server_outcome *outcome,
                           coh_err *err)
{
    if (self->chief == NULL) {
        coh_log_write(self->job.log, COH_LOG_ERROR, "%s", err->text);
        return COH_E_PEER;
    }
    coh_chief_fail(self->chief, COH_E_PEER, err->text);
    (void)coh_chief_finish(self->chief, outcome->staleness, outcome->loads,
                           NULL, err);
    return COH_E_PEER;
}

/* The outcome is the chief's; every rank ends with it. */
static coh_status finish(training *self, coh_status mine,
                         const coh_server_outcome *outcome, coh_err *err)
{
    struct {
        coh_status status;
        coh_err err;
    } said = { mine, *err };
    coh_memory_peaks memory;

    if (mine == COH_E_PEER || compare_memory(self, &memory, err) == COH_E_PEER)
        return end_lost(self, outcome, err);
    if (self->chief != NULL && mine != COH_OK)
        coh_chief_fail(self->chief, mine, err->text);
    if (self->chief != NULL)
        said.status = coh_chief_finish(self->chief, outcome->staleness,
                                       outcome->loads, &memory, &said.err);
    COH_MPI(MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, chief_rank(self),
                      MPI_COMM_WORLD));
    *err = said.err;
    return said.status;
}

/* The checkpoint resumed from already holds all that the config asks for, and
 * its test was done. The same on all ranks. */
static bool has_nothing_to_do(const training *self)
{
    const coh_job *job = &self->job;
    const coh_progress *at = &self->start.progress;
    const int64_t steps = job->config->train.steps;
    const bool is_trained =
        at->samples >= coh_schedule_total(job->config, job->train_count,
                                          job->plan.update_samples) ||
        (steps > 0 && at->steps >= steps);

    return is_trained && self->is_done;
}

/* Before the roles begin, all ranks have agreed that everything is ready; a
 * failure in their own preparation is agreed on too. */
static coh_status run(training *self, coh_err *err)
{
    coh_server_outcome outcome = { 0 };

    if (has_nothing_to_do(self)) {
        if (self->job.rank == 0)
            coh_log_write(self->job.log, COH_LOG_INFO,
                          "nothing to do: %s has trained on all %" PRId64
                          " samples; raise train.epochs to go on",
                          self->folder.path, self->start.progress.samples);
        return COH_OK;
    }
    announce(self);
    const coh_status mine = self->job.roles.mine.is_server
                                ? run_server(self, &outcome, err)
                                : run_worker(self, err);
    const coh_status status = finish(self, mine, &outcome, err);
    free(outcome.staleness);
    free(outcome.loads);
    return status;
}

int coh_command_train(int argc, char **argv)
{
    training self = { 0 };
    coh_err err = COH_ERR_INIT;
    coh_args args;

    coh_job_begin(&self.job);
    coh_status status = coh_args_parse(
        argc, argv, COH_ARG_TARGET | COH_ARG_SET | COH_ARG_RESUME, &args, &err);
    if (status == COH_OK)
        status = prepare(&self, &args, &err);
    if (status == COH_OK)
        status = run(&self, &err);
    coh_chief_destroy(&self.chief);
    return coh_job_end(&self.job, "train", status, &err);
}
