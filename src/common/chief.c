/* chief.c - see chief.h. */
#include "common/chief.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/files.h"

/* Grants a group holds: the one under way and two that its loader can read. */
enum { GRANTS_AHEAD = 3 };

struct coh_chief {
    coh_journal_facts facts; /* borrowed pointers */
    coh_manifest manifest;   /* of the next checkpoint, but for the progress */
    coh_registrar *registrar;
    coh_journal *journal;
    coh_signals *signals; /* borrowed */
    double start_s, save_start_s;
    char save_folder[PATH_MAX], save_name[PATH_MAX];
    char reason[COH_REPORT_TEXT]; /* why the run ends early, or "" */
    coh_status save_status;       /* of the last checkpoint */
};

static int64_t in_samples(double epochs, int64_t epoch_samples)
{
    const double samples = fmax(round(epochs * (double)epoch_samples), 1);

    return epochs > 0 ? llround(fmin(samples, 0x1p61)) : 0;
}

static coh_registrar_rules rules_of(const coh_journal_facts *facts,
                                    bool has_validation)
{
    const coh_config *config = facts->config;
    const int64_t n = facts->epoch_samples;

    return (coh_registrar_rules){
        .groups = facts->plan->groups,
        .policy = facts->plan->groups > 1 ? (coh_policy_kind)config->policy
                                          : COH_POLICY_ASYNC,
        .bound = config->policy_bound,
        .every = config->exchange.every,
        .ahead = GRANTS_AHEAD,
        .epoch_samples = n,
        .step_samples = facts->plan->step_samples,
        .total_samples = facts->total_samples,
        .total_steps = config->train.steps,
        .evaluate_every = in_samples(config->eval.every, n),
        .save_every = in_samples(config->checkpoint.every, n),
        .test_covers =
            !has_validation && config->eval.select == COH_SELECT_LAST,
    };
}

coh_status coh_chief_new(const coh_journal_facts *facts,
                         const coh_manifest *start, bool has_validation,
                         coh_signals *signals, coh_chief **out, coh_err *err)
{
    coh_chief *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the chief");

    self->facts = *facts;
    self->facts.start = start->progress;
    self->manifest = *start;
    self->signals = signals;
    self->start_s = coh_clock_now_s();
    const coh_registrar_rules rules = rules_of(facts, has_validation);
    coh_status status =
        coh_registrar_new(&rules, &start->progress, &self->registrar, err);
    if (status == COH_OK)
        status = coh_journal_new(&self->facts, &self->journal, err);
    if (status != COH_OK) {
        coh_chief_destroy(&self);
        return status;
    }
    coh_journal_set_best(self->journal, start->best_score, start->best_step);
    *out = self;
    return COH_OK;
}

void coh_chief_destroy(coh_chief **self)
{
    if (*self == NULL)
        return;
    coh_registrar_destroy(&(*self)->registrar);
    coh_journal_destroy(&(*self)->journal);
    free(*self);
    *self = NULL;
}

static void stop(coh_chief *self, coh_status status, const char *reason)
{
    const coh_status before = coh_registrar_status(self->registrar);

    coh_registrar_stop(self->registrar, status);
    if (coh_registrar_status(self->registrar) == before)
        return; /* it makes no difference any more */
    snprintf(self->reason, sizeof self->reason, "%s", reason);
    coh_log_write(self->facts.log, status < 0 ? COH_LOG_ERROR : COH_LOG_WARN,
                  "%s", reason);
}

void coh_chief_fail(coh_chief *self, coh_status status, const char *reason)
{
    stop(self, status, reason);
}

void coh_chief_watch(coh_chief *self)
{
    const double limit_s = self->facts.config->run.time_limit;
    char text[128];

    if (coh_signals_poll(self->signals) != 0) {
        snprintf(text, sizeof text, "signal %d (%s): saving and stopping",
                 self->signals->received, strsignal(self->signals->received));
        stop(self, COH_STOPPED, text);
    }
    if (limit_s > 0 && coh_clock_now_s() - self->start_s > limit_s)
        stop(self, COH_STOPPED, "run.time_limit reached: saving and stopping");
}

