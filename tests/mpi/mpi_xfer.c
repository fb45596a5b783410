/* mpi_xfer.c - transfers between ranks (src/common/xfer.h). Any size >= 1. */
#include "common/xfer.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mpi_check.h"
#include "support/check_run.h"

enum { LIMIT_S = 30, LARGE = 1 << 20 };

static int rank, size, next, previous;
static coh_err err;

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    err = COH_ERR_INIT;
}

static coh_status finish(coh_xfer **xfer)
{
    return coh_xfer_finish(xfer, LIMIT_S, "a test", &err);
}

/* Every rank sends its number to the next, round the ring; what is listed last
 * is posted first, or large messages would meet no receive. */
START_TEST(a_ring_passes_each_rank_to_the_next)
{
    float mine = (float)rank, got = -1;
    const coh_xfer_part parts[] = {
        { COH_XFER_SEND, next, COH_TAG_GRADIENT, &mine, sizeof mine },
        { COH_XFER_RECV, previous, COH_TAG_GRADIENT, &got, sizeof got },
    };
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    const coh_status status = finish(&xfer);

    ck_assert_int_eq(status, COH_OK);
    ck_assert_float_eq(got, (float)previous);
    ck_assert_ptr_null(xfer);
}
END_TEST

START_TEST(a_large_message_arrives_whole)
{
    float *mine = malloc(LARGE * sizeof *mine);
    float *got = calloc(LARGE, sizeof *got);
    int wrong = 0;

    for (int i = 0; i < LARGE; i++)
        mine[i] = (float)(i % 1000 + rank);
    const coh_xfer_part parts[] = {
        { COH_XFER_SEND, next, COH_TAG_WEIGHTS, mine, LARGE * 4 },
        { COH_XFER_RECV, previous, COH_TAG_WEIGHTS, got, LARGE * 4 },
    };
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    const coh_status status = finish(&xfer);
    for (int i = 0; i < LARGE; i++)
        wrong += got[i] != (float)(i % 1000 + previous);
    free(mine);
    free(got);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

/* As heads and payloads of blocks do: in the order sent, under one tag. */
START_TEST(messages_of_one_tag_keep_their_order)
{
    enum { N = 8 };
    int64_t heads[N], got_heads[N];
    float bodies[N], got_bodies[N];
    coh_xfer *in[N], *out[N];
    coh_status status = COH_OK;

    for (int i = 0; i < N; i++) {
        const coh_xfer_part parts[] = {
            { COH_XFER_RECV, previous, COH_TAG_REPLY, &got_heads[i], 8 },
            { COH_XFER_RECV, previous, COH_TAG_WEIGHTS, &got_bodies[i], 4 },
        };
        in[i] = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    }
    for (int i = 0; i < N; i++) {
        heads[i] = 100 * rank + i;
        bodies[i] = (float)heads[i];
        const coh_xfer_part parts[] = {
            { COH_XFER_SEND, next, COH_TAG_REPLY, &heads[i], 8 },
            { COH_XFER_SEND, next, COH_TAG_WEIGHTS, &bodies[i], 4 },
        };
        out[i] = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    }
    for (int i = N - 1; i >= 0; i--) { /* finished in any order */
        status = status == COH_OK ? finish(&in[i]) : status;
        status = status == COH_OK ? finish(&out[i]) : status;
    }
    ck_assert_int_eq(status, COH_OK);
    for (int i = 0; i < N; i++) {
        ck_assert_int_eq(got_heads[i], 100 * previous + i);
        ck_assert_float_eq(got_bodies[i], (float)got_heads[i]);
    }
}
END_TEST

/* A pull sends no gradient; the receive has room for one. */
START_TEST(a_receive_may_get_less_than_it_has_room_for)
{
    float room[4] = { 7, 7, 7, 7 };
    const coh_xfer_part parts[] = {
        { COH_XFER_SEND, next, COH_TAG_GRADIENT, NULL, 0 },
        { COH_XFER_RECV, previous, COH_TAG_GRADIENT, room, sizeof room },
    };
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    const coh_status status = finish(&xfer);

    ck_assert_int_eq(status, COH_OK);
    ck_assert_float_eq(room[0], 7);
}
END_TEST

START_TEST(test_says_when_all_is_done_and_does_not_block)
{
    int mine = rank, got = -1;
    const coh_xfer_part in = { COH_XFER_RECV, previous, COH_TAG_PUSH, &got,
                               sizeof got };
    const coh_xfer_part out = { COH_XFER_SEND, next, COH_TAG_PUSH, &mine,
                                sizeof mine };

    coh_xfer *waits = coh_xfer_begin(MPI_COMM_WORLD, &in, 1);
    const bool early = coh_xfer_test(waits);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD)); /* before anybody sends */
    coh_xfer *sends = coh_xfer_begin(MPI_COMM_WORLD, &out, 1);
    while (!coh_xfer_test(waits))
        coh_xfer_rest(0);
    const bool again = coh_xfer_test(waits); /* a second time is fine */
    const coh_status status = finish(&sends);
    (void)finish(&waits);
    ck_assert(!early);
    ck_assert(again);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_int_eq(got, previous);
}
END_TEST

