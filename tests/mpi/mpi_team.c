/* mpi_team.c - sums and spreads in a group (src/common/team.h), of both kinds,
 * against plain loops. Any size >= 1; teams are the first 1 .. size ranks, and
 * the last ones in reverse, so 4 ranks see teams of 3. */
#include "common/team.h"

#include <stdlib.h>
#include <string.h>

#include "common/mpi_check.h"
#include "common/tree.h"
#include "support/check_run.h"

enum { LIMIT_S = 30, LARGE = 70001, RANKS_MOST = 64 };

static int rank, size;
static coh_err err;

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    ck_assert_int_le(size, RANKS_MOST);
    err = COH_ERR_INIT;
}

/* Who is in a team; member: -1 if this rank is not. */
typedef struct crew {
    int ranks[RANKS_MOST];
    int size, member;
    bool is_mpi;
    MPI_Comm comm; /* owned, of mpi */
    coh_team *team;
} crew;

/* The first `members` ranks, or the last in reverse. */
static crew crew_of(int members, bool reversed)
{
    crew it = { .size = members, .member = -1, .comm = MPI_COMM_NULL };

    for (int m = 0; m < members; m++) {
        it.ranks[m] = reversed ? size - 1 - m : m;
        if (it.ranks[m] == rank)
            it.member = m;
    }
    return it;
}

static crew own(int members, bool reversed)
{
    crew it = crew_of(members, reversed);

    if (it.member >= 0)
        it.team =
            coh_team_new_own(MPI_COMM_WORLD, it.ranks, it.size, it.member);
    return it;
}

static crew of_mpi(int members)
{
    crew it = crew_of(members, false);

    it.is_mpi = true;
    COH_MPI(MPI_Comm_split(MPI_COMM_WORLD, it.member >= 0 ? 0 : MPI_UNDEFINED,
                           it.member, &it.comm));
    if (it.member >= 0)
        it.team = coh_team_new_mpi(it.comm);
    return it;
}

static void end(crew *it)
{
    coh_team_destroy(&it->team);
    if (it->comm != MPI_COMM_NULL)
        COH_MPI(MPI_Comm_free(&it->comm));
}

static coh_status finish(coh_xfer **xfer)
{
    return coh_xfer_finish(xfer, LIMIT_S, "a test", &err);
}

/* What a member brings: whole numbers, so that any order gives the same. */
static float value(int member, int64_t i)
{
    return (float)((i * 7 + 13 * member) % 1000 - 300);
}

static double total(int members, int64_t i)
{
    double sum = 0;

    for (int m = 0; m < members; m++)
        sum += (double)value(m, i);
    return sum;
}

static int64_t reserve(const crew *it, int64_t count)
{
    coh_status status =
        coh_team_reserve(it->team, COH_LINE_SUMS, 3, 4 * count, &err);
    ck_assert_int_eq(status, COH_OK);
    return count;
}

/* Every collective of a crew with every root: how many values are wrong. The
 * values of others before and behind must stay: data[-1] and data[count]. */