void coh_chief_report(coh_chief *self, const coh_report *report)
{
    if (report->status != COH_OK)
        stop(self, (coh_status)report->status, report->text);
    else if (report->stop != 0)
        stop(self, COH_STOPPED, "a worker got a signal: saving and stopping");
    coh_journal_report(self->journal, report);
    coh_registrar_report(self->registrar, report);
}

bool coh_chief_next(coh_chief *self, int group, coh_grant *out)
{
    if (!coh_registrar_next(self->registrar, group, out))
        return false;
    coh_journal_grant(self->journal, out);
    return true;
}

bool coh_chief_has_failed(const coh_chief *self)
{
    return coh_registrar_status(self->registrar) < 0;
}

bool coh_chief_is_done(const coh_chief *self)
{
    return coh_registrar_is_done(self->registrar);
}

bool coh_chief_must_save(const coh_chief *self)
{
    return coh_registrar_must_save(self->registrar);
}

coh_status coh_chief_begin_save(coh_chief *self, coh_err *err)
{
    const coh_progress at = coh_registrar_progress(self->registrar);

    self->save_start_s = coh_clock_now_s();
    coh_status status =
        coh_path(self->save_name, err, "%s/checkpoints/step_%" PRId64,
                 self->facts.folder, at.steps);
    if (status == COH_OK)
        status = coh_path(self->save_folder, err, "%s.tmp", self->save_name);
    return status == COH_OK ? coh_checkpoint_begin(self->save_folder, err)
                            : status;
}

const char *coh_chief_save_folder(const coh_chief *self)
{
    return self->save_folder;
}

/* Write manifest and config, and give the folder its name. */
static coh_status commit(coh_chief *self, coh_err *err)
{
    self->manifest.progress = coh_registrar_progress(self->registrar);
    coh_journal_best(self->journal, &self->manifest.best_score,
                     &self->manifest.best_step);
    return coh_checkpoint_commit(self->save_folder, self->save_name,
                                 &self->manifest, self->facts.config, err);
}

void coh_chief_end_save(coh_chief *self, coh_status parts, coh_err *err)
{
    char checkpoints[PATH_MAX];

    self->save_status = parts == COH_OK ? commit(self, err) : parts;
    if (self->save_status == COH_OK) {
        if (coh_registrar_status(self->registrar) == COH_OK)
            self->reason[0] = '\0'; /* of a checkpoint that failed before */
        coh_journal_saved(self->journal, self->save_name,
                          coh_clock_now_s() - self->save_start_s);
        if (coh_path(checkpoints, NULL, "%s/checkpoints", self->facts.folder) ==
            COH_OK)
            coh_checkpoint_prune(checkpoints,
                                 self->facts.config->checkpoint.keep);
    } else {
        coh_log_write(self->facts.log, COH_LOG_ERROR,
                      "checkpoint %s NOT written: %s", self->save_name,
                      err->text);
        snprintf(self->reason, sizeof self->reason,
                 "the last checkpoint was not written: %.900s", err->text);
        (void)coh_path_remove(self->save_folder, NULL); /* gives room back */
    }
    coh_registrar_saved(self->registrar);
}

coh_status coh_chief_finish(coh_chief *self, const int64_t *staleness,
                            const coh_server_load *loads,
                            const coh_memory_peaks *memory, coh_err *err)
{
    coh_status status = coh_registrar_status(self->registrar);

    if (self->save_status != COH_OK && status >= 0)
        status = self->save_status;
    const coh_status wrote = coh_journal_summary(
        self->journal,
        &(coh_journal_end){ .status = status,
                            .reason = self->reason,
                            .greatest_lead =
                                coh_registrar_greatest_lead(self->registrar),
                            .staleness = staleness,
                            .loads = loads,
                            .memory = memory },
        err);
    if (wrote != COH_OK && status >= 0)
        return wrote;
    return status == COH_OK ? COH_OK
                            : coh_fail(err, status, "%s", self->reason);
}
