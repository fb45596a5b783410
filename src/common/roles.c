/* roles.c - see roles.h. */
#include "common/roles.h"

#include <stdlib.h>

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

/* The group's team: its own messages go through world. */
static coh_team *make_team(const coh_roles *self, const coh_plan *plan,
                           coh_collectives_kind kind)
{
    const int size = plan->group_size;

    if (kind == COH_COLLECTIVES_MPI)
        return coh_team_new_mpi(self->group);
    int *ranks = malloc((size_t)size * sizeof *ranks);
    COH_ASSERT(ranks != NULL);
    for (int m = 0; m < size; m++)
        ranks[m] = coh_plan_worker_rank(plan, self->mine.group, m);
    coh_team *team =
        coh_team_new_own(self->world, ranks, size, self->mine.member);
    free(ranks);
    return team;
}

void coh_roles_init(coh_roles *self, MPI_Comm all, const coh_plan *plan,
                    coh_collectives_kind kind)
{
    COH_MPI(MPI_Comm_dup(all, &self->world));
    COH_MPI(MPI_Comm_set_errhandler(self->world, MPI_ERRORS_RETURN));
    COH_MPI(MPI_Comm_rank(self->world, &self->rank));
    COH_MPI(MPI_Comm_size(self->world, &self->size));
    self->mine = coh_plan_role(plan, self->rank);

    const int color = self->mine.is_server ? MPI_UNDEFINED : self->mine.group;
    COH_MPI(
        MPI_Comm_split(self->world, color, self->mine.member, &self->group));
    self->team = NULL;
    if (self->group != MPI_COMM_NULL)
        self->team = make_team(self, plan, kind);
    self->node_ranks = count_node_ranks(self->world);
}

void coh_roles_fini(coh_roles *self)
{
    coh_team_destroy(&self->team);
    if (self->group != MPI_COMM_NULL)
        COH_MPI(MPI_Comm_free(&self->group));
    COH_MPI(MPI_Comm_free(&self->world));
}
