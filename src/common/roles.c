/* roles.c - see roles.h. */
#include "common/roles.h"

#include "common/mpi_check.h"

static int count_node_ranks(MPI_Comm world)
{
    MPI_Comm node;
    int ranks;

    COH_MPI(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                                &node));
    COH_MPI(MPI_Comm_size(node, &ranks));
    COH_MPI(MPI_Comm_free(&node));
    return ranks;
}

void coh_roles_init(coh_roles *self, MPI_Comm all, const coh_plan *plan)
{
    COH_MPI(MPI_Comm_dup(all, &self->world));
    COH_MPI(MPI_Comm_set_errhandler(self->world, MPI_ERRORS_RETURN));
    COH_MPI(MPI_Comm_rank(self->world, &self->rank));
    COH_MPI(MPI_Comm_size(self->world, &self->size));
    self->mine = coh_plan_role(plan, self->rank);

    const int color = self->mine.is_server ? MPI_UNDEFINED : self->mine.group;
    COH_MPI(
        MPI_Comm_split(self->world, color, self->mine.member, &self->group));
    self->sums = self->spreads = MPI_COMM_NULL;
    if (self->group != MPI_COMM_NULL) {
        COH_MPI(MPI_Comm_dup(self->group, &self->sums));
        COH_MPI(MPI_Comm_dup(self->group, &self->spreads));
    }
    self->node_ranks = count_node_ranks(self->world);
}

void coh_roles_fini(coh_roles *self)
{
    if (self->group != MPI_COMM_NULL) {
        COH_MPI(MPI_Comm_free(&self->spreads));
        COH_MPI(MPI_Comm_free(&self->sums));
        COH_MPI(MPI_Comm_free(&self->group));
    }
    COH_MPI(MPI_Comm_free(&self->world));
}