/* Small whole numbers: every order of summing gives the same. */
START_TEST(sums_reach_every_rank)
{
    float floats[3] = { (float)rank, 1, -2 };
    double doubles[2] = { 0.5 * rank, 1 };
    const int total = size * (size - 1) / 2;

    coh_xfer *first = coh_xfer_begin_sum(MPI_COMM_WORLD, floats, 3);
    coh_xfer *second = coh_xfer_begin_sum_f64(MPI_COMM_WORLD, doubles, 2);
    coh_status status = finish(&second);
    status = status == COH_OK ? finish(&first) : status;
    ck_assert_int_eq(status, COH_OK);
    ck_assert_float_eq(floats[0], (float)total);
    ck_assert_float_eq(floats[1], (float)size);
    ck_assert_float_eq(floats[2], (float)(-2 * size));
    ck_assert_double_eq(doubles[0], 0.5 * total);
    ck_assert_double_eq(doubles[1], size);
}
END_TEST

START_TEST(gather_sum_gives_the_sum_to_its_root)
{
    const int root = size - 1;
    float x[2] = { (float)(rank + 1), 3 };

    coh_xfer *xfer = coh_xfer_begin_gather_sum(MPI_COMM_WORLD, root, x, 2);
    const coh_status status = finish(&xfer);
    ck_assert_int_eq(status, COH_OK);
    ck_assert(rank != root || x[0] == (float)(size * (size + 1) / 2));
    ck_assert(rank != root || x[1] == (float)(3 * size));
}
END_TEST

START_TEST(spread_gives_the_roots_data_to_all)
{
    char text[24], wanted[24];
    const int root = size / 2;

    snprintf(text, sizeof text, "from %d", rank);
    snprintf(wanted, sizeof wanted, "from %d", root);
    coh_xfer *xfer =
        coh_xfer_begin_spread(MPI_COMM_WORLD, root, text, sizeof text);
    const coh_status status = finish(&xfer);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_str_eq(text, wanted);
}
END_TEST

/* As a step does: many sums under way, each used as it completes. */
START_TEST(max_gives_the_largest_value_and_whose_it_is_to_all)
{
    coh_max data[] = { { rank, rank }, { -rank, rank }, { 5, rank } };
    coh_xfer *xfer = coh_xfer_begin_max(MPI_COMM_WORLD, data, 3);

    ck_assert_int_eq(finish(&xfer), COH_OK);
    ck_assert_double_eq(data[0].value, size - 1);
    ck_assert_int_eq(data[0].rank, size - 1);
    ck_assert_double_eq(data[1].value, 0);
    ck_assert_int_eq(data[1].rank, 0);
    ck_assert_int_eq(data[2].rank, 0); /* of equal ones the lowest */
}
END_TEST

START_TEST(many_collectives_may_be_under_way)
{
    enum { N = 100 };
    float x[N][5];
    coh_xfer *xfers[N];
    coh_status status = COH_OK;
    int wrong = 0;

    for (int i = 0; i < N; i++) {
        for (int j = 0; j < 5; j++)
            x[i][j] = (float)(i + j);
        xfers[i] = coh_xfer_begin_sum(MPI_COMM_WORLD, x[i], 5);
    }
    for (int i = 0; i < N && status == COH_OK; i++)
        status = finish(&xfers[i]);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < 5; j++)
            wrong += x[i][j] != (float)(size * (i + j));
    }
    ck_assert_int_eq(status, COH_OK);
    ck_assert_int_eq(wrong, 0);
}
END_TEST

START_TEST(a_transfer_of_nothing_is_done)
{
    coh_xfer *none = NULL;
    coh_xfer *empty = coh_xfer_begin(MPI_COMM_WORLD, NULL, 0);

    ck_assert(coh_xfer_test(empty));
    ck_assert_int_eq(finish(&empty), COH_OK);
    ck_assert_int_eq(finish(&none), COH_OK); /* NULL is fine */
    coh_xfer_cancel(&none);
}
END_TEST

/* What MPI refuses is a peer that is not there: no abort, a status. */
START_TEST(an_error_of_mpi_is_a_lost_peer)
{
    int got = -1;
    const coh_xfer_part part = { COH_XFER_SEND, size, COH_TAG_GRANT, &got,
                                 sizeof got };

    COH_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, &part, 1);
    ck_assert(coh_xfer_test(xfer));
    ck_assert_int_eq(coh_xfer_finish(&xfer, 5, "a grant", &err), COH_E_PEER);
    ck_assert_ptr_nonnull(strstr(err.text, "a grant"));
    coh_xfer_cancel(&xfer);
}
END_TEST

