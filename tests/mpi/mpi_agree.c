/* mpi_agree.c - one outcome for all ranks (src/common/mpi_check.h). Any size
 * >= 1. */
#include "common/mpi_check.h"

#include <stdio.h>
#include <string.h>

#include "support/check_run.h"

static int rank, size;
static coh_err err;

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    err = COH_ERR_INIT;
}

/* What all must hear if `who` said `text`: alone, it needs no name. */
static void expect(coh_status ours, coh_status want, int who, const char *text)
{
    char line[64];

    if (size > 1)
        snprintf(line, sizeof line, "rank %d: %s", who, text);
    else
        snprintf(line, sizeof line, "%s", text);
    ck_assert_int_eq(ours, want);
    ck_assert_int_eq(err.status, want);
    ck_assert_str_eq(err.text, line);
}

START_TEST(if_all_are_well_nothing_is_said)
{
    const coh_status ours = coh_agree(MPI_COMM_WORLD, COH_OK, &err);

    ck_assert_int_eq(ours, COH_OK);
    ck_assert_str_eq(err.text, "");
}
END_TEST

START_TEST(one_failure_becomes_everyones)
{
    coh_status mine = COH_OK;

    if (rank == size - 1)
        mine = coh_fail(&err, COH_E_IO, "disk full");
    const coh_status ours = coh_agree(MPI_COMM_WORLD, mine, &err);
    expect(ours, COH_E_IO, size - 1, "disk full");
}
END_TEST

START_TEST(of_several_failures_the_lowest_ranks_is_heard)
{
    const int lowest = size > 1 ? 1 : 0;
    coh_status mine = COH_OK;

    if (rank == lowest)
        mine = coh_fail(&err, COH_E_DATA, "bad file");
    else if (rank > lowest)
        mine = coh_fail(&err, COH_E_IO, "rank %d fails too", rank);
    const coh_status ours = coh_agree(MPI_COMM_WORLD, mine, &err);
    expect(ours, COH_E_DATA, lowest, "bad file");
}
END_TEST

/* A status above 0 is an outcome that all must share as well. */
START_TEST(a_stop_is_agreed_on_too)
{
    const coh_status mine = rank == 0 ? COH_STOPPED : COH_OK;

    const coh_status ours = coh_agree(MPI_COMM_WORLD, mine, &err);
    ck_assert_int_eq(ours, COH_STOPPED);
}
END_TEST

START_TEST(a_message_need_not_be_wanted)
{
    const coh_status ours = coh_agree(
        MPI_COMM_WORLD, rank == size - 1 ? COH_E_NOMEM : COH_OK, NULL);

    ck_assert_int_eq(ours, COH_E_NOMEM);
}
END_TEST

/* Who failed is told by its number among all. */
START_TEST(a_part_of_the_ranks_agrees_among_itself)
{
    const int last_odd = size / 2 * 2 - 1;
    MPI_Comm half;
    coh_status mine = COH_OK;

    COH_MPI(MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half));
    if (rank == last_odd)
        mine = coh_fail(&err, COH_E_DATA, "odd");
    const coh_status ours = coh_agree(half, mine, &err);
    COH_MPI(MPI_Comm_free(&half));
    if (rank % 2 == 1)
        expect(ours, COH_E_DATA, last_odd, "odd");
    else
        ck_assert_int_eq(ours, COH_OK);
}
END_TEST

static Suite *agree_suite(void)
{
    Suite *suite = suite_create("agree");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, if_all_are_well_nothing_is_said);
    tcase_add_test(core, one_failure_becomes_everyones);
    tcase_add_test(core, of_several_failures_the_lowest_ranks_is_heard);
    tcase_add_test(core, a_stop_is_agreed_on_too);
    tcase_add_test(core, a_message_need_not_be_wanted);
    tcase_add_test(core, a_part_of_the_ranks_agrees_among_itself);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MPI_MAIN(agree_suite)
