/* choose.h - how each pass of the network is calculated on this node: what is
 * known, else what is in the user's cache, else what is measured now.
 *
 * The cache is $XDG_CACHE_HOME/cohort, or ~/.cache/cohort: one file a key of
 * choice.h. It only saves time: one that is damaged is measured anew, and a
 * folder that cannot be written is no error.
 */
#ifndef COH_CLI_CHOOSE_H
#define COH_CLI_CHOOSE_H

#include <mpi.h>

#include "common/config.h"
#include "worker/nn/choice.h"

/* What is to be calculated, and where. */
typedef struct coh_choose_task {
    const coh_config *config;
    const coh_model *model;
    int64_t batch;
    bool training; /* else forward passes only */
    int threads;
} coh_choose_task;

/* For this process alone. *out is the caller's; NULL with compute.algorithm:
 * direct. Fails as coh_choices_measure() does. */
coh_status coh_choose(const coh_choose_task *task, coh_choices **out,
                      coh_err *err);

/* The same without measuring: COH_PENDING if the cache has no table. */
coh_status coh_choose_known(const coh_choose_task *task, coh_choices **out,
                            coh_err *err);

/* Collective over comm. One rank of each kind of node chooses; the others, if
 * they compute, take its table. *text: `known` (rank 0's; may be NULL) and what
 * was added to it, the same on all ranks, the caller's; "" if no measurement
 * was asked for. All ranks get the same status. */
coh_status coh_choose_together(MPI_Comm comm, const coh_choose_task *task,
                               bool computes, const char *known, char **text,
                               coh_choices **out, coh_err *err);

#endif
