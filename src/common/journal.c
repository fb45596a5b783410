/* journal.c - see journal.h. */
#include "common/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/json.h"
#include "common/merge.h"
#include "common/metrics.h"
#include "common/narrow_tell.h"

/* A mean that is being taken. */
typedef struct mean {
    double sum, weight;
} mean;

typedef struct evaluation {
    bool is_known;
    double loss, accuracy, auc; /* < 0: no classes, or not two */
    int64_t step;
} evaluation;

struct coh_journal {
    coh_journal_facts facts;
    FILE *metrics;     /* owned */
    double start_s;    /* when it was made */
    double trained_s;  /* when the last training report came */
    double reported_s; /* of the last progress line */
    coh_merge merge;   /* policy sync: steps that not all have reported */
    int64_t samples;   /* trained on, earlier runs included */
    int64_t steps;
    int64_t pushes;       /* blocks that reported steps of this job pushed */
    int64_t line_samples; /* `samples` at the last progress line */
    mean line_loss;       /* since the last progress line */
    mean epoch_loss;      /* of the epoch under way */
    double train_loss;    /* of the last whole epoch, else of what there is */
    bool has_epoch;       /* train_loss is of a whole one */
    int64_t epoch_end;    /* samples at which epoch_loss is taken */
    evaluation validation, test, best;
    double checkpoint_s; /* of the last one */
    char checkpoint[PATH_MAX];
};

static double mean_of(mean m)
{
    return m.weight > 0 ? m.sum / m.weight : 0;
}

coh_status coh_journal_new(const coh_journal_facts *facts, coh_journal **out,
                           coh_err *err)
{
    char path[PATH_MAX];
    coh_status status = coh_path(path, err, "%s/metrics.jsonl", facts->folder);
    if (status != COH_OK)
        return status;

    coh_journal *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a journal");
    self->facts = *facts;
    self->metrics = fopen(path, "a");
    if (self->metrics == NULL) {
        free(self);
        return coh_fail(err, COH_E_IO, "cannot write '%s': %s", path,
                        strerror(errno));
    }
    self->start_s = self->trained_s = self->reported_s = coh_clock_now_s();
    self->samples = self->line_samples = facts->start.samples;
    self->steps = facts->start.steps;
    self->epoch_end =
        (self->samples / facts->epoch_samples + 1) * facts->epoch_samples;
    self->best.accuracy = -1;
    *out = self;
    return COH_OK;
}

void coh_journal_destroy(coh_journal **self)
{
    if (*self == NULL)
        return;
    (void)fclose((*self)->metrics); /* a lost line is said when flushed */
    free(*self);
    *self = NULL;
}

static double elapsed_s(const coh_journal *self)
{
    return coh_clock_now_s() - self->start_s;
}

static coh_json begin_line(coh_journal *self, const char *type)
{
    coh_json json;

    coh_json_init(&json, self->metrics, true);
    coh_json_open(&json, NULL, '{');
    coh_json_text(&json, "type", type);
    coh_json_real(&json, "seconds", elapsed_s(self));
    return json;
}

static void flush(coh_journal *self)
{
    if (fflush(self->metrics) == 0 && !ferror(self->metrics))
        return;
    coh_log_write(self->facts.log, COH_LOG_ERROR,
                  "cannot write metrics.jsonl: %s; lines are missing from now "
                  "on",
                  strerror(errno));
    clearerr(self->metrics);
}

/* "1:02:03" or "2:03". */
static void write_time(char *out, size_t size, double seconds)
{
    const int64_t s = (int64_t)(seconds + 0.5);

    if (s >= 3600)
        snprintf(out, size, "%" PRId64 ":%02d:%02d", s / 3600,
                 (int)(s / 60 % 60), (int)(s % 60));
    else
        snprintf(out, size, "%d:%02d", (int)(s / 60), (int)(s % 60));
}

static double score_of(const evaluation *e)
{
    return coh_metrics_score(e->accuracy, e->auc, e->loss);
}

static void write_progress(coh_journal *self, double now_s)
{
    const double span_s = now_s - self->reported_s;
    const double rate = (double)(self->samples - self->line_samples) / span_s;
    const double n = (double)self->facts.epoch_samples;
    const int64_t left = self->facts.total_samples - self->samples;
    char text[256], eta[32];

    write_time(eta, sizeof eta, rate > 0 ? (double)left / rate : 0);
    snprintf(text, sizeof text,
             "epoch %.2f/%.4g  step %" PRId64 "  loss %.4f  %.0f samples/s  "
             "%.4g GFLOP/s  ETA %s",
             (double)self->samples / n, (double)self->facts.total_samples / n,
             self->steps, mean_of(self->line_loss), rate,
             rate * (double)self->facts.model->flop_step / 1e9, eta);
    coh_log_progress(self->facts.log, text);
    flush(self);
    self->reported_s = now_s;
    self->line_samples = self->samples;
    self->line_loss = (mean){ 0, 0 };
}

