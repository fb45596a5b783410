/* mpi_trips.c - gradients to a server and weights back, in every format
 * (src/worker/trips.h, src/server/inbox.h). The last rank is the server, each
 * other one a group. Any size >= 1; alone there is nothing to send. */
#include "worker/trips.h"

#include <float.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/mpi_check.h"
#include "server/inbox.h"
#include "support/config_text.h"

/* Three blocks, the last one short and of an odd size. */
enum { COUNT = 2 * 16384 + 1001 };

static int rank, size, groups;
static coh_err err;
static coh_config *config;
static coh_plan plan;
static coh_roles roles;
static coh_statistics none;
static coh_schedule schedule;
static coh_shard *shard;
static coh_inbox *inbox;
static coh_trips *trips;
static coh_status status; /* the first that was not COH_OK */
static float start[COUNT], gradient[COUNT], weights[COUNT];

/* Weights of which some have more bits than 8 or 11; gradients too. */
static void make_up(void)
{
    for (int i = 0; i < COUNT; i++) {
        start[i] = (float)(i % 4001 - 2000) / 256;
        gradient[i] = (float)(i % 5003 - 2501) / 1024;
    }
}

/* `more`: of the room exchange. SGD with rate 1. Collective. */
static void begin(const char *policy, const char *more)
{
    char text[1024];
    const coh_model model = { .parameters = COUNT, .trained = COUNT };

    snprintf(text, sizeof text,
             DATA MODEL "groups: %d\nservers: 1\npolicy: %s\nexchange: {block: "
                        "65536, %s}\noptimizer: {rate: 1, momentum: 0}\n",
             groups, policy, more);
    config = config_of(text);
    status = coh_plan_make(config, &model, size, &plan, &err);
    coh_roles_init(&roles, MPI_COMM_WORLD, &plan, COH_COLLECTIVES_MPI);
    schedule = coh_schedule_of(config, 1000, 1);
    const coh_rule rule = coh_rule_of_servers(config);
    if (!roles.mine.is_server) {
        status = coh_trips_new(config, &plan, &roles, weights, &trips, &err);
        return;
    }
    status = coh_shard_new(&plan, 0, &rule, &none, &shard, &err);
    coh_shard_load(shard, start);
    if (status == COH_OK)
        status = coh_inbox_new(config, &plan, &roles, 1, &schedule, shard,
                               &inbox, &err);
}

/* Until all have come here, the server serves. Collective. */
static void meet(void)
{
    MPI_Request all;
    int done = 0;

    COH_MPI(MPI_Ibarrier(MPI_COMM_WORLD, &all));
    while (!done) {
        bool any = false;
        if (inbox != NULL && status == COH_OK)
            status = coh_inbox_poll(inbox, &any, &err);
        COH_MPI(MPI_Test(&all, &done, MPI_STATUS_IGNORE));
    }
}

static void end(void)
{
    coh_trips_destroy(&trips);
    coh_inbox_destroy(&inbox);
    coh_shard_destroy(&shard);
    coh_roles_fini(&roles);
    coh_plan_fini(&plan);
    coh_config_destroy(&config);
}

static void come_back(void)
{
    if (status == COH_OK)
        status = coh_trips_back(trips, &err);
    if (status == COH_OK)
        status = coh_trips_wait(trips, COUNT, &err);
}

static void pull(bool exact)
{
    for (int64_t b = 0; trips != NULL && b < plan.nblocks; b++)
        coh_trips_pull(trips, b, exact);
    if (trips != NULL)
        come_back();
    meet();
}

/* All groups together weigh 4. */
static void push(void)
{
    const bool is_sync = config->policy == COH_POLICY_SYNC;
    coh_push head = { .groups = is_sync ? groups : 1,
                      .weight = !is_sync               ? 4
                                : roles.mine.group > 0 ? 1
                                                       : 5 - groups };

    for (int64_t b = plan.nblocks - 1; trips != NULL && b >= 0; b--) {
        head.version = coh_trips_version(trips, b);
        coh_trips_push(trips, b, &head,
                       gradient + coh_plan_block(&plan, b).first);
    }
    if (trips != NULL)
        come_back();
    meet();
}

/* x as it comes out of this format, block by block. */
static void travel(coh_wire_kind format, float *x)
{
    coh_narrowed counts = { 0 };

    for (int64_t b = 0; b < plan.nblocks; b++) {
        const coh_range range = coh_plan_block(&plan, b);
        float *at = x + range.first;
        void *place = coh_narrow_place(format, at, range.count);
        const float scale =
            coh_narrow_pack(format, at, range.count, at, &counts);
        memmove(place, at, (size_t)coh_narrow_bytes(format, range.count));
        coh_narrow_unpack(format, scale, place, range.count, at);
    }
}

static int differ(const float *want)
{
    int count = 0;

    for (int i = 0; trips != NULL && i < COUNT; i++)
        count += weights[i] != want[i];
    return count;
}

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    groups = size - 1;
    err = COH_ERR_INIT;
    make_up();
}

static const char *const formats[] = { "float32", "bfloat16", "float16" };

