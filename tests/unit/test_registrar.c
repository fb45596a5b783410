/* test_registrar.c - grants, saves and the end of a run
 * (src/common/registrar.h). No MPI.
 *
 * Most tests play whole runs: groups of random speed that do their grants in
 * order and report them, against a registrar whose every answer is checked.
 */
#include "common/registrar.h"

#include <stdlib.h>
#include <string.h>

#include "common/rng.h"
#include "support/check_run.h"

enum { GROUPS_MAX = 8, AHEAD = 3, HELD_MAX = 8, USED_MAX = 20000 };
enum { FEW = 5 }; /* groups, where more show nothing new */

/* What happened in a game. */
typedef struct tale {
    int64_t
        used[USED_MAX]; /* how often each position was granted, all epochs */
    coh_grant train[4000];
    int64_t ntrain, nevaluate, ntest, nsaves;
    int64_t save_samples[4000]; /* progress at each save */
    bool saved_after_last_train;
    coh_status end; /* as the groups heard it */
} tale;

typedef struct game {
    coh_registrar_rules rules;
    coh_registrar *registrar;
    coh_grant held[GROUPS_MAX][HELD_MAX];
    int nheld[GROUPS_MAX];
    bool is_ready[GROUPS_MAX], is_stopped[GROUPS_MAX];
    int64_t place[GROUPS_MAX]; /* steps done, levelled as pace.h says */
    bool is_in[GROUPS_MAX];    /* takes part, as pace.h says */
    int64_t lead;              /* the greatest when a step began */
    int64_t begun[GROUPS_MAX]; /* sync: the last step it pushed, and 1 */
    bool is_apart[GROUPS_MAX]; /* sync: has updates that it did not send */
    bool is_released;          /* sync: nobody waits for a group any more */
    int evaluation_moves;      /* an evaluation takes that many, and 1 */
    int moves_left;            /* of the one under way */
    uint64_t seed, draws;
    tale tale;
} game;

static game the_game;

static uint32_t draw(game *g, uint32_t below)
{
    uint32_t word[4];
    coh_rng_words(coh_rng_key_of(g->seed, 99), 0, g->draws++, 0, word);
    return word[0] % below;
}

static game *begin(const coh_registrar_rules *rules, const coh_progress *from,
                   uint64_t seed)
{
    const coh_progress zero = { 0 };
    coh_err err = COH_ERR_INIT;
    game *g = &the_game;

    memset(g, 0, sizeof *g);
    g->rules = *rules;
    g->seed = seed;
    ck_assert_int_eq(coh_registrar_new(rules, from == NULL ? &zero : from,
                                       &g->registrar, &err),
                     COH_OK);
    return g;
}

static void report(game *g, int group, int64_t kind, coh_status status,
                   bool stop)
{
    const coh_report r = {
        .kind = kind, .group = group, .status = status, .stop = stop
    };
    coh_registrar_report(g->registrar, &r);
    g->is_released = g->is_released || status < 0;
}

/* A plain twin of pace.h, for what happens in a game. */
static int64_t slowest(const game *g, bool only_busy)
{
    int64_t least = INT64_MAX;
    for (int i = 0; i < g->rules.groups; i++) {
        if (g->is_in[i] && g->place[i] < least &&
            (!only_busy || g->nheld[i] > 0))
            least = g->place[i];
    }
    return least;
}

static void join(game *g, int group)
{
    const int64_t least = slowest(g, false);
    if (least != INT64_MAX && least > g->place[group])
        g->place[group] = least;
    g->is_in[group] = true;
}

/* The oldest grant that a group holds begins, if it holds one. */
static void begin_oldest(game *g, int group)
{
    const coh_grant *grant = &g->held[group][0];

    if (g->nheld[group] == 0)
        return;
    if (grant->kind != COH_GRANT_TRAIN) {
        g->is_in[group] = false;
        g->moves_left = g->evaluation_moves;
        return;
    }
    g->begun[group] = grant->step + 1;
    if (g->is_in[group]) {
        /* Who holds nothing, and is not given more, is out of the race; which
         * of the two cannot be told here: the lead is at least this. */
        const int64_t lead = g->place[group] - slowest(g, true);
        g->lead = lead > g->lead ? lead : g->lead;
    }
}

/* Sync: a step that exchanges ends when all who take it have pushed. */
static bool can_end(const game *g, const coh_grant *grant)
{
    if (g->rules.policy != COH_POLICY_SYNC || g->is_released ||
        !grant->exchange)
        return true;
    for (int i = 0; i < grant->groups; i++) {
        if (g->begun[i] <= grant->step)
            return false;
    }
    return true;
}

static int outstanding(const game *g)
{
    int sum = 0;
    for (int i = 0; i < g->rules.groups; i++)
        sum += g->nheld[i];
    return sum;
}

