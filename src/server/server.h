/* server.h - the loop of a parameter server.
 *
 * It applies what the groups push to its blocks and answers with new weights.
 * Server 0 also hosts the chief, and gives the other servers orders: write
 * your part of a checkpoint; stop.
 */
#ifndef COH_SERVER_SERVER_H
#define COH_SERVER_SERVER_H

#include "common/chief.h"
#include "common/roles.h"

/* Everything is borrowed and outlives the run. */
typedef struct coh_server_setup {
    const coh_config *config;
    const coh_model *model;
    const coh_plan *plan;
    const coh_roles *roles;
    coh_log *log;
    int threads;            /* to update with */
    int64_t epoch_samples;  /* size of the training set */
    const char *checkpoint; /* to resume from; "" for a new run */
    coh_chief *chief;       /* server 0; else NULL */
} coh_server_setup;

/* What server 0 collected of all servers, for the summary. */
typedef struct coh_server_outcome {
    int64_t *staleness;     /* [groups, COH_STALENESS_BINS], owned */
    coh_server_load *loads; /* [servers], owned */
} coh_server_outcome;

/* Collective over all servers and all groups' roots, until the chief stops the
 * run. On server 0 *out is filled and the caller frees its vectors, unless the
 * call fails. How the run ended is the chief's to say: COH_OK means that it was
 * stopped in order. Fails with COH_E_PEER, COH_E_NOMEM, or as reading the
 * checkpoint fails; all but COH_E_PEER on every rank alike. */
coh_status coh_server_run(const coh_server_setup *setup,
                          coh_server_outcome *out, coh_err *err);

#endif
