/* bench_exchange.c - `cohort bench --exchange`: how fast gradients go to the
 * servers of this launch and weights come back, by their size. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/bench.h"
#include "cli/exchange_trial.h"
#include "cli/job.h"
#include "common/json.h"
#include "common/mpi_check.h"
#include "common/narrow.h"
#include "common/xfer.h"

static const int sizes_mib[] = { 4, 16, 64, 256, 512 };
enum { SIZES = sizeof sizes_mib / sizeof sizes_mib[0], MIB = 1 << 20 };

typedef struct exchange_bench {
    coh_job job;
    double memcpy_gb_s;
    coh_trial rows[SIZES];
    int nrows;
    int skipped_mib[SIZES]; /* too little memory */
    int nskipped;
    coh_trial step; /* of the network, with its computing */
    coh_dataset *data;
    coh_batch *batch;
} exchange_bench;

/* Both directions, all groups: each of them pushes and pulls everything. */
static double gb_per_s(const exchange_bench *self, const coh_trial *row)
{
    const double bytes = (double)row->parameters * sizeof(float);

    return 1e-9 * 2 * bytes * self->job.plan.groups / row->best_s;
}

static double memcpy_share(const exchange_bench *self, const coh_trial *row)
{
    return gb_per_s(self, row) / self->memcpy_gb_s;
}

/* What of a step of the network computing does not hide: 0 .. 1. */
static double exposed(const exchange_bench *self)
{
    return fmax(0, 1 - self->step.alone_s / self->step.median_s);
}

static int workers(const exchange_bench *self)
{
    return self->job.plan.groups * self->job.plan.group_size;
}

static const char *push_name(const exchange_bench *self)
{
    return coh_narrow_name((coh_wire_kind)self->job.config->exchange.push);
}

static const char *reply_name(const exchange_bench *self)
{
    return coh_narrow_name((coh_wire_kind)self->job.config->exchange.reply);
}

/* --- for people ---------------------------------------------------------- */

static void print(const exchange_bench *self)
{
    const coh_plan *plan = &self->job.plan;

    printf("%d group%s x %d worker%s + %d server%s, %d thread%s a rank\n",
           plan->groups, plan->groups == 1 ? "" : "s", plan->group_size,
           plan->group_size == 1 ? "" : "s", plan->servers,
           plan->servers == 1 ? "" : "s", self->job.threads,
           self->job.threads == 1 ? "" : "s");
    if (plan->servers > 0)
        printf("wire        gradients %s, weights %s; GB/s count 4 bytes a "
               "parameter\n",
               push_name(self), reply_name(self));
    printf("memcpy      %.1f GB/s, one thread of rank 0\n\n",
           self->memcpy_gb_s);
    printf("  %5s %6s %8s %8s %9s %10s %10s %7s %9s\n", "MiB", "ranks",
           "workers", "servers", "speakers", "block KiB", "step ms", "GB/s",
           "x memcpy");
    for (int i = 0; i < self->nrows; i++) {
        const coh_trial *row = &self->rows[i];
        printf("  %5" PRId64 " %6d %8d %8d %9d %10" PRId64
               " %10.2f %7.2f %9.3f\n",
               row->parameters * (int64_t)sizeof(float) / MIB, self->job.size,
               workers(self), plan->servers, row->speakers,
               row->block_count * (int64_t)sizeof(float) / 1024,
               1e3 * row->best_s, gb_per_s(self, row), memcpy_share(self, row));
    }
    for (int i = 0; i < self->nskipped; i++)
        printf("  %5d skipped: too little free memory\n", self->skipped_mib[i]);
    printf("\nstep of the network, %" PRId64 " samples a worker: %.2f ms "
           "computing alone, %.2f ms with the exchange: %.1f %% not hidden\n",
           plan->batch, 1e3 * self->step.alone_s, 1e3 * self->step.median_s,
           100 * exposed(self));
}

/* --- for scripts --------------------------------------------------------- */