static void hear_train(game *g, const coh_grant *grant)
{
    const coh_registrar_rules *rules = &g->rules;
    tale *t = &g->tale;

    ck_assert(grant->count > 0 || rules->policy == COH_POLICY_SYNC);
    ck_assert_int_le(grant->count, rules->step_samples);
    ck_assert_int_ge(grant->first, 0);
    ck_assert_int_le(grant->first + grant->count, rules->epoch_samples);
    const int64_t base = grant->epoch * rules->epoch_samples;
    for (int64_t i = 0; i < grant->count; i++)
        t->used[base + grant->first + i]++;
    t->train[t->ntrain++] = *grant;
    t->saved_after_last_train = false;
}

/* Sync: who saves, evaluates or ends, has sent what it did. */
static void expect_together(const game *g)
{
    for (int i = 0; i < g->rules.groups && !g->is_released; i++)
        ck_assert(!g->is_apart[i]);
}

static void hear(game *g, int group, const coh_grant *grant)
{
    tale *t = &g->tale;

    ck_assert(!coh_registrar_must_save(g->registrar));
    ck_assert(g->is_ready[group] && !g->is_stopped[group]);
    if (grant->kind == COH_GRANT_TRAIN)
        g->is_apart[group] =
            g->rules.policy == COH_POLICY_SYNC && !grant->exchange;
    else if (grant->kind == COH_GRANT_EVALUATE) /* others have it to come */
        ck_assert(!g->is_apart[group] || g->is_released);
    else
        expect_together(g);
    if (grant->kind == COH_GRANT_STOP) {
        ck_assert_int_eq(outstanding(g), 0);
        g->is_stopped[group] = true;
        t->end = (coh_status)grant->status;
        return;
    }
    ck_assert_int_eq(t->ntest, 0); /* a test is the last grant */
    if (grant->kind == COH_GRANT_TRAIN)
        hear_train(g, grant);
    t->nevaluate += grant->kind == COH_GRANT_EVALUATE;
    t->ntest += grant->kind == COH_GRANT_TEST;
    if (grant->kind != COH_GRANT_TRAIN)
        ck_assert_int_eq(group, 0);
    g->held[group][g->nheld[group]++] = *grant;
    ck_assert_int_le(g->nheld[group], g->rules.ahead);
    if (g->nheld[group] == 1)
        begin_oldest(g, group);
}

/* The host's part: save if it must, then grant what it may. */
static void serve(game *g)
{
    tale *t = &g->tale;
    coh_grant grant;

    if (coh_registrar_must_save(g->registrar)) {
        expect_together(g);
        for (int i = 0; i < g->rules.groups; i++) {
            ck_assert(!coh_registrar_next(g->registrar, i, &grant));
            ck_assert_int_eq(g->nheld[i], 0);
        }
        t->save_samples[t->nsaves++] =
            coh_registrar_progress(g->registrar).samples;
        t->saved_after_last_train = true;
        coh_registrar_saved(g->registrar);
    }
    for (int i = 0; i < g->rules.groups; i++) {
        while (coh_registrar_next(g->registrar, i, &grant))
            hear(g, i, &grant);
    }
}

/* One group does one thing: gets ready, or finishes its oldest grant. */
static void move(game *g, int group, coh_status status, bool stop)
{
    if (!g->is_ready[group]) {
        g->is_ready[group] = true;
        report(g, group, COH_REPORT_READY, COH_OK, false);
        join(g, group);
        return;
    }
    report(g, group, COH_REPORT_ALIVE, COH_OK, false);
    if (g->nheld[group] == 0)
        return;
    const coh_grant done = g->held[group][0];
    if (done.kind == COH_GRANT_TRAIN && status == COH_OK && !can_end(g, &done))
        return;
    if (done.kind != COH_GRANT_TRAIN && g->moves_left-- > 0)
        return;
    g->nheld[group]--;
    for (int i = 0; i < g->nheld[group]; i++)
        g->held[group][i] = g->held[group][i + 1];
    if (status != COH_OK)
        g->nheld[group] = 0;
    report(g, group, done.kind, status, stop);
    if (done.kind == COH_GRANT_TRAIN)
        g->place[group]++;
    else
        join(g, group);
    begin_oldest(g, group);
}

/* Group i is drawn with a weight of its own, so that some are far slower. */
static int draw_group(game *g)
{
    for (;;) {
        const int i = (int)draw(g, (uint32_t)g->rules.groups);
        if (draw(g, 1 + (uint32_t)i * 4) == 0)
            return i;
    }
}

