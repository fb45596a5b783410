/* exchange_trial.h - steps of the exchange, by the code that trains: alone, or
 * beside the computing of the network, which is then timed without it, too.
 *
 * All calls are collective over all ranks, with the same arguments, and give
 * every rank the same answer.
 */
#ifndef COH_CLI_EXCHANGE_TRIAL_H
#define COH_CLI_EXCHANGE_TRIAL_H

#include <stdbool.h>

#include "common/roles.h"
#include "worker/compute.h"

/* What is tried. Everything is borrowed. The rate must be 0 if anything is
 * computed: the data are made up. */
typedef struct coh_trial_setup {
    const coh_config *config;
    const coh_roles *roles;
    int threads;                /* of a server, to update with */
    const coh_model *model;     /* whose parameters travel */
    const coh_compute *compute; /* NULL: nothing is computed */
    const coh_batch *batch;     /* workers, with compute */
} coh_trial_setup;

typedef struct coh_trial {
    int64_t parameters;
    int speakers; /* of a group */
    int64_t nblocks, block_count;
    int steps;               /* how many were timed */
    double best_s, median_s; /* of a step: until the slowest worker has it */
    double alone_s; /* with compute: the median of computing alone; else 0 */
} coh_trial;

/* Is there memory for it on all nodes, as each counts it now? */
coh_status coh_trial_check_memory(const coh_trial_setup *setup, bool *fits,
                                  coh_err *err);

/* Fails with COH_E_NOMEM, COH_E_LAUNCH (more servers than parameters), or
 * COH_E_PEER. */
coh_status coh_trial_run(const coh_trial_setup *setup, coh_trial *out,
                         coh_err *err);

#endif
