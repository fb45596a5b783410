/* mpi_check.h - what happens when MPI itself fails, or one rank does.
 *
 * After an MPI call fails the standard promises nothing about the library, so
 * there is nothing to clean up for: say where, on which rank, and abort the
 * job. This is the one kind of error that does not travel as coh_status.
 *
 * It needs MPI_ERRORS_RETURN on every communicator (roles.c sets it): with
 * MPI's own handler the job ends before we can say where.
 */
#ifndef COH_COMMON_MPI_CHECK_H
#define COH_COMMON_MPI_CHECK_H

#include <mpi.h>

#include "common/status.h"

/* Wrap every MPI call: COH_MPI(MPI_Comm_rank(comm, &rank)); */
#define COH_MPI(call) coh_mpi_check((call), #call, __FILE__, __LINE__)
void coh_mpi_check(int rc, const char *call, const char *file, int line);

/* Collective over comm. Give every rank the same outcome: COH_OK if all passed
 * COH_OK, else the status and text of the lowest rank that failed, with
 * "rank N: ", of the job's, before the text if the job has several. Call it after
 * a step that can fail on one rank alone, before the next collective, where the
 * others would wait for ever. */
coh_status coh_agree(MPI_Comm comm, coh_status mine, coh_err *err);

#endif