/* Play to the end, or until the moves run out; the end must come. */
static void play(game *g, int64_t moves)
{
    while (!coh_registrar_is_done(g->registrar) && moves-- > 0) {
        move(g, draw_group(g), COH_OK, false);
        serve(g);
    }
    bool all = true;
    for (int i = 0; i < g->rules.groups; i++)
        all = all && g->is_stopped[i];
    ck_assert_int_eq(coh_registrar_is_done(g->registrar), all);
}

static void play_out(game *g)
{
    play(g, 200000);
    ck_assert(coh_registrar_is_done(g->registrar));
    ck_assert_int_eq(outstanding(g), 0);
    coh_registrar_destroy(&g->registrar);
    ck_assert_ptr_null(g->registrar);
}

/* How many samples were granted, none of them twice. */
static int64_t used_once(const game *g)
{
    int64_t used = 0, twice = 0;

    for (int64_t i = 0; i < USED_MAX; i++) {
        used += g->tale.used[i];
        twice += g->tale.used[i] > 1;
    }
    ck_assert_int_eq(twice, 0);
    return used;
}

static coh_registrar_rules usual(int groups)
{
    return (coh_registrar_rules){ .groups = groups,
                                  .ahead = AHEAD,
                                  .epoch_samples = 1003,
                                  .step_samples = 17,
                                  .total_samples = 3 * 1003,
                                  .evaluate_every = 500,
                                  .save_every = 700 };
}

START_TEST(every_sample_is_granted_once_an_epoch)
{
    const coh_registrar_rules rules = usual(_i);
    game *g = begin(&rules, NULL, (uint64_t)_i);

    play_out(g);
    ck_assert_int_eq(used_once(g), rules.total_samples);
    ck_assert_int_eq(g->tale.used[rules.total_samples - 1], 1);
    ck_assert_int_eq(g->tale.ntrain, 3 * 59); /* ceil(1003 / 17) = 59 */
    ck_assert_int_eq(g->tale.end, COH_OK);
}
END_TEST

START_TEST(steps_epochs_and_clocks_count_up)
{
    const coh_registrar_rules rules = usual(3);
    game *g = begin(&rules, NULL, 5);
    int64_t clock = 0;

    play_out(g);
    for (int64_t i = 0; i < g->tale.ntrain; i++) {
        const coh_grant *grant = &g->tale.train[i];
        ck_assert_int_eq(grant->step, i);
        ck_assert_int_eq(grant->clock, clock);
        ck_assert_int_eq(grant->epoch, clock / 1003);
        ck_assert_int_eq(grant->first, clock % 1003);
        clock += grant->count;
    }
}
END_TEST

/* 3,009 samples: saves at the first quiet moment after 700, 1400, 2100, 2800,
 * and at the end; five evaluations at 500 ... 2,500, and one after 3,000. */
START_TEST(saves_and_evaluations_come_when_due)
{
    const coh_registrar_rules rules = usual(_i);
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    ck_assert_int_eq(g->tale.nsaves, 5);
    for (int i = 0; i < 4; i++) {
        ck_assert_int_ge(g->tale.save_samples[i], 700 * (i + 1));
        ck_assert_int_lt(g->tale.save_samples[i], 700 * (i + 1) + 17);
    }
    ck_assert_int_eq(g->tale.save_samples[4], 3009);
    ck_assert_int_eq(g->tale.nevaluate, 6);
    ck_assert_int_eq(g->tale.ntest, 1);
    ck_assert(g->tale.saved_after_last_train);
}
END_TEST

static bool is_saved_at(const tale *t, int64_t samples)
{
    for (int64_t i = 0; i < t->nsaves; i++) {
        if (t->save_samples[i] == samples)
            return true;
    }
    return false;
}

/* As is the very first: a run that is resumed from the save does the same. */
START_TEST(the_first_step_after_a_save_is_on_the_newest_weights)
{
    const coh_registrar_rules rules = usual(1);
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    for (int64_t i = 0; i < g->tale.ntrain; i++)
        ck_assert_int_eq(g->tale.train[i].fresh,
                         i == 0 ||
                             is_saved_at(&g->tale, g->tale.train[i].clock));
}
END_TEST

START_TEST(an_evaluation_that_the_test_covers_is_left_out_at_the_end)
{
    coh_registrar_rules rules = usual(2);
    rules.test_covers = true;
    rules.evaluate_every = 1003;
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    ck_assert_int_eq(g->tale.nevaluate, 2);
    ck_assert_int_eq(g->tale.ntest, 1);
}
END_TEST

START_TEST(without_intervals_there_is_one_save_and_one_test)
{
    coh_registrar_rules rules = usual(2);
    rules.evaluate_every = rules.save_every = 0;
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    ck_assert_int_eq(g->tale.nsaves, 1);
    ck_assert_int_eq(g->tale.nevaluate, 0);
    ck_assert_int_eq(g->tale.ntest, 1);
}
END_TEST

