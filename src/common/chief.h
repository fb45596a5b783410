/* chief.h - the head of a run: the registrar that decides, the journal that
 * tells, and the checkpoints. It lives on server 0, or on rank 0 without
 * servers.
 *
 *     new -> { report | next | begin_save -> end_save | watch }*
 *         -> finish -> destroy
 *
 * Threads: one caller.   MPI: none; its host moves the messages.
 */
#ifndef COH_COMMON_CHIEF_H
#define COH_COMMON_CHIEF_H

#include "common/checkpoint.h"
#include "common/journal.h"
#include "common/signals.h"

typedef struct coh_chief coh_chief;

/* `start`: the manifest resumed from, or that of a new run (progress zero,
 * best_score -1). facts.start is taken from it. signals is borrowed, too.
 * Fails with COH_E_IO, COH_E_NOMEM. */
coh_status coh_chief_new(const coh_journal_facts *facts,
                         const coh_manifest *start, bool has_validation,
                         coh_signals *signals, coh_chief **out, coh_err *err);
void coh_chief_destroy(coh_chief **self);

/* The run cannot go on: the first reason given is the summary's. */
void coh_chief_fail(coh_chief *self, coh_status status, const char *reason);

/* Signals and the time limit: call now and then. */
void coh_chief_watch(coh_chief *self);

void coh_chief_report(coh_chief *self, const coh_report *report);
bool coh_chief_next(coh_chief *self, int group, coh_grant *out);
bool coh_chief_is_done(const coh_chief *self);

/* The run ends by a failure: whoever waits for a group may wait in vain. */
bool coh_chief_has_failed(const coh_chief *self);

/* True while a checkpoint must be written: then begin, write every part into
 * coh_chief_save_folder(), and end with the outcome of all parts. A checkpoint
 * that cannot be written is logged and the run goes on; the last one that
 * fails makes the run fail. */
bool coh_chief_must_save(const coh_chief *self);
coh_status coh_chief_begin_save(coh_chief *self, coh_err *err);
const char *coh_chief_save_folder(const coh_chief *self);
void coh_chief_end_save(coh_chief *self, coh_status parts, coh_err *err);

/* Write the summary. Arguments as of coh_journal_summary(). Returns the status
 * of the run, with *err saying why if it is not COH_OK. */
coh_status coh_chief_finish(coh_chief *self, const int64_t *staleness,
                            const coh_server_load *loads,
                            const coh_memory_peaks *memory, coh_err *err);

#endif
