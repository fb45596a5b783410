/* mpi_exchange.c - the exchange of one group without servers
 * (src/worker/exchange.h): what it makes of the weights is what a plain loop
 * makes of them. Any size >= 1. */
#include "worker/exchange.h"

#include <math.h>
#include <stdlib.h>

#include "common/memory.h"
#include "common/mpi_check.h"
#include "support/check_run.h"
#include "support/config_text.h"

/* Three blocks and a bit. */
enum { COUNT = 3 * 16384 + 77, STEPS = 12 };

static int rank, size;
static coh_err err;

static void setup(void)
{
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
    err = COH_ERR_INIT;
}

/* --- A loss with a gradient for each member and weight --- */

static double target(int member, int64_t i)
{
    return (double)((i * 7 + member * 13) % 29) / 29;
}

static double weight_of(int member)
{
    return 1 + member;
}

/* Of one parameter: a sum over the samples of a member. */
static double slope(int member, int64_t i, double w)
{
    return weight_of(member) * (double)(1 + i % 3) * (w - target(member, i));
}

/* --- The plain way --- */

static double mean_slope(int64_t i, double w)
{
    double sum = 0, weight = 0;

    for (int m = 0; m < size; m++) {
        sum += slope(m, i, w);
        weight += weight_of(m);
    }
    return sum / weight;
}

/* w <- w - rate min(1, most / |g|) g, with g of the weights `lag` steps ago. */
static void plain(double rate, double most, int lag, double *w)
{
    double *from = calloc(COUNT, sizeof *from), *g = calloc(COUNT, sizeof *g);

    for (int step = 0; step < STEPS; step++) {
        double squares = 0;
        for (int64_t i = 0; i < COUNT; i++) {
            g[i] = mean_slope(i, lag > 0 ? from[i] : w[i]);
            squares += g[i] * g[i];
        }
        const double norm = sqrt(squares);
        const double factor = most > 0 && norm > most ? most / norm : 1;
        for (int64_t i = 0; i < COUNT; i++) {
            from[i] = w[i];
            w[i] -= rate * factor * g[i];
        }
    }
    free(from);
    free(g);
}

/* --- The exchange --- */

typedef struct group {
    coh_config *config;
    coh_plan plan;
    coh_roles roles;
    coh_schedule schedule;
    coh_statistics none;
    coh_shard *shard;
    coh_exchange *exchange;
    float *gradients[2];
} group;

static void make(group *self, const char *text)
{
    const coh_model model = { .parameters = COUNT, .trained = COUNT };

    self->config = config_of(text);
    const coh_rule rule = coh_rule_of(self->config);
    COH_ASSERT(coh_plan_make(self->config, &model, size, &self->plan, &err) ==
               COH_OK);
    coh_roles_init(&self->roles, MPI_COMM_WORLD, &self->plan,
                   (coh_collectives_kind)self->config->exchange.collectives);
    self->schedule = coh_schedule_of(self->config, 1000, 1);
    COH_ASSERT(coh_shard_new(&self->plan, -1, &rule, &self->none, &self->shard,
                             &err) == COH_OK);
    COH_ASSERT(coh_exchange_new(self->config, &self->plan, &self->roles,
                                &self->schedule, &self->none, self->shard,
                                coh_shard_values(self->shard), &self->exchange,
                                &err) == COH_OK);
    for (int i = 0; i < 2; i++)
        self->gradients[i] = coh_floats(COUNT);
}

static void fini(group *self)
{
    coh_exchange_destroy(&self->exchange);
    coh_shard_destroy(&self->shard);
    coh_roles_fini(&self->roles);
    coh_plan_fini(&self->plan);
    coh_config_destroy(&self->config);
    for (int i = 0; i < 2; i++)
        free(self->gradients[i]);
}

/* As a step that is watched: long enough for sums of the one before to be made,
 * then last parameters first. */
static void calculate(group *self, float *gradient)
{
    const float *w = coh_shard_values(self->shard);
    enum { PARTS = 5, LOOKS = 1000 };

    for (int i = 0; i < LOOKS; i++)
        coh_exchange_need(self->exchange, COUNT);
    for (int part = PARTS - 1; part >= 0; part--) {
        const int64_t first = (int64_t)COUNT * part / PARTS;
        const int64_t end = (int64_t)COUNT * (part + 1) / PARTS;
        for (int64_t i = first; i < end; i++)
            gradient[i] =
                (float)slope(self->roles.mine.member, i, (double)w[i]);
        coh_exchange_have(self->exchange, first);
    }
}

static coh_status end_step(group *self)
{
    coh_exchange_part all;
    coh_step_sums sums = { 0 };
    double norm;
    coh_status status =
        coh_exchange_end(self->exchange, &sums, &all, &norm, &err);

    if (status == COH_OK)
        status = coh_exchange_settle(self->exchange, &err);
    return status;
}

static coh_status run(group *self)
{
    const bool lags = self->config->exchange.lag > 0;
    const coh_exchange_part mine = { .weight =
                                         weight_of(self->roles.mine.member) };
    coh_status status = COH_OK;

    for (int step = 0; step < STEPS && status == COH_OK; step++) {
        const coh_grant grant = { .kind = COH_GRANT_TRAIN,
                                  .step = step,
                                  .groups = 1 };
        float *gradient = self->gradients[lags ? step % 2 : 0];
        if (!lags)
            coh_exchange_begin(self->exchange, &grant, mine, gradient);
        calculate(self, gradient);
        if (!lags || step > 0)
            status = end_step(self);
        if (lags) {
            coh_exchange_take(self->exchange);
            coh_exchange_begin(self->exchange, &grant, mine, gradient);
        }
    }
    return lags && status == COH_OK ? end_step(self) : status;
}

/* --- Tests --- */

#define JOB                                                             \
    "optimizer: {rate: 0.1, momentum: 0, clip_norm: %g}\n"              \
    "exchange: {block: 65536, lag: %d, collectives: %s}\ndata: {kind: " \
    "synthetic}\n"                                                      \
    "model: {input: [1, 1, 1], layers: [dense: {units: 10}, "           \
    "softmax_cross_entropy]}\n"

static const double norms[] = { 0, 30 };

/* lag 0 and 1, without and with clipping, by MPI's collectives and our own. */
START_TEST(a_run_is_that_of_a_plain_loop)
{
    const int lag = _i % 2;
    const double most = norms[_i / 2 % 2];
    double *want = calloc(COUNT, sizeof *want), worst = 0;
    group it = { 0 };
    char text[512];

    snprintf(text, sizeof text, JOB, most, lag, _i < 4 ? "mpi" : "own");
    make(&it, text);
    const coh_status status = run(&it);
    plain(0.1, most, lag, want);
    const float *got = coh_shard_values(it.shard);
    for (int64_t i = 0; i < COUNT; i++)
        worst = fmax(worst, fabs((double)got[i] - want[i]));
    fini(&it);
    free(want);
    ck_assert_int_eq(status, COH_OK);
    ck_assert_double_le(worst, 2e-6);
}
END_TEST

static Suite *exchange_suite(void)
{
    Suite *suite = suite_create("exchange");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_loop_test(core, a_run_is_that_of_a_plain_loop, 0, 8);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MPI_MAIN(exchange_suite)