START_TEST(a_run_of_so_many_steps_ends_after_them)
{
    coh_registrar_rules rules = usual(4);
    rules.total_steps = 61;
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    ck_assert_int_eq(g->tale.ntrain, 61);
    ck_assert(g->tale.saved_after_last_train);
}
END_TEST

START_TEST(a_step_larger_than_the_epoch_takes_the_epoch)
{
    coh_registrar_rules rules = usual(2);
    rules.step_samples = 5000;
    game *g = begin(&rules, NULL, 7);

    play_out(g);
    ck_assert_int_eq(g->tale.ntrain, 3);
    ck_assert_int_eq(used_once(g), rules.total_samples);
}
END_TEST

START_TEST(a_group_gets_nothing_before_it_is_ready)
{
    const coh_registrar_rules rules = usual(2);
    game *g = begin(&rules, NULL, 1);
    coh_grant grant;

    report(g, 1, COH_REPORT_ALIVE, COH_OK, false);
    ck_assert(!coh_registrar_next(g->registrar, 0, &grant));
    ck_assert(!coh_registrar_next(g->registrar, 1, &grant));
    report(g, 1, COH_REPORT_READY, COH_OK, false);
    ck_assert(!coh_registrar_next(g->registrar, 0, &grant));
    ck_assert(coh_registrar_next(g->registrar, 1, &grant));
    coh_registrar_destroy(&g->registrar);
}
END_TEST

/* A signal after any number of moves: what was granted is done, saved, and
 * nobody tests. */
START_TEST(a_stop_saves_and_ends_without_a_test)
{
    const coh_registrar_rules rules = usual(1 + _i % FEW);
    game *g = begin(&rules, NULL, (uint64_t)_i);

    play(g, 10 + 4 * _i); /* the shortest run takes 177 */
    coh_registrar_stop(g->registrar, COH_STOPPED);
    const int64_t granted = g->tale.ntrain;
    const int64_t tests = g->tale.ntest;
    play_out(g);
    ck_assert_int_eq(g->tale.ntrain, granted);
    ck_assert_int_eq(g->tale.ntest, tests);
    ck_assert(granted == 0 || g->tale.saved_after_last_train);
    ck_assert_int_eq(g->tale.end, COH_STOPPED);
}
END_TEST

static void play_until_held(game *g, int group)
{
    for (int i = 0; g->nheld[group] == 0; i++) {
        ck_assert_int_lt(i, 10000);
        move(g, draw_group(g), COH_OK, false);
        serve(g);
    }
}

START_TEST(a_signal_on_a_worker_stops_all)
{
    const coh_registrar_rules rules = usual(3);
    game *g = begin(&rules, NULL, 4);

    play(g, 60);
    play_until_held(g, 1);
    move(g, 1, COH_OK, true);
    serve(g);
    play_out(g);
    ck_assert_int_eq(g->tale.end, COH_STOPPED);
    ck_assert(g->tale.saved_after_last_train);
}
END_TEST

/* Let `group` fail in what it is doing. */
static void fail_in(game *g, int group, coh_status status)
{
    play_until_held(g, group);
    move(g, group, status, false);
    serve(g);
}

START_TEST(a_failure_ends_the_run_and_nothing_is_saved_after_it)
{
    const coh_registrar_rules rules = usual(1 + _i % FEW);
    game *g = begin(&rules, NULL, (uint64_t)_i);

    play(g, 20 + 3 * _i);
    fail_in(g, _i % rules.groups, COH_E_DIVERGED);
    const int64_t saves = g->tale.nsaves, granted = g->tale.ntrain;
    play_out(g);
    ck_assert_int_eq(g->tale.nsaves, saves);
    ck_assert_int_eq(g->tale.ntrain, granted);
    ck_assert_int_eq(g->tale.end, COH_E_DIVERGED);
}
END_TEST

START_TEST(a_failure_after_a_signal_is_the_outcome)
{
    const coh_registrar_rules rules = usual(3);
    game *g = begin(&rules, NULL, 9);

    play(g, 80);
    play_until_held(g, 0);
    coh_registrar_stop(g->registrar, COH_STOPPED);
    const int64_t saves = g->tale.nsaves;
    fail_in(g, 0, COH_E_DATA);
    coh_registrar_stop(g->registrar, COH_STOPPED);
    coh_registrar_stop(g->registrar, COH_E_DIVERGED);
    play_out(g);
    ck_assert_int_eq(g->tale.nsaves, saves);
    ck_assert_int_eq(g->tale.end, COH_E_DATA);
}
END_TEST

START_TEST(a_failure_in_the_test_ends_the_run_with_it)
{
    const coh_registrar_rules rules = usual(3);
    game *g = begin(&rules, NULL, 9);

    while (g->tale.ntest == 0) {
        move(g, draw_group(g), COH_OK, false);
        serve(g);
    }
    move(g, 0, COH_E_DATA, false);
    serve(g);
    play_out(g);
    ck_assert_int_eq(g->tale.end, COH_E_DATA);
}
END_TEST