/* What each loss is of the mean, if there are several. */
static void write_losses(const coh_journal *self, const coh_report *r,
                         coh_json *json)
{
    const coh_model *model = self->facts.model;

    if (model->nlosses < 2)
        return;
    coh_json_open(json, "losses", '{');
    for (int i = 0; i < model->nlosses; i++)
        coh_json_real(json, model->layers[model->losses[i]].spec.name,
                      r->weight > 0 ? r->losses[i] / r->weight : 0);
    coh_json_close(json, '{');
}

/* `groups`: how many took the step together; 0: one, told by its number. */
static void add_step(coh_journal *self, const coh_report *r, int64_t groups)
{
    const double now_s = coh_clock_now_s();
    coh_json json = begin_line(self, "step");

    coh_json_int(&json, "step", r->step);
    if (groups > 0)
        coh_json_int(&json, "groups", groups);
    else
        coh_json_int(&json, "group", r->group);
    coh_json_int(&json, "samples", r->samples);
    coh_json_real(&json, "loss", r->weight > 0 ? r->loss / r->weight : 0);
    write_losses(self, r, &json);
    coh_json_real(&json, "gradient_norm", r->gradient_norm);
    coh_json_real(&json, "compute_s", r->compute_s);
    coh_json_real(&json, "wait_s", r->wait_s);
    coh_json_close(&json, '{');

    self->trained_s = now_s;
    self->samples += r->samples;
    self->steps++;
    self->line_loss.sum += r->loss;
    self->line_loss.weight += r->weight;
    self->epoch_loss.sum += r->loss;
    self->epoch_loss.weight += r->weight;
    if (!self->has_epoch || self->samples >= self->epoch_end)
        self->train_loss = mean_of(self->epoch_loss);
    if (self->samples >= self->epoch_end) {
        self->has_epoch = true;
        self->epoch_loss = (mean){ 0, 0 };
        self->epoch_end += self->facts.epoch_samples;
    }
    if (now_s - self->reported_s >= self->facts.config->run.report_every)
        write_progress(self, now_s);
}

static void add_evaluation(coh_journal *self, const coh_report *r)
{
    const bool is_test = r->kind == COH_GRANT_TEST;
    const char *type = is_test ? "test" : "validation";
    const evaluation e = { true, r->weight > 0 ? r->loss / r->weight : 0,
                           r->accuracy, r->auc, r->step };
    coh_json json = begin_line(self, type);
    char accuracy[32] = "", auc[32] = "";

    coh_json_int(&json, "step", r->step);
    coh_json_int(&json, "samples", r->samples);
    coh_json_real(&json, "loss", e.loss);
    if (e.accuracy >= 0)
        coh_json_real(&json, "accuracy", e.accuracy);
    if (e.auc >= 0)
        coh_json_real(&json, "auc", e.auc);
    coh_json_close(&json, '{');
    flush(self);

    *(is_test ? &self->test : &self->validation) = e;
    if (!is_test &&
        (!self->best.is_known || score_of(&e) > score_of(&self->best)))
        self->best = e;
    if (e.accuracy >= 0)
        snprintf(accuracy, sizeof accuracy, "  accuracy %.4f", e.accuracy);
    if (e.auc >= 0)
        snprintf(auc, sizeof auc, "  AUC %.4f", e.auc);
    coh_log_write(self->facts.log, COH_LOG_INFO,
                  "%s after step %" PRId64 ": loss %.4f%s%s  (%" PRId64
                  " samples)",
                  type, r->step, e.loss, accuracy, auc, r->samples);
}

static bool is_merged(const coh_journal *self)
{
    return self->facts.config->policy == COH_POLICY_SYNC &&
           self->facts.plan->groups > 1;
}

void coh_journal_grant(coh_journal *self, const coh_grant *grant)
{
    if (grant->kind == COH_GRANT_TRAIN && is_merged(self))
        coh_merge_expect(&self->merge, grant->step, grant->groups);
}

static void add_training(coh_journal *self, const coh_report *r)
{
    coh_report merged;
    int64_t groups;

    self->pushes += r->pushes;
    if (!is_merged(self))
        add_step(self, r, 0);
    else if (coh_merge_add(&self->merge, r, &merged, &groups))
        add_step(self, &merged, groups);
}