/* What a server has after all groups pushed the gradient as it comes out of
 * `format`; all of it is exact in float32. */
static void expect_update(coh_wire_kind format, float *want)
{
    make_up();
    memcpy(want, gradient, sizeof gradient);
    travel(format, want);
    for (int i = 0; i < COUNT; i++)
        want[i] = start[i] - (float)groups * want[i] / 4;
}

/* _i: policy, format of pushes, of replies. */
START_TEST(gradients_and_weights_are_rounded_once_on_their_way)
{
    const coh_wire_kind out = (coh_wire_kind)(_i / 3 % 3);
    const coh_wire_kind back = (coh_wire_kind)(_i % 3);
    const bool is_sync = _i >= 9;
    static float want[COUNT];
    coh_narrowed pushed = { 0 }, answered = { 0 };
    char more[64];

    if (size == 1)
        return;
    snprintf(more, sizeof more, "push: %s, reply: %s", formats[out],
             formats[back]);
    begin(is_sync ? "sync" : "async", more);
    pull(true);
    const int exact = differ(start);
    memcpy(want, start, sizeof start);
    travel(back, want);
    pull(false);
    const int rounded = differ(want);

    /* async: each gets what is there when its own push is applied */
    push();
    expect_update(out, want);
    travel(back, want);
    const int after = is_sync || groups == 1 ? differ(want) : 0;
    pull(true);
    expect_update(out, want);
    const int kept = differ(want);
    if (inbox != NULL) {
        pushed = coh_inbox_pushed(inbox);
        answered = coh_inbox_answered(inbox);
    }
    const bool is_server = inbox != NULL;
    end();
    ck_assert_msg(status == COH_OK, "%s", err.text);
    ck_assert_int_eq(exact, 0);
    ck_assert_int_eq(rounded, 0);
    ck_assert_int_eq(after, 0);
    ck_assert_int_eq(kept, 0);
    ck_assert_int_eq(pushed.values, is_server && out != 0 ? groups * COUNT : 0);
    ck_assert_int_eq(answered.values,
                     is_server && back != 0 ? 2 * groups * COUNT : 0);
}
END_TEST

/* A gradient and a weight that bfloat16 cannot hold. */
START_TEST(what_overflows_on_its_way_is_counted_at_the_server)
{
    coh_narrowed pushed = { 0 }, answered = { 0 };
    int infinite = 0;

    if (size == 1)
        return;
    start[5] = FLT_MAX;
    start[COUNT - 1] = 0x1p-149f;
    begin("sync", "push: bfloat16, reply: bfloat16");
    pull(false);
    infinite += trips != NULL && weights[5] > FLT_MAX;
    gradient[7] = -FLT_MAX;
    push();
    infinite += trips != NULL && weights[7] > FLT_MAX;
    const bool is_server = inbox != NULL;
    if (is_server) {
        pushed = coh_inbox_pushed(inbox);
        answered = coh_inbox_answered(inbox);
    }
    end();
    ck_assert_msg(status == COH_OK, "%s", err.text);
    if (!is_server) {
        ck_assert_int_eq(infinite, 2);
        return;
    }
    ck_assert_int_eq(pushed.infinite, groups);
    ck_assert_int_eq(pushed.zeroed, 0);
    /* weight 7 was infinite before it was sent */
    ck_assert_int_eq(answered.infinite, 2 * groups);
    ck_assert_int_eq(answered.zeroed, groups);
}
END_TEST

/* Pushes of one block that arrive together: each group's answer is of its own
 * move, not of another's too. */
START_TEST(elastic_groups_are_answered_between_two_moves)
{
    enum { TURNS = 10 };
    int64_t versions[TURNS];
    int64_t *all = calloc((size_t)size * TURNS, sizeof *all);

    ck_assert_ptr_nonnull(all);
    if (size == 1) {
        free(all);
        return;
    }
    begin("async", "elastic: 0.25");
    pull(false);
    for (int t = 0; t < TURNS; t++) {
        push();
        versions[t] = trips != NULL ? coh_trips_version(trips, 1) : 0;
    }
    COH_MPI(MPI_Allgather(versions, TURNS, MPI_INT64_T, all, TURNS, MPI_INT64_T,
                          MPI_COMM_WORLD));
    end();
    ck_assert_msg(status == COH_OK, "%s", err.text);
    for (int t = 0; t < TURNS; t++) {
        int64_t sum = 0; /* 1 + 2 + .. + groups, and what was before */
        for (int r = 0; r < size; r++)
            sum += all[r * TURNS + t];
        ck_assert_int_eq(2 * sum, groups * (2 * groups * t + groups + 1));
    }
    free(all);
}
END_TEST

static Suite *trips_suite(void)
{
    Suite *suite = suite_create("trips");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_loop_test(
        core, gradients_and_weights_are_rounded_once_on_their_way, 0, 18);
    tcase_add_test(core, what_overflows_on_its_way_is_counted_at_the_server);
    tcase_add_test(core, elastic_groups_are_answered_between_two_moves);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MPI_MAIN(trips_suite)
