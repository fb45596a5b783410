/* journal.h - what a run tells: progress lines, metrics.jsonl, summary.json.
 *
 * It stands beside the registrar (chief.h) and sees every report. The numbers
 * are defined in docs/numbers.md. Threads: one caller.   MPI: none.
 */
#ifndef COH_COMMON_JOURNAL_H
#define COH_COMMON_JOURNAL_H

#include "common/log.h"
#include "common/model.h"
#include "common/plan.h"
#include "common/registrar.h"

typedef struct coh_journal coh_journal;

/* What a journal needs to know; pointers are borrowed and must outlive it. */
typedef struct coh_journal_facts {
    const coh_config *config;
    const coh_model *model;
    const coh_plan *plan;
    const char *folder; /* of the run */
    coh_log *log;
    int64_t epoch_samples; /* size of the training set */
    int64_t total_samples; /* of the run */
    coh_progress start;    /* zeros, or where it was resumed */
} coh_journal_facts;

/* What one server did, for the summary. */
typedef struct coh_server_load {
    int rank;
    int64_t bytes; /* of parameters owned */
    double busy_s;
    coh_narrowed pushed, answered; /* what became of values on their way */
} coh_server_load;

/* The rank that had most in memory at once, of the workers or of the servers;
 * bytes 0: there is none, or the system did not tell. */
typedef struct coh_memory_peak {
    int rank;
    int64_t bytes;
} coh_memory_peak;

typedef struct coh_memory_peaks {
    coh_memory_peak worker, server;
} coh_memory_peaks;

/* Opens metrics.jsonl to append. On COH_OK *out is the caller's.
 * Fails with COH_E_IO or COH_E_NOMEM. */
coh_status coh_journal_new(const coh_journal_facts *facts, coh_journal **out,
                           coh_err *err);
void coh_journal_destroy(coh_journal **self);

/* What was granted and what was done. With policy sync the reports of a step
 * become one line, that of all its groups. */
void coh_journal_grant(coh_journal *self, const coh_grant *grant);
void coh_journal_report(coh_journal *self, const coh_report *report);
void coh_journal_saved(coh_journal *self, const char *checkpoint,
                       double seconds);

/* The best score so far and its step, for a checkpoint. */
void coh_journal_best(const coh_journal *self, double *score, int64_t *step);
void coh_journal_set_best(coh_journal *self, double score, int64_t step);

/* What is known at the end of a run only; pointers are NULL where it is not. */
typedef struct coh_journal_end {
    coh_status status;
    const char *reason;           /* why the run ended early, or "" */
    int64_t greatest_lead;        /* of a group over the slowest, in steps */
    const int64_t *staleness;     /* [groups, COH_STALENESS_BINS] */
    const coh_server_load *loads; /* [servers] */
    const coh_memory_peaks *memory;
} coh_journal_end;

/* Write summary.json, whole or not at all, and say where everything is.
 * Fails with COH_E_IO. */
coh_status coh_journal_summary(coh_journal *self, const coh_journal_end *end,
                               coh_err *err);

#endif
