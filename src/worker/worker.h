/* worker.h - the loop of a worker: take a grant, do it, report.
 *
 * All ranks of a group run it together. Without servers, rank 0 also hosts the
 * chief.
 */
#ifndef COH_WORKER_WORKER_H
#define COH_WORKER_WORKER_H

#include "common/chief.h"
#include "common/roles.h"
#include "worker/compute.h"
#include "worker/dataset.h"

/* Everything is borrowed and outlives the run. */
typedef struct coh_worker_setup {
    const coh_config *config;
    const coh_model *model;
    const coh_plan *plan;
    const coh_roles *roles;
    coh_log *log;
    coh_signals *signals;
    const coh_compute *compute;
    int64_t infer_batch; /* rows that compute's infer expects */
    coh_dataset *train, *validation, *test;
    const coh_manifest *start; /* zeros, or what is resumed from */
    const char *checkpoint;    /* to resume from; "" for a new run */
    const char *folder;        /* of the run */
    coh_chief *chief;          /* rank 0 without servers; else NULL */
} coh_worker_setup;

/* Collective over the group, until the chief stops the run. Returns the status
 * of the run: COH_OK, COH_STOPPED, or the failure that ended it (its text is
 * with the chief, and in *err on the group that failed). */
coh_status coh_worker_run(const coh_worker_setup *setup, coh_err *err);

#endif
