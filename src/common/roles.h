/* roles.h - this rank's place in the run, and the communicators for it. */
#ifndef COH_COMMON_ROLES_H
#define COH_COMMON_ROLES_H

#include <mpi.h>

#include "common/plan.h"
#include "common/team.h"

typedef struct coh_roles {
    MPI_Comm world; /* owned: a duplicate of all ranks, for messages */
    MPI_Comm group; /* owned: the workers of this group; null on servers */
    coh_team *team; /* owned: the same, for sums and spreads; NULL on servers */
    int rank, size; /* in world */
    int node_ranks; /* ranks on this node, this one included */
    coh_role mine;
} coh_roles;

/* Collective over `all`, with the same plan and kind of collectives on every
 * rank. Sets every communicator to return errors. End with coh_roles_fini(). */
void coh_roles_init(coh_roles *self, MPI_Comm all, const coh_plan *plan,
                    coh_collectives_kind kind);

/* Collective over all ranks of the run. */
void coh_roles_fini(coh_roles *self);

#endif