START_TEST(a_signal_in_the_test_changes_nothing)
{
    const coh_registrar_rules rules = usual(3);
    game *g = begin(&rules, NULL, 9);

    while (g->tale.ntest == 0) {
        move(g, draw_group(g), COH_OK, false);
        serve(g);
    }
    move(g, 0, COH_OK, true);
    serve(g);
    play_out(g);
    ck_assert_int_eq(g->tale.end, COH_OK);
}
END_TEST

/* A run that is cut at a save and one that is not grant the same pieces; where
 * it was cut the weights are fresh. */
START_TEST(a_resumed_run_goes_on_as_the_unbroken_one)
{
    const coh_registrar_rules rules = usual(1 + _i % FEW);
    static tale whole;

    play_out(begin(&rules, NULL, 1));
    whole = the_game.tale;

    game *g = begin(&rules, NULL, 2);
    play(g, 30 + 11 * _i);
    coh_registrar_stop(g->registrar, COH_STOPPED);
    play(g, 200000);
    const int64_t first = g->tale.ntrain;
    const coh_progress at = coh_registrar_progress(g->registrar);
    coh_registrar_destroy(&g->registrar);

    ck_assert_int_eq(at.steps, first);
    play_out(begin(&rules, &at, 3));
    ck_assert_int_eq(first + g->tale.ntrain, whole.ntrain);
    for (int64_t i = 0; i < g->tale.ntrain; i++) {
        g->tale.train[i].fresh = whole.train[first + i].fresh = 0;
        ck_assert_mem_eq(&g->tale.train[i], &whole.train[first + i],
                         sizeof whole.train[0]);
    }
}
END_TEST

/* 8 steps over the edge of what 31 and 32 bits count; samples and epochs pass
 * theirs in the same steps. */
START_TEST(counters_go_on_beyond_31_and_32_bits)
{
    const int64_t edge = (int64_t)1 << (31 + _i);
    const coh_registrar_rules rules = { .groups = 2,
                                        .policy = COH_POLICY_BOUNDED,
                                        .bound = 4,
                                        .ahead = 1,
                                        .epoch_samples = 40,
                                        .step_samples = 20,
                                        .total_samples = INT64_MAX,
                                        .total_steps = edge + 4 };
    const coh_progress from = { edge - 4, edge - 80, edge - 2, 0 };
    coh_registrar *registrar = NULL;
    coh_grant grant;

    ck_assert_int_eq(coh_registrar_new(&rules, &from, &registrar, NULL),
                     COH_OK);
    for (int g = 0; g < 2; g++) {
        const coh_report ready = { .kind = COH_REPORT_READY, .group = g };
        coh_registrar_report(registrar, &ready);
    }
    for (int i = 0; i < 8; i++) {
        ck_assert(coh_registrar_next(registrar, i % 2, &grant));
        ck_assert_int_eq(grant.kind, COH_GRANT_TRAIN);
        ck_assert_int_eq(grant.step, edge - 4 + i);
        ck_assert_int_eq(grant.clock, edge - 80 + 20 * i);
        ck_assert_int_eq(grant.epoch, edge - 2 + i / 2);
        ck_assert_int_eq(grant.first, i % 2 * 20);
        ck_assert_int_eq(grant.count, 20);
        const coh_report done = { .kind = COH_GRANT_TRAIN,
                                  .group = i % 2,
                                  .step = grant.step };
        coh_registrar_report(registrar, &done);
    }
    ck_assert(coh_registrar_must_save(registrar)); /* no step is left */
    const coh_progress at = coh_registrar_progress(registrar);
    ck_assert_int_eq(at.steps, edge + 4);
    ck_assert_int_eq(at.samples, edge + 80);
    ck_assert_int_eq(at.epoch, edge + 2);
    coh_registrar_destroy(&registrar);
}
END_TEST

START_TEST(a_finished_run_that_is_resumed_tests_and_ends)
{
    const coh_registrar_rules rules = usual(2);
    const coh_progress at = { 177, 3009, 3, 0 };
    game *g = begin(&rules, &at, 3);

    play_out(g);
    ck_assert_int_eq(g->tale.ntrain, 0);
    ck_assert_int_eq(g->tale.ntest, 1);
    ck_assert_int_eq(g->tale.end, COH_OK);
}
END_TEST

START_TEST(a_training_set_that_shrank_is_refused)
{
    const coh_registrar_rules rules = usual(1);
    const coh_progress at = { 100, 1700, 1, 1003 };
    coh_registrar *none = NULL;
    coh_err err = COH_ERR_INIT;

    ck_assert_int_eq(coh_registrar_new(&rules, &at, &none, &err), COH_E_CONFIG);
    ck_assert_ptr_null(none);
    ck_assert_ptr_nonnull(strstr(err.text, "1003"));
}
END_TEST