void coh_journal_report(coh_journal *self, const coh_report *report)
{
    if (report->status != COH_OK)
        return;
    if (report->kind == COH_GRANT_TRAIN)
        add_training(self, report);
    else if (report->kind > 0 && report->samples > 0)
        add_evaluation(self, report);
}

void coh_journal_saved(coh_journal *self, const char *checkpoint,
                       double seconds)
{
    coh_json json = begin_line(self, "checkpoint");

    coh_json_int(&json, "step", self->steps);
    coh_json_real(&json, "took_s", seconds);
    coh_json_text(&json, "folder", checkpoint);
    coh_json_close(&json, '{');
    flush(self);
    self->checkpoint_s = seconds;
    (void)coh_path(self->checkpoint, NULL, "%s", checkpoint);
    coh_log_write(self->facts.log, COH_LOG_INFO,
                  "checkpoint %s written in %.2f s", checkpoint, seconds);
}

void coh_journal_best(const coh_journal *self, double *score, int64_t *step)
{
    *step = self->best.step;
    *score = self->best.is_known ? score_of(&self->best) : -1;
}

void coh_journal_set_best(coh_journal *self, double score, int64_t step)
{
    self->best = (evaluation){ score >= 0, 0, score, -1, step };
}

static void write_evaluation(coh_json *json, const char *name,
                             const evaluation *e)
{
    char key[32];

    if (!e->is_known)
        return;
    snprintf(key, sizeof key, "%s_loss", name);
    coh_json_real(json, key, e->loss);
    snprintf(key, sizeof key, "%s_accuracy", name);
    if (e->accuracy >= 0)
        coh_json_real(json, key, e->accuracy);
    if (e->auc < 0)
        return;
    snprintf(key, sizeof key, "%s_auc", name);
    coh_json_real(json, key, e->auc);
}

static void write_servers(const coh_journal *self, coh_json *json,
                          const coh_journal_end *end)
{
    const coh_plan *plan = self->facts.plan;
    const int64_t *staleness = end->staleness;
    const coh_server_load *loads = end->loads;

    coh_json_int(json, "greatest_lead", end->greatest_lead);
    coh_json_int(json, "pushes", self->pushes);
    coh_json_open(json, "staleness", '[');
    for (int g = 0; staleness != NULL && g < plan->groups; g++) {
        const int64_t *row = staleness + (int64_t)g * COH_STALENESS_BINS;
        int used = COH_STALENESS_BINS;
        while (used > 1 && row[used - 1] == 0)
            used--;
        coh_json_ints(json, NULL, row, used);
    }
    coh_json_close(json, '[');
    coh_json_open(json, "server_load", '[');
    for (int s = 0; loads != NULL && s < plan->servers; s++) {
        coh_json_open(json, NULL, '{');
        coh_json_int(json, "rank", loads[s].rank);
        coh_json_int(json, "bytes", loads[s].bytes);
        coh_json_real(json, "busy_s", loads[s].busy_s);
        coh_json_close(json, '{');
    }
    coh_json_close(json, '[');
}

static coh_narrow_sums narrowed_by_all(const coh_journal *self,
                                       const coh_server_load *loads)
{
    coh_narrow_sums sums = { 0 };

    for (int s = 0; loads != NULL && s < self->facts.plan->servers; s++) {
        coh_narrowed_add(&sums.pushed, &loads[s].pushed);
        coh_narrowed_add(&sums.answered, &loads[s].answered);
    }
    return sums;
}

static void write_memory(coh_json *json, const char *role,
                         const coh_memory_peak *peak)
{
    char key[32];

    if (peak->bytes == 0)
        return;
    snprintf(key, sizeof key, "memory_per_%s", role);
    coh_json_int(json, key, peak->bytes);
    snprintf(key, sizeof key, "memory_%s_rank", role);
    coh_json_int(json, key, peak->rank);
}