static int64_t try_all(const crew *it, int root, int64_t count, float *room)
{
    float *data = room + 1;
    double *doubles = calloc((size_t)count + 1, sizeof *doubles);
    int64_t wrong = 0;

    for (int64_t i = -1; i <= count; i++)
        data[i] = value(it->member, i);
    coh_xfer *xfer =
        coh_team_begin_sum(it->team, COH_LINE_SUMS, root, data, count);
    wrong += finish(&xfer) != COH_OK;
    for (int64_t i = 0; i < count; i++)
        wrong += (double)data[i] != total(it->size, i);

    for (int64_t i = 0; i < count; i++)
        data[i] = value(it->member, i);
    xfer =
        coh_team_begin_gather_sum(it->team, COH_LINE_SUMS, root, data, count);
    wrong += finish(&xfer) != COH_OK;
    for (int64_t i = 0; i < count && it->member == root; i++)
        wrong += (double)data[i] != total(it->size, i);

    for (int64_t i = 0; i < count; i++)
        data[i] = value(it->member, i);
    xfer = coh_team_begin_spread(it->team, COH_LINE_SPREADS, root, data,
                                 4 * count);
    wrong += finish(&xfer) != COH_OK;
    for (int64_t i = 0; i < count; i++)
        wrong += data[i] != value(root, i);

    const int64_t few = count < 100 ? count : 100;
    for (int64_t i = 0; i < few; i++)
        doubles[i] = 0.5 * (double)value(it->member, i);
    xfer = coh_team_begin_sum_f64(it->team, COH_LINE_STEPS, root, doubles, few);
    wrong += finish(&xfer) != COH_OK;
    for (int64_t i = 0; i < few; i++)
        wrong += doubles[i] != 0.5 * total(it->size, i);
    wrong += data[-1] != value(it->member, -1);
    wrong += data[count] != value(it->member, count);
    free(doubles);
    return wrong;
}

static int64_t try_crew(crew it)
{
    static const int64_t counts[] = { 0, 1, 7, 1000, LARGE };
    float *room = malloc((LARGE + 2) * sizeof *room);
    int64_t wrong = 0;

    if (it.member >= 0) {
        (void)reserve(&it, LARGE);
        for (int root = 0; root < it.size; root++)
            for (int c = 0; c < 5; c++)
                wrong += try_all(&it, root, counts[c], room);
    }
    end(&it);
    free(room);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    return wrong;
}