static void write_row(coh_json *json, const exchange_bench *self,
                      const coh_trial *row)
{
    coh_json_open(json, NULL, '{');
    coh_json_int(json, "parameter_bytes",
                 row->parameters * (int64_t)sizeof(float));
    coh_json_int(json, "ranks", self->job.size);
    coh_json_int(json, "workers", workers(self));
    coh_json_int(json, "servers", self->job.plan.servers);
    coh_json_int(json, "speakers", row->speakers);
    coh_json_int(json, "blocks", row->nblocks);
    coh_json_int(json, "block_bytes",
                 row->block_count * (int64_t)sizeof(float));
    coh_json_int(json, "steps", row->steps);
    coh_json_real(json, "step_ms", 1e3 * row->best_s);
    coh_json_real(json, "step_median_ms", 1e3 * row->median_s);
    coh_json_real(json, "push_pull_gb_s", gb_per_s(self, row));
    coh_json_real(json, "memcpy_share", memcpy_share(self, row));
    coh_json_close(json, '{');
}

static void print_json(const exchange_bench *self)
{
    int64_t skipped[SIZES];
    coh_json json;

    for (int i = 0; i < self->nskipped; i++)
        skipped[i] = (int64_t)self->skipped_mib[i] * MIB;
    coh_json_init(&json, stdout, false);
    coh_json_open(&json, NULL, '{');
    coh_json_int(&json, "groups", self->job.plan.groups);
    coh_json_int(&json, "group_size", self->job.plan.group_size);
    coh_json_int(&json, "servers", self->job.plan.servers);
    coh_json_int(&json, "threads", self->job.threads);
    coh_json_text(&json, "push", push_name(self));
    coh_json_text(&json, "reply", reply_name(self));
    coh_json_real(&json, "memcpy_gb_s", self->memcpy_gb_s);
    coh_json_open(&json, "rows", '[');
    for (int i = 0; i < self->nrows; i++)
        write_row(&json, self, &self->rows[i]);
    coh_json_close(&json, '[');
    coh_json_ints(&json, "skipped_bytes", skipped, self->nskipped);
    coh_json_open(&json, "step", '{');
    coh_json_int(&json, "parameter_bytes",
                 self->step.parameters * (int64_t)sizeof(float));
    coh_json_int(&json, "batch", self->job.plan.batch);
    coh_json_int(&json, "steps", self->step.steps);
    coh_json_real(&json, "compute_ms", 1e3 * self->step.alone_s);
    coh_json_real(&json, "step_ms", 1e3 * self->step.median_s);
    coh_json_real(&json, "exposed", exposed(self));
    coh_json_close(&json, '{');
    coh_json_close(&json, '{');
}

/* --- measuring ----------------------------------------------------------- */

/* On rank 0, while the others sleep; raised if it is now faster. */
static coh_status measure_memcpy(exchange_bench *self, coh_err *err)
{
    coh_job *job = &self->job;
    coh_max ready = { 0, job->rank };
    double gb_s = 0;
    coh_status mine = COH_OK;

    if (job->rank == 0)
        mine = coh_peak_memcpy(&gb_s, err);
    coh_xfer *xfer = coh_xfer_begin_max(job->roles.world, &ready, 1);
    coh_status status = coh_xfer_finish(&xfer, job->config->exchange.timeout,
                                        "the memcpy of rank 0", err);
    if (status == COH_OK)
        status = coh_job_share(job, mine, &gb_s, sizeof gb_s, err);
    if (gb_s > self->memcpy_gb_s)
        self->memcpy_gb_s = gb_s;
    return status;
}

static coh_status measure_size(exchange_bench *self, int mib, coh_err *err)
{
    const int64_t count = (int64_t)mib * MIB / (int64_t)sizeof(float);
    const coh_model vector = { .parameters = count, .trained = count };
    const coh_trial_setup setup = { .config = self->job.config,
                                    .roles = &self->job.roles,
                                    .threads = self->job.threads,
                                    .model = &vector };
    bool fits = false;

    coh_status status = coh_trial_check_memory(&setup, &fits, err);
    if (status == COH_OK && fits)
        status = coh_trial_run(&setup, &self->rows[self->nrows], err);
    if (status == COH_OK && fits)
        self->nrows++;
    else if (status == COH_OK)
        self->skipped_mib[self->nskipped++] = mib;
    return status;
}