static void write_summary(const coh_journal *self, const coh_journal_end *end,
                          FILE *out)
{
    const coh_journal_facts *facts = &self->facts;
    const double seconds = self->trained_s - self->start_s;
    const double rate =
        seconds > 0 ? (double)(self->samples - facts->start.samples) / seconds
                    : 0;
    coh_json json;

    coh_json_init(&json, out, false);
    coh_json_open(&json, NULL, '{');
    coh_json_text(&json, "status",
                  end->status == COH_OK ? "done"
                                        : coh_status_name(end->status));
    coh_json_int(&json, "exit_code", coh_status_exit_code(end->status));
    coh_json_text(&json, "reason", end->reason);
    coh_json_text(&json, "name", facts->config->run.name);
    coh_json_text(&json, "version", COH_VERSION);
    coh_json_int(&json, "parameters", facts->model->parameters);
    coh_json_int(&json, "groups", facts->plan->groups);
    coh_json_int(&json, "group_size", facts->plan->group_size);
    coh_json_int(&json, "servers", facts->plan->servers);
    coh_json_int(&json, "steps", self->steps);
    coh_json_int(&json, "samples_seen", self->samples);
    coh_json_real(&json, "seconds", seconds);
    coh_json_real(&json, "images_per_s", rate);
    coh_json_real(&json, "gflops",
                  rate * (double)facts->model->flop_step / 1e9);
    coh_json_real(&json, "train_loss", self->train_loss);
    write_evaluation(&json, "validation", &self->validation);
    write_evaluation(&json, "test", &self->test);
    if (self->best.is_known) {
        coh_json_int(&json, "best_step", self->best.step);
        coh_json_real(&json, "best_score", score_of(&self->best));
    }
    write_servers(self, &json, end);
    if (end->loads != NULL) {
        const coh_narrow_sums sums = narrowed_by_all(self, end->loads);
        coh_narrow_write(facts->config, &sums, &json);
    }
    if (end->memory != NULL) {
        write_memory(&json, "worker", &end->memory->worker);
        write_memory(&json, "server", &end->memory->server);
    }
    coh_json_real(&json, "checkpoint_s", self->checkpoint_s);
    coh_json_text(&json, "checkpoint", self->checkpoint);
    coh_json_open(&json, "lost_ranks", '[');
    coh_json_close(&json, '[');
    coh_json_close(&json, '{');
}

/* The largest ranks: what a node must have, and what `cohort plan` said. */
static void say_memory(const coh_journal *self, const coh_memory_peaks *memory)
{
    const double mib = 1024.0 * 1024.0;
    char server[64] = "";

    if (memory == NULL || memory->worker.bytes == 0)
        return;
    if (memory->server.bytes > 0)
        snprintf(server, sizeof server, ", %.0f MiB in a server (rank %d)",
                 (double)memory->server.bytes / mib, memory->server.rank);
    coh_log_write(self->facts.log, COH_LOG_INFO,
                  "memory: at most %.0f MiB in a worker (rank %d)%s",
                  (double)memory->worker.bytes / mib, memory->worker.rank,
                  server);
}

/* What narrow formats did to values, if it was bad. */
static void say_narrowed(const coh_journal *self, const coh_server_load *loads)
{
    const coh_narrow_sums sums = narrowed_by_all(self, loads);
    char text[COH_NARROW_TEXT];

    if (coh_narrow_warn(self->facts.config, &sums, text))
        coh_log_write(self->facts.log, COH_LOG_WARN, "%s", text);
}

/* The last lines of the log: what was done, and where it is. */
static void say_end(const coh_journal *self, coh_status status)
{
    coh_log_write(self->facts.log, COH_LOG_INFO,
                  "%s: %" PRId64 " samples in %.1f s; everything is in %s: "
                  "summary.json, metrics.jsonl, config.yaml, log/, "
                  "checkpoints/",
                  status == COH_OK ? "done" : coh_status_name(status),
                  self->samples - self->facts.start.samples,
                  self->trained_s - self->start_s, self->facts.folder);
    if (status != COH_OK)
        coh_log_write(self->facts.log, COH_LOG_INFO,
                      "the last checkpoint is %s; go on by --resume auto",
                      self->checkpoint[0] != '\0' ? self->checkpoint
                                                  : "the one it began with, "
                                                    "if any");
}

coh_status coh_journal_summary(coh_journal *self, const coh_journal_end *end,
                               coh_err *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];
    const char *folder = self->facts.folder;

    coh_status ok = coh_path(path, err, "%s/summary.json", folder);
    if (ok == COH_OK)
        ok = coh_path(temporary, err, "%s/summary.json.tmp", folder);
    if (ok != COH_OK)
        return ok;

    FILE *out = fopen(temporary, "w");
    if (out == NULL)
        return coh_fail(err, COH_E_IO, "cannot write '%s': %s", temporary,
                        strerror(errno));
    write_summary(self, end, out);
    const bool bad = ferror(out) != 0;
    ok = fclose(out) == 0 && !bad
             ? coh_path_sync(temporary, err)
             : coh_fail(err, COH_E_IO, "cannot write '%s': %s", temporary,
                        strerror(errno));
    if (ok == COH_OK)
        ok = coh_path_rename(temporary, path, err);
    if (ok == COH_OK)
        say_memory(self, end->memory);
    say_narrowed(self, end->loads);
    if (ok == COH_OK)
        say_end(self, end->status);
    else
        (void)coh_path_remove(temporary, NULL);
    return ok;
}