/* Any rules, any speeds, with and without a signal or a failure: it ends. */
START_TEST(a_run_of_any_shape_ends)
{
    game *g = &the_game;
    g->seed = (uint64_t)_i;
    g->draws = 0;
    coh_registrar_rules rules = {
        .groups = 1 + (int)draw(g, FEW),
        .policy = (coh_policy_kind)draw(g, 3),
        .bound = draw(g, 4),
        .ahead = 1 + (int)draw(g, 4),
        .epoch_samples = 1 + draw(g, 500),
        .step_samples = 1 + draw(g, 40),
        .total_steps = draw(g, 2) * draw(g, 200),
        .evaluate_every = draw(g, 2) * (1 + draw(g, 300)),
        .save_every = draw(g, 2) * (1 + draw(g, 300)),
        .test_covers = draw(g, 2) == 0,
    };
    rules.total_samples = draw(g, 2000);
    rules.every = draw(g, 3) * draw(g, 7);
    const int64_t event = 1 + draw(g, 400);
    const coh_status what[] = { COH_OK, COH_STOPPED, COH_E_DATA };
    const coh_status status = what[draw(g, 3)];

    g = begin(&rules, NULL, (uint64_t)_i);
    play(g, event);
    if (status != COH_OK && !coh_registrar_is_done(g->registrar))
        coh_registrar_stop(g->registrar, status);
    g->is_released = g->is_released || status < 0;
    play_out(g);
    int64_t granted = 0;
    for (int64_t i = 0; i < g->tale.ntrain; i++)
        granted += g->tale.train[i].count;
    ck_assert_int_eq(used_once(g), granted);
}
END_TEST

/* --- bounded --- */

static const int group_counts[] = { 2, 4, 8 };

static coh_registrar_rules bounded(int groups, int64_t bound)
{
    coh_registrar_rules rules = usual(groups);

    rules.policy = COH_POLICY_BOUNDED;
    rules.bound = bound;
    return rules;
}

/* Groups up to 29 times slower than others; leases run out, groups evaluate,
 * are late, and end in some order. Whatever happens, nobody leads by more; and
 * the bound is reached. */
START_TEST(under_bounded_4_the_greatest_lead_is_4)
{
    for (int seed = 0; seed < 40; seed++) {
        const coh_registrar_rules rules = bounded(group_counts[_i], 4);
        game *g = begin(&rules, NULL, (uint64_t)seed);

        g->evaluation_moves = (seed % 4) * 50;
        play(g, 200000);
        ck_assert_int_eq(coh_registrar_greatest_lead(g->registrar), 4);
        ck_assert_int_eq(g->lead, 4);
        play_out(g);
        ck_assert_int_eq(used_once(g), rules.total_samples);
    }
}
END_TEST

START_TEST(no_bound_is_passed_with_any_read_ahead)
{
    coh_registrar_rules rules = bounded(group_counts[_i % 3], _i / 3 % 6);
    rules.ahead = 1 + _i / 18;
    game *g = begin(&rules, NULL, (uint64_t)_i);

    g->evaluation_moves = _i % 7 * 10;
    play(g, 200000);
    ck_assert_int_le(coh_registrar_greatest_lead(g->registrar), rules.bound);
    ck_assert_int_le(g->lead, rules.bound);
    play_out(g);
    ck_assert_int_eq(used_once(g), rules.total_samples);
}
END_TEST

START_TEST(without_a_bound_a_fast_group_runs_away)
{
    const coh_registrar_rules rules = usual(2);
    game *g = begin(&rules, NULL, 3);

    play(g, 200000);
    ck_assert_int_gt(coh_registrar_greatest_lead(g->registrar), 4);
    play_out(g);
}
END_TEST

/* Let `group` do `moves` things, alone. */
static void play_alone(game *g, int group, int moves)
{
    for (int i = 0; i < moves; i++) {
        move(g, group, COH_OK, false);
        serve(g);
    }
}

START_TEST(a_group_that_is_not_ready_holds_nobody_up)
{
    const coh_registrar_rules rules = bounded(2, 4);
    game *g = begin(&rules, NULL, 3);

    play_alone(g, 1, 21); /* ready, and 20 steps */
    ck_assert_int_eq(g->place[1], 20);
    play_alone(g, 0, 1);
    ck_assert_int_eq(g->place[0], 20); /* level, not 20 behind */
    play_alone(g, 1, 100);
    ck_assert_int_eq(g->place[1], 25);
    coh_registrar_destroy(&g->registrar);
}
END_TEST

