/* mpi_roles.c - places and communicators (src/common/roles.h). Any size >= 1. */
#include "common/roles.h"

#include "common/mpi_check.h"
#include "common/xfer.h"
#include "support/check_run.h"

enum { KINDS = COH_COLLECTIVES_OWN + 1 };

static int rank, size;

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
}

/* What is seen of a role on this rank; all calls before any assertion. */
typedef struct sight {
    coh_roles roles;
    int group_rank, group_size, color_sum, compare, handler_returns;
    double members; /* as the team counts them */
} sight;

static sight look(const coh_plan *plan, int kind)
{
    sight s = { .group_rank = -1 };
    MPI_Errhandler handler;

    coh_roles_init(&s.roles, MPI_COMM_WORLD, plan, (coh_collectives_kind)kind);
    COH_MPI(MPI_Comm_compare(s.roles.world, MPI_COMM_WORLD, &s.compare));
    COH_MPI(MPI_Comm_get_errhandler(s.roles.world, &handler));
    s.handler_returns = handler == MPI_ERRORS_RETURN;
    if (s.roles.group != MPI_COMM_NULL) {
        const int mine = s.roles.mine.group;
        COH_MPI(MPI_Comm_rank(s.roles.group, &s.group_rank));
        COH_MPI(MPI_Comm_size(s.roles.group, &s.group_size));
        COH_MPI(MPI_Allreduce(&mine, &s.color_sum, 1, MPI_INT, MPI_SUM,
                              s.roles.group));
        COH_MPI(MPI_Comm_get_errhandler(s.roles.group, &handler));
        s.handler_returns &= handler == MPI_ERRORS_RETURN;
        s.members = 1;
        coh_xfer *xfer = coh_team_begin_sum_f64(s.roles.team, COH_LINE_STEPS, 0,
                                                &s.members, 1);
        (void)coh_xfer_finish(&xfer, 30, "a sum", NULL);
    }
    return s;
}

static void expect_common(const sight *s)
{
    ck_assert_int_eq(s->roles.rank, rank);
    ck_assert_int_eq(s->roles.size, size);
    ck_assert_int_eq(s->compare, MPI_CONGRUENT); /* same ranks, own messages */
    ck_assert_int_ge(s->roles.node_ranks, 1);
    ck_assert_int_le(s->roles.node_ranks, size);
    ck_assert_int_eq(s->handler_returns, 1);
    ck_assert_double_eq(s->members, s->group_rank < 0 ? 0 : s->group_size);
}

START_TEST(one_group_holds_all)
{
    const coh_plan plan = { .groups = 1, .group_size = size };
    sight s = look(&plan, _i);

    coh_roles_fini(&s.roles);
    expect_common(&s);
    ck_assert_int_eq(s.group_rank, rank);
    ck_assert_int_eq(s.group_size, size);
    ck_assert(!s.roles.mine.is_server);
}
END_TEST

/* Without its last rank: a server, in no group. Alone: one worker. */
START_TEST(a_server_has_no_group)
{
    const int servers = size > 1;
    const coh_plan plan = { .groups = size - servers,
                            .group_size = 1,
                            .servers = servers };
    sight s = look(&plan, _i);

    coh_roles_fini(&s.roles);
    expect_common(&s);
    if (servers == 1 && rank == size - 1) {
        ck_assert(s.roles.mine.is_server);
        ck_assert_int_eq(s.group_rank, -1);
        ck_assert(s.roles.group == MPI_COMM_NULL);
    } else {
        ck_assert_int_eq(s.roles.mine.group, rank);
        ck_assert_int_eq(s.group_rank, 0);
        ck_assert_int_eq(s.group_size, 1);
    }
}
END_TEST

START_TEST(groups_hold_their_own_members_in_order)
{
    const int groups = size % 2 == 0 ? 2 : 1;
    const coh_plan plan = { .groups = groups, .group_size = size / groups };
    sight s = look(&plan, _i);

    coh_roles_fini(&s.roles);
    expect_common(&s);
    ck_assert_int_eq(s.roles.mine.group, rank / plan.group_size);
    ck_assert_int_eq(s.roles.mine.member, s.group_rank);
    ck_assert_int_eq(s.group_size, plan.group_size);
    ck_assert_int_eq(s.color_sum, s.roles.mine.group * plan.group_size);
}
END_TEST

static Suite *roles_suite(void)
{
    Suite *suite = suite_create("roles");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_loop_test(core, one_group_holds_all, 0, KINDS);
    tcase_add_loop_test(core, a_server_has_no_group, 0, KINDS);
    tcase_add_loop_test(core, groups_hold_their_own_members_in_order, 0, KINDS);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MPI_MAIN(roles_suite)
