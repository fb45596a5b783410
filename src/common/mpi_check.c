/* mpi_check.c - see mpi_check.h, and coh_panic() of status.h. */
#include "common/mpi_check.h"

#include <stdio.h>
#include <stdlib.h>

/* This process's rank, or -1 while MPI is not up. */
static int world_rank(void)
{
    int up = 0, down = 0, rank = -1;

    (void)MPI_Initialized(&up);
    (void)MPI_Finalized(&down);
    if (up && !down)
        (void)MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

_Noreturn void coh_panic(const char *file, int line, const char *what)
{
    const int rank = world_rank();

    fprintf(stderr, "rank %d: %s:%d: broken promise: %s\n", rank, file, line,
            what);
    if (rank >= 0)
        (void)MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

void coh_mpi_check(int rc, const char *call, const char *file, int line)
{
    if (rc == MPI_SUCCESS)
        return;

    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    (void)MPI_Error_string(rc, text, &length);
    fprintf(stderr, "rank %d: %s:%d: %s: %s\n", world_rank(), file, line, call,
            text);
    (void)MPI_Abort(MPI_COMM_WORLD, 1);
}

coh_status coh_agree(MPI_Comm comm, coh_status mine, coh_err *err)
{
    int rank, size, all, first_bad;
    coh_err said = COH_ERR_INIT;

    COH_MPI(MPI_Comm_rank(comm, &rank));
    COH_MPI(MPI_Comm_size(comm, &size));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &all));

    int bad = mine == COH_OK ? size : rank;
    COH_MPI(MPI_Allreduce(&bad, &first_bad, 1, MPI_INT, MPI_MIN, comm));
    if (first_bad == size)
        return COH_OK;

    if (rank == first_bad) {
        if (err != NULL)
            said = *err;
        said.status = mine;
        if (all > 1)
            coh_err_context(&said, "rank %d", world_rank());
    }
    COH_MPI(MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, first_bad, comm));
    if (err != NULL)
        *err = said;
    return said.status;
}