START_TEST(sums_and_spreads_are_those_of_plain_loops)
{
    int64_t wrong = 0;

    for (int members = 1; members <= size; members++) {
        wrong += try_crew(own(members, false));
        wrong += try_crew(own(members, true));
        wrong += try_crew(of_mpi(members));
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Many more than have tags and rooms, in both lines, finished from the last
 * on; each line of the second half of the members begins at another moment. */
static int64_t try_many(crew it)
{
    enum { N = 3 * COH_TEAM_TAGS + 5, COUNT = 1500 };
    float *sums = malloc(sizeof *sums * N * COUNT);
    float *spreads = malloc(sizeof *spreads * N * COUNT);
    coh_xfer *a[N], *b[N];
    int64_t wrong = 0;

    if (it.member < 0)
        goto out;
    (void)reserve(&it, COUNT);
    for (int64_t i = 0; i < N * COUNT; i++)
        sums[i] = spreads[i] = value(it.member, i);
    for (int lot = 0; lot < 2; lot++) {
        const bool is_sums = lot == it.member % 2;
        for (int n = 0; n < N; n++) {
            const int root = n % it.size;
            if (is_sums)
                a[n] = coh_team_begin_sum(it.team, COH_LINE_SUMS, root,
                                          sums + n * COUNT, COUNT);
            else
                b[n] = coh_team_begin_spread(it.team, COH_LINE_SPREADS, root,
                                             spreads + n * COUNT, 4 * COUNT);
        }
    }
    for (int n = N - 1; n >= 0; n--) {
        wrong += finish(&a[n]) != COH_OK;
        wrong += finish(&b[n]) != COH_OK;
    }
    for (int64_t i = 0; i < N * COUNT; i++) {
        wrong += (double)sums[i] != total(it.size, i);
        wrong += spreads[i] != value((int)(i / COUNT) % it.size, i);
    }
out:
    free(sums);
    free(spreads);
    end(&it);
    return wrong;
}

START_TEST(many_may_be_under_way_and_lines_begin_in_any_order)
{
    int64_t wrong = 0;

    for (int members = 1; members <= size; members++) {
        wrong += try_many(own(members, false));
        wrong += try_many(of_mpi(members));
    }
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* The root of the first spread is late. On 4 ranks, 0 would hand it on to 1, and
 * sends it those that follow: rank 1 has the second before the first, and then
 * each its own, although the one after COH_TEAM_TAGS has the tag of the first. */
START_TEST(a_late_one_keeps_nobody_from_the_next)
{
    enum { N = COH_TEAM_TAGS + 10 };
    const int late = size / 2;
    crew it = own(size, false);
    int64_t data[N], wrong = 0;
    coh_xfer *xfers[N];

    if (rank == late)
        COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int n = 0; n < N; n++) {
        const int root = n == 0 ? late : 0;
        data[n] = rank == root ? 100 + n : -1;
        xfers[n] = coh_team_begin_spread(it.team, COH_LINE_SPREADS, root,
                                         &data[n], sizeof data[n]);
    }
    if (size == 4 && rank == 1)
        wrong += finish(&xfers[1]) != COH_OK;
    if (rank != late)
        COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int n = 0; n < N; n++)
        wrong += finish(&xfers[n]) != COH_OK || data[n] != 100 + n;
    end(&it);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Values whose sum depends on the order of adding. */
START_TEST(a_sum_has_the_same_bits_each_time)
{
    enum { N = 5, COUNT = 4001 };
    crew it = own(size, false);
    float *data = malloc(sizeof *data * N * COUNT);
    coh_xfer *xfers[N];
    int64_t wrong = 0;

    (void)reserve(&it, COUNT);
    for (int64_t i = 0; i < N * COUNT; i++)
        data[i] = 1.0f / (float)(3 + i % COUNT + 1000 * rank);
    for (int n = 0; n < N; n++) {
        if ((n + rank) % 2 == 0) /* who comes last differs */
            coh_xfer_rest(0.1);
        xfers[n] = coh_team_begin_sum(it.team, COH_LINE_SUMS, size / 2,
                                      data + n * COUNT, COUNT);
    }
    for (int n = 0; n < N; n++)
        wrong += finish(&xfers[n]) != COH_OK;
    for (int n = 1; n < N; n++)
        wrong += memcmp(data, data + n * COUNT, COUNT * sizeof *data) != 0;
    free(data);
    end(&it);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* Members that wait for something else hand on when they poll. */
START_TEST(who_polls_hands_on)
{
    crew it = own(size, false);
    int root_s = rank == 0 ? 42 : -1, done = 0, all = 0;
    coh_xfer *xfer = coh_team_begin_spread(it.team, COH_LINE_SPREADS, 0,
                                           &root_s, sizeof root_s);
    MPI_Request request = MPI_REQUEST_NULL;

    /* The last is handed it by others that never test the transfer itself. */
    if (rank == size - 1) {
        done = finish(&xfer) == COH_OK;
        all = 1;
    }
    COH_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &request));
    for (int over = 0; !over; coh_xfer_rest(0)) {
        coh_team_poll(it.team);
        COH_MPI(MPI_Test(&request, &over, MPI_STATUS_IGNORE));
    }
    if (all == 0)
        done = finish(&xfer) == COH_OK;
    end(&it);
    ck_assert_int_eq(done, 1);
    ck_assert_int_eq(root_s, 42);
}
END_TEST

/* Take what the others sent to a member that did not come. */
static void drain(MPI_Comm comm, coh_tree tree, int n, int64_t bytes)
{
    void *room = malloc((size_t)bytes);

    for (int k = 0; k < coh_tree_children(tree, tree.root); k++) {
        const coh_xfer_part part = { COH_XFER_RECV,
                                     coh_tree_child(tree, tree.root, k),
                                     (coh_tag)(COH_TAG_SUMS + n), room, bytes };
        coh_xfer *xfer = coh_xfer_begin(comm, &part, 1);
        if (coh_xfer_finish(&xfer, 5, "a child", &err) != COH_OK)
            (void)coh_xfer_cancel(&xfer);
    }
    free(room);
}

/* The last member, the root of all sums, never begins: the others give up, and
 * those next to it say whom they miss. */
START_TEST(a_collective_without_a_member_ends_and_is_cancelled)
{
    enum { N = 3, POLLS = 300 };
    const coh_tree tree = { size, size - 1 };
    const bool is_dead = rank == tree.root;
    crew it = crew_of(size, false);
    float *data = calloc((size_t)LARGE * N, sizeof *data);
    coh_xfer *xfers[N] = { 0 };
    coh_status status = COH_E_PEER;

    COH_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &it.comm));
    it.team = coh_team_new_own(it.comm, it.ranks, size, rank);
    (void)reserve(&it, LARGE);
    for (int n = 0; n < N && !is_dead; n++)
        xfers[n] = coh_team_begin_sum(it.team, COH_LINE_SUMS, tree.root,
                                      data + (int64_t)n * LARGE, LARGE);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    for (int i = 0; i < POLLS; i++) {
        coh_team_poll(it.team);
        coh_xfer_rest(0);
    }
    if (!is_dead)
        status = coh_xfer_finish(&xfers[0], 0.1, "a sum", &err);
    for (int n = 0; n < N; n++) {
        (void)coh_xfer_cancel(&xfers[n]);
        if (is_dead)
            drain(it.comm, tree, n, LARGE * (int64_t)sizeof *data);
    }
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    end(&it); /* it refuses if any is left */
    free(data);
    ck_assert_int_eq(status, COH_E_PEER);
    if (!is_dead && coh_tree_parent(tree, rank) == tree.root) {
        char who[64];
        snprintf(who, sizeof who, "rank %d (a sum) is lost or too slow",
                 tree.root);
        ck_assert_msg(strstr(err.text, who) != NULL, "%s", err.text);
    }
}
END_TEST