/* Group 1 goes on while group 0 evaluates, and is held again after it. */
START_TEST(a_group_that_evaluates_holds_nobody_up)
{
    coh_registrar_rules rules = bounded(2, 4);
    rules.evaluate_every = 1600;
    rules.save_every = 0;
    game *g = begin(&rules, NULL, 3);

    g->evaluation_moves = 1000;
    play_alone(g, 0, 1);
    while (g->held[0][0].kind != COH_GRANT_EVALUATE) {
        play_alone(g, 1, 1);
        play_alone(g, 0, 1);
    }
    const int64_t before = g->place[1];
    play_alone(g, 1, 50);
    ck_assert_int_eq(g->place[1], before + 50);
    g->moves_left = 0;
    g->evaluation_moves = 0;
    play_alone(g, 0, 1);
    ck_assert_int_eq(g->place[0], before + 50);
    play_alone(g, 1, 20);
    ck_assert_int_eq(g->place[1], before + 55);
    play_out(g);
}
END_TEST

/* --- sync --- */

/* A group waits in a step for all that take it; so any piece that some get and
 * others never do would be seen as a game that does not end. */
START_TEST(under_sync_all_groups_share_the_pieces_of_one_big_group)
{
    coh_registrar_rules rules = usual(_i), big = usual(1);
    rules.policy = COH_POLICY_SYNC;
    big.step_samples = rules.step_samples * _i;
    static tale whole;

    play_out(begin(&big, NULL, 1));
    whole = the_game.tale;
    game *g = begin(&rules, NULL, (uint64_t)_i);
    g->evaluation_moves = 20;
    play_out(g);
    ck_assert_int_eq(used_once(g), rules.total_samples);
    for (int64_t i = 0; i < g->tale.ntrain; i++) {
        const coh_grant *share = &g->tale.train[i];
        const coh_grant *piece = &whole.train[share->step];
        ck_assert_int_eq(share->epoch, piece->epoch);
        ck_assert_int_eq(share->clock, piece->clock);
        ck_assert_int_ge(share->first, piece->first);
        ck_assert_int_le(share->first + share->count,
                         piece->first + piece->count);
        ck_assert_int_eq(share->groups, _i);
    }
    ck_assert_int_eq(g->tale.ntrain, whole.ntrain * _i);
    ck_assert_int_eq(g->tale.nevaluate, whole.nevaluate);
    ck_assert_int_eq(g->tale.nsaves, whole.nsaves);
    for (int64_t i = 0; i < whole.nsaves; i++)
        ck_assert_int_eq(g->tale.save_samples[i], whole.save_samples[i]);
}
END_TEST

/* After saves and evaluations, which bring them to group 0. */
START_TEST(under_sync_all_groups_are_on_the_newest_weights_together)
{
    coh_registrar_rules rules = usual(_i);
    rules.policy = COH_POLICY_SYNC;
    game *g = begin(&rules, NULL, (uint64_t)_i);
    int64_t fresh[4000] = { 0 }, steps = 0;

    play_out(g);
    for (int64_t i = 0; i < g->tale.ntrain; i++)
        fresh[g->tale.train[i].step] += g->tale.train[i].fresh;
    for (int64_t step = 0; step < g->tale.ntrain / _i; step++) {
        ck_assert(fresh[step] == 0 || fresh[step] == _i);
        steps += fresh[step] > 0;
    }
    ck_assert_int_gt(steps, g->tale.nsaves);
}
END_TEST

/* Each third piece and the last one, in every group alike; evaluations and saves
 * wait for those. */
START_TEST(under_sync_all_groups_exchange_in_the_same_steps)
{
    coh_registrar_rules rules = usual(_i);
    rules.policy = COH_POLICY_SYNC;
    rules.every = 3;
    game *g = begin(&rules, NULL, (uint64_t)_i);

    g->evaluation_moves = 20;
    play_out(g);
    ck_assert_int_eq(used_once(g), rules.total_samples);
    ck_assert_int_gt(g->tale.nsaves, 3);
    ck_assert_int_gt(g->tale.nevaluate, 3);
    const int64_t last = g->tale.train[g->tale.ntrain - 1].step;
    for (int64_t i = 0; i < g->tale.ntrain; i++) {
        const coh_grant *it = &g->tale.train[i];
        ck_assert_int_eq(it->exchange != 0,
                         it->step % 3 == 2 || it->step == last);
    }
}
END_TEST

/* The steps that some have made by then are not lost, and it does not wait for a
 * step that would have exchanged anyhow. */
