/* smpi_compute.c - a job's network in simulated time; instead of
 * cli/job_compute.c. The platform's file says how many flop a second a host
 * calculates. */
#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include <smpi/smpi.h>

#include "cli/job.h"
#include "common/mpi_check.h"
#include "worker/timed.h"

static void spend(void *user, double flop)
{
    (void)user;
    smpi_execute_flops(flop);
}

coh_status coh_job_make_compute(coh_job *self, bool wants_train,
                                const char *known, coh_err *err)
{
    coh_status status = COH_OK;

    (void)wants_train, (void)known;
    snprintf(self->algorithms, sizeof self->algorithms, "simulated");
    self->choices = strdup("");
    if (self->choices == NULL)
        status = coh_fail(err, COH_E_NOMEM, "no memory for a network");
    if (status == COH_OK && !self->roles.mine.is_server)
        status = coh_timed_new(self->model, spend, NULL, &self->compute, err);
    return coh_agree(self->roles.world, status, err);
}