START_TEST(rooms_of_cancelled_sums_are_used_again)
{
    crew it = own(size, false);
    int64_t wrong = 0;
    float *room = malloc((LARGE + 2) * sizeof *room);

    (void)reserve(&it, LARGE);
    for (int n = 0; n < 40 && rank == 0; n++) { /* receives nobody sends for */
        coh_xfer *xfer =
            coh_team_begin_sum(it.team, COH_LINE_SUMS, 0, room, LARGE);
        wrong += size > 1 && coh_xfer_test(xfer);
        wrong += size > 1 && !coh_xfer_cancel(&xfer);
        if (xfer != NULL)
            (void)finish(&xfer);
    }
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    end(&it);
    it = own(size, false);
    (void)reserve(&it, LARGE);
    wrong += try_all(&it, 0, LARGE, room);
    end(&it);
    free(room);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(a_team_without_room_for_it_says_so)
{
    crew it = own(size, false);
    const coh_status status =
        coh_team_reserve(it.team, COH_LINE_SUMS, 16, INT64_C(1) << 50, &err);
    float x = 1; /* and has the room that it had */
    coh_xfer *xfer = coh_team_begin_sum(it.team, COH_LINE_SUMS, 0, &x, 1);
    const coh_status sum = finish(&xfer);

    end(&it);
    ck_assert_int_eq(status, COH_E_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "exchange.block"));
    ck_assert_int_eq(sum, COH_OK);
    ck_assert_float_eq(x, (float)size);
}
END_TEST

static Suite *team_suite(void)
{
    Suite *suite = suite_create("team");
    TCase *core = tcase_create("core"), *ends = tcase_create("ends");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, sums_and_spreads_are_those_of_plain_loops);
    tcase_add_test(core, many_may_be_under_way_and_lines_begin_in_any_order);
    tcase_add_test(core, a_late_one_keeps_nobody_from_the_next);
    tcase_add_test(core, a_sum_has_the_same_bits_each_time);
    tcase_add_test(core, who_polls_hands_on);
    suite_add_tcase(suite, core);
    tcase_add_checked_fixture(ends, setup, NULL);
    tcase_add_test(ends, a_collective_without_a_member_ends_and_is_cancelled);
    tcase_add_test(ends, rooms_of_cancelled_sums_are_used_again);
    tcase_add_test(ends, a_team_without_room_for_it_says_so);
    suite_add_tcase(suite, ends);
    return suite;
}

CHECK_MPI_MAIN(team_suite)