START_TEST(under_sync_a_stop_makes_the_next_step_exchange)
{
    coh_registrar_rules rules = usual(4);
    rules.policy = COH_POLICY_SYNC;
    rules.every = 50;
    game *g = begin(&rules, NULL, (uint64_t)_i);

    play(g, 40 + 7 * _i);
    const int64_t before = coh_registrar_progress(g->registrar).steps;
    const int64_t nevaluate = g->tale.nevaluate;
    coh_registrar_stop(g->registrar, COH_STOPPED);
    play_out(g);
    ck_assert_int_eq(g->tale.end, COH_STOPPED);
    ck_assert_int_eq(g->tale.nevaluate, nevaluate);
    ck_assert_int_eq(used_once(g), g->tale.save_samples[g->tale.nsaves - 1]);
    const coh_grant *last = &g->tale.train[g->tale.ntrain - 1];
    ck_assert(last->exchange);
    ck_assert_int_le(last->step, before);
}
END_TEST

START_TEST(under_sync_a_stop_lets_all_finish_the_step_that_one_began)
{
    coh_registrar_rules rules = usual(4);
    rules.policy = COH_POLICY_SYNC;
    game *g = begin(&rules, NULL, (uint64_t)_i);

    play(g, 40 + 7 * _i);
    coh_registrar_stop(g->registrar, COH_STOPPED);
    play_out(g);
    ck_assert_int_eq(g->tale.end, COH_STOPPED);
    ck_assert_int_eq(used_once(g), g->tale.save_samples[g->tale.nsaves - 1]);
}
END_TEST

static Suite *registrar_suite(void)
{
    Suite *suite = suite_create("registrar");

    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, every_sample_is_granted_once_an_epoch, 1,
                        FEW + 1);
    tcase_add_test(core, steps_epochs_and_clocks_count_up);
    tcase_add_loop_test(core, saves_and_evaluations_come_when_due, 1, FEW + 1);
    tcase_add_test(core, the_first_step_after_a_save_is_on_the_newest_weights);
    tcase_add_test(core,
                   an_evaluation_that_the_test_covers_is_left_out_at_the_end);
    tcase_add_test(core, without_intervals_there_is_one_save_and_one_test);
    tcase_add_test(core, a_run_of_so_many_steps_ends_after_them);
    tcase_add_test(core, a_step_larger_than_the_epoch_takes_the_epoch);
    tcase_add_test(core, a_group_gets_nothing_before_it_is_ready);
    suite_add_tcase(suite, core);

    TCase *pace = tcase_create("bounded");
    tcase_add_loop_test(pace, under_bounded_4_the_greatest_lead_is_4, 0, 3);
    tcase_add_loop_test(pace, no_bound_is_passed_with_any_read_ahead, 0, 90);
    tcase_add_test(pace, without_a_bound_a_fast_group_runs_away);
    tcase_add_test(pace, a_group_that_is_not_ready_holds_nobody_up);
    tcase_add_test(pace, a_group_that_evaluates_holds_nobody_up);
    suite_add_tcase(suite, pace);

    TCase *sync = tcase_create("sync");
    tcase_add_loop_test(
        sync, under_sync_all_groups_share_the_pieces_of_one_big_group, 1, 9);
    tcase_add_loop_test(
        sync, under_sync_all_groups_are_on_the_newest_weights_together, 1, 9);
    tcase_add_loop_test(
        sync, under_sync_a_stop_lets_all_finish_the_step_that_one_began, 0, 30);
    tcase_add_loop_test(sync, under_sync_all_groups_exchange_in_the_same_steps,
                        2, FEW + 1);
    tcase_add_loop_test(sync, under_sync_a_stop_makes_the_next_step_exchange, 0,
                        30);
    suite_add_tcase(suite, sync);

    TCase *ends = tcase_create("ends");
    tcase_add_loop_test(ends, a_stop_saves_and_ends_without_a_test, 0, 40);
    tcase_add_test(ends, a_signal_on_a_worker_stops_all);
    tcase_add_loop_test(
        ends, a_failure_ends_the_run_and_nothing_is_saved_after_it, 0, 20);
    tcase_add_test(ends, a_failure_after_a_signal_is_the_outcome);
    tcase_add_test(ends, a_failure_in_the_test_ends_the_run_with_it);
    tcase_add_test(ends, a_signal_in_the_test_changes_nothing);
    tcase_add_loop_test(ends, a_run_of_any_shape_ends, 0, 200);
    suite_add_tcase(suite, ends);

    TCase *resume = tcase_create("resume");
    tcase_add_loop_test(resume, a_resumed_run_goes_on_as_the_unbroken_one, 0,
                        20);
    tcase_add_loop_test(resume, counters_go_on_beyond_31_and_32_bits, 0, 2);
    tcase_add_test(resume, a_finished_run_that_is_resumed_tests_and_ends);
    tcase_add_test(resume, a_training_set_that_shrank_is_refused);
    suite_add_tcase(suite, resume);
    return suite;
}

CHECK_MAIN(registrar_suite)