static coh_status measure_sizes(exchange_bench *self, int largest_mib,
                                coh_err *err)
{
    const int placement = self->job.config->exchange.placement;
    coh_status status = COH_OK;

    self->job.config->exchange.placement = COH_PLACEMENT_BALANCED;
    for (int i = 0; i < SIZES && status == COH_OK; i++) {
        if (largest_mib == 0 || sizes_mib[i] <= largest_mib)
            status = measure_size(self, sizes_mib[i], err);
    }
    self->job.config->exchange.placement = placement;
    return status;
}

/* Every worker on the same samples, at rate 0. */
static coh_status measure_step(exchange_bench *self, coh_err *err)
{
    coh_job *job = &self->job;
    coh_status status = COH_OK;

    job->config->optimizer.rate = 0;
    if (!job->roles.mine.is_server)
        status = coh_bench_make_up(job->config, job->model, job->plan.batch,
                                   &self->data, &self->batch, err);
    status = coh_agree(job->roles.world, status, err);
    if (status == COH_OK)
        status = coh_job_make_compute(job, true, NULL, err);
    const coh_trial_setup setup = { .config = job->config,
                                    .roles = &job->roles,
                                    .threads = job->threads,
                                    .model = job->model,
                                    .compute = &job->compute,
                                    .batch = self->batch };
    return status == COH_OK ? coh_trial_run(&setup, &self->step, err) : status;
}

static coh_status measure(exchange_bench *self, int largest_mib, coh_err *err)
{
    coh_status status = measure_memcpy(self, err);

    if (status == COH_OK)
        status = measure_sizes(self, largest_mib, err);
    if (status == COH_OK)
        status = measure_memcpy(self, err);
    return status == COH_OK ? measure_step(self, err) : status;
}

/* Servers are what is measured; but a group that is told to have none, by its
 * size or by exchange.update, is, too. */
static coh_status read_file(const coh_args *args, coh_config **out,
                            coh_err *err)
{
    const coh_status status =
        coh_config_load(args->target, args->sets, args->nsets, out, err);

    if (status != COH_OK)
        return status;
    if ((*out)->servers == 0 && (*out)->group_size <= 1 &&
        (*out)->exchange.update != COH_UPDATE_OWNERS)
        (*out)->servers = 1;
    (*out)->exchange.lag = 0; /* a step that is measured is whole */
    return COH_OK;
}

static coh_status run(exchange_bench *self, const coh_args *args, coh_err *err)
{
    if (args->largest != 0 && args->largest < sizes_mib[0])
        return coh_fail(err, COH_E_CONFIG,
                        "--largest %d: the smallest size is %d MiB",
                        args->largest, sizes_mib[0]);
    coh_status status = coh_job_load(&self->job, args, read_file, err);
    if (status != COH_OK)
        return status;
    status = measure(self, args->largest, err);
    if (status == COH_OK && self->job.rank == 0 && args->json)
        print_json(self);
    else if (status == COH_OK && self->job.rank == 0)
        print(self);
    return status;
}

int coh_bench_exchange(int argc, char **argv)
{
    exchange_bench self = { 0 };
    coh_err err = COH_ERR_INIT;
    coh_args args;

    coh_job_begin(&self.job);
    coh_status status =
        coh_args_parse(argc, argv,
                       COH_ARG_TARGET | COH_ARG_SET | COH_ARG_JSON |
                           COH_ARG_EXCHANGE | COH_ARG_LARGEST,
                       &args, &err);
    if (status == COH_OK)
        status = run(&self, &args, &err);
    coh_batch_destroy(&self.batch);
    coh_dataset_close(&self.data);
    return coh_job_end(&self.job, "bench", status, &err);
}