/* Nobody sends: the wait ends at its limit and says for whom and for what.
 * What is left is then cancelled, as it is not in a real run. */
START_TEST(a_wait_gives_up_at_its_limit_and_says_for_whom)
{
    int got = -1;
    char who[32];
    const coh_xfer_part part = { COH_XFER_RECV, previous, COH_TAG_GRANT, &got,
                                 sizeof got };
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, &part, 1);
    const double begin_s = coh_clock_now_s();
    const coh_status status = coh_xfer_finish(&xfer, 0.2, "a grant", &err);
    const double took_s = coh_clock_now_s() - begin_s;

    coh_xfer_cancel(&xfer);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    snprintf(who, sizeof who, "rank %d (a grant)", previous);
    ck_assert_int_eq(status, COH_E_PEER);
    ck_assert_ptr_nonnull(strstr(err.text, who));
    ck_assert_ptr_nonnull(strstr(err.text, "exchange.timeout"));
    ck_assert_double_ge(took_s, 0.2);
    ck_assert_double_lt(took_s, 10);
    ck_assert_ptr_null(xfer);
}
END_TEST

/* The end of a run: receives that were posted ahead will never be met; a send
 * that arrived may not have been looked at. */
START_TEST(cancel_gives_up_receives_and_leaves_the_next_message_alone)
{
    int never = -1, got = -1, mine = rank;
    const coh_xfer_part ahead = { COH_XFER_RECV, previous, COH_TAG_ORDER,
                                  &never, sizeof never };
    const coh_xfer_part parts[] = {
        { COH_XFER_RECV, previous, COH_TAG_ORDER, &got, sizeof got },
        { COH_XFER_SEND, next, COH_TAG_ORDER, &mine, sizeof mine },
    };

    coh_xfer *waits = coh_xfer_begin(MPI_COMM_WORLD, &ahead, 1);
    coh_xfer_cancel(&waits);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD));
    coh_xfer *xfer = coh_xfer_begin(MPI_COMM_WORLD, parts, 2);
    const coh_status status = finish(&xfer);
    ck_assert_ptr_null(waits);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_int_eq(never, -1);
    ck_assert_int_eq(got, previous);
}
END_TEST

START_TEST(cancel_of_what_has_arrived_already_is_fine)
{
    static float mine[LARGE], got[LARGE];
    const coh_xfer_part in = { COH_XFER_RECV, previous, COH_TAG_WEIGHTS, got,
                               sizeof got };
    const coh_xfer_part out = { COH_XFER_SEND, next, COH_TAG_WEIGHTS, mine,
                                sizeof mine };

    coh_xfer *receives = coh_xfer_begin(MPI_COMM_WORLD, &in, 1);
    coh_xfer *sends = coh_xfer_begin(MPI_COMM_WORLD, &out, 1);
    const coh_status status = finish(&receives);
    COH_MPI(MPI_Barrier(MPI_COMM_WORLD)); /* all have their message */
    coh_xfer_cancel(&sends);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_ptr_null(sends);
}
END_TEST

static Suite *xfer_suite(void)
{
    Suite *suite = suite_create("xfer");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, a_ring_passes_each_rank_to_the_next);
    tcase_add_test(core, a_large_message_arrives_whole);
    tcase_add_test(core, messages_of_one_tag_keep_their_order);
    tcase_add_test(core, a_receive_may_get_less_than_it_has_room_for);
    tcase_add_test(core, test_says_when_all_is_done_and_does_not_block);
    suite_add_tcase(suite, core);

    TCase *collectives = tcase_create("collectives");
    tcase_add_checked_fixture(collectives, setup, NULL);
    tcase_add_test(collectives, sums_reach_every_rank);
    tcase_add_test(collectives, gather_sum_gives_the_sum_to_its_root);
    tcase_add_test(collectives, spread_gives_the_roots_data_to_all);
    tcase_add_test(collectives,
                   max_gives_the_largest_value_and_whose_it_is_to_all);
    tcase_add_test(collectives, many_collectives_may_be_under_way);
    suite_add_tcase(suite, collectives);

    TCase *ends = tcase_create("ends");
    tcase_add_checked_fixture(ends, setup, NULL);
    tcase_add_test(ends, a_transfer_of_nothing_is_done);
    tcase_add_test(ends, an_error_of_mpi_is_a_lost_peer);
    tcase_add_test(ends, a_wait_gives_up_at_its_limit_and_says_for_whom);
    tcase_add_test(ends,
                   cancel_gives_up_receives_and_leaves_the_next_message_alone);
    tcase_add_test(ends, cancel_of_what_has_arrived_already_is_fine);
    suite_add_tcase(suite, ends);
    return suite;
}

CHECK_MPI_MAIN(xfer_suite)
