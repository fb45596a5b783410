/* job_compute.c - a job's network, calculated by oneDNN; see job.h. */
#include "cli/job.h"

#include "cli/choose.h"
#include "common/mpi_check.h"
#include "worker/nn/net.h"

coh_status coh_job_make_compute(coh_job *self, bool wants_train,
                                const char *known, coh_err *err)
{
    const coh_config *config = self->config;
    const bool computes = !self->roles.mine.is_server;
    coh_choices *choices = NULL;

    COH_ASSERT(self->mpi_threads >= MPI_THREAD_FUNNELED);
    const coh_choose_task task = {
        .config = config,
        .model = self->model,
        .batch = wants_train ? self->plan.batch : self->infer_batch,
        .training = wants_train,
        .threads = self->threads,
    };
    coh_status status = coh_choose_together(
        MPI_COMM_WORLD, &task, computes, known, &self->choices, &choices, err);
    if (status == COH_OK && computes) {
        coh_choices_summarize(choices, self->model, wants_train,
                              self->algorithms, sizeof self->algorithms);
        status = coh_net_new(self->model, wants_train ? self->plan.batch : 0,
                             self->infer_batch, (uint64_t)config->run.seed,
                             self->threads, choices, &self->compute, err);
    }
    coh_choices_destroy(&choices);
    status = coh_agree(MPI_COMM_WORLD, status, err);
    return coh_job_share(self, status, self->algorithms,
                         sizeof self->algorithms, err); /* 0 is a worker */
}
