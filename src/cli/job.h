/* job.h - what train and eval begin with: MPI, the config on every rank, the
 * network, the data. Only this room knows both roles.
 *
 *     begin -> load -> { open_data | ... }* -> end
 *
 * All calls are collective over all ranks and give every rank the same status.
 */
#ifndef COH_CLI_JOB_H
#define COH_CLI_JOB_H

#include "cli/args.h"
#include "common/checkpoint.h"
#include "common/log.h"
#include "common/roles.h"
#include "common/signals.h"
#include "worker/compute.h"
#include "worker/dataset.h"

typedef struct coh_job {
    coh_signals signals;
    int mpi_threads; /* what MPI lets threads do: MPI_THREAD_... */
    int rank, size;  /* of all ranks */
    coh_config *config;
    coh_model *model;
    coh_plan plan;
    coh_roles roles;
    bool has_roles;
    coh_log *log;
    coh_dataset *train, *validation, *test; /* workers; NULL on servers */
    int64_t train_count;  /* samples of the training set, on all ranks */
    bool has_validation;  /* a validation set of its own, on all ranks */
    coh_normal normal;    /* on all ranks */
    coh_compute compute;  /* workers */
    char *choices;        /* how the network is calculated, as text of
                            worker/nn/choice.h; on all ranks */
    char algorithms[128]; /* rank 0's, in a line */
    int64_t infer_batch;
    int threads;
} coh_job;

/* Start MPI. */
void coh_job_begin(coh_job *self);

/* End MPI and free all; gives the exit code. The failure in *err is printed by
 * rank 0. After COH_E_PEER the process ends here without MPI_Finalize, which
 * would wait for the lost peer. */
int coh_job_end(coh_job *self, const char *command, coh_status status,
                coh_err *err);

/* Give every rank rank 0's bytes[size] and status; *err too. */
coh_status coh_job_share(coh_job *self, coh_status status, void *bytes,
                         int64_t size, coh_err *err);

/* Config (rank 0 reads it: `read` is called there), model, plan, roles, log. */
typedef coh_status (*coh_job_reader)(const coh_args *args, coh_config **out,
                                     coh_err *err);
coh_status coh_job_load(coh_job *self, const coh_args *args,
                        coh_job_reader read, coh_err *err);

/* Workers open the training set too if wants_train. Sets train_count and
 * has_validation everywhere. */
coh_status coh_job_open_data(coh_job *self, bool wants_train, coh_err *err);

/* Rank 0 measures the normalisation, unless `known` gives it; all use it. */
coh_status coh_job_normalize(coh_job *self, const coh_normal *known,
                             coh_err *err);

/* The network of workers; wants_train false: inference only. `known`: choices
 * made before, on rank 0; or NULL. Of its own file, job_compute.c, so that a
 * simulator can replace it (smpi/smpi_compute.c). */
coh_status coh_job_make_compute(coh_job *self, bool wants_train,
                                const char *known, coh_err *err);

#endif
