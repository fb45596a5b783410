/* bench.c - `cohort bench`: how fast this node trains the network, and how fast
 * it could. One process, made-up data, no MPI. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/args.h"
#include "cli/bench.h"
#include "cli/choose.h"
#include "cli/command.h"
#include "cli/threads.h"
#include "common/clock.h"
#include "common/memory.h"
#include "common/optim/shard.h"

/* Long enough for a slow phase of the machine to pass, short enough to wait. */
static const double peak_s = 1.0, steps_s = 5.0, other_s = 0.3;
enum { STEPS_LEAST = 5, STEPS_MOST = 1000 };

/* What the steps need. */
typedef struct bed {
    coh_dataset *data;
    coh_batch *batch;
    coh_compute compute;
    coh_shard *shard;
    float *weights, *gradient; /* [P] */
    double *times;             /* [STEPS_MOST] of the steps, in seconds */
} bed;

double coh_bench_flop(const coh_bench *self, const coh_step_part *part)
{
    return (double)self->model->layers[part->layer].flop * (double)self->batch;
}

static coh_status no_memory(coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM, "no memory for the network's vectors");
}

static coh_status read_batch(coh_dataset *data, coh_batch *batch, coh_err *err)
{
    const int64_t count = batch->capacity;
    int64_t *samples = malloc((size_t)count * sizeof *samples);

    if (samples == NULL)
        return no_memory(err);
    for (int64_t i = 0; i < count; i++)
        samples[i] = i % coh_dataset_count(data);
    const coh_status status =
        coh_dataset_read(data, samples, count, batch, err);
    free(samples);
    return status;
}

coh_status coh_bench_make_up(coh_config *config, const coh_model *model,
                             int64_t batch, coh_dataset **data, coh_batch **out,
                             coh_err *err)
{
    config->data.kind = COH_DATA_SYNTHETIC;
    if (model->classes >= 2)
        config->data.classes = model->classes;
    config->data.log1p = false; /* is for values above -1 */
    coh_status status =
        coh_dataset_open_for(config, COH_SPLIT_TRAIN, model, data, err);
    if (status == COH_OK)
        status =
            coh_batch_new(model->input, model->target_count, batch, out, err);
    return status == COH_OK ? read_batch(*data, *out, err) : status;
}

static coh_status make_net(bed *self, coh_bench *bench, coh_config *config,
                           coh_err *err)
{
    const coh_choose_task task = {
        .config = config,
        .model = bench->model,
        .batch = bench->batch,
        .training = true,
        .threads = bench->threads,
    };
    coh_choices *choices = NULL;
    const double start = coh_clock_now_s();

    coh_status status = coh_choose(&task, &choices, err);
    bench->choose_s = coh_clock_now_s() - start;
    if (status == COH_OK)
        status = coh_net_new(bench->model, bench->batch, 0,
                             (uint64_t)config->run.seed, bench->threads,
                             choices, &self->compute, err);
    coh_choices_destroy(&choices);
    return status;
}

static coh_status make_bed(bed *self, coh_bench *bench, coh_config *config,
                           const coh_plan *plan, coh_err *err)
{
    const coh_model *model = bench->model;
    const coh_rule rule = coh_rule_of(config);

    self->weights = coh_floats(model->parameters);
    self->gradient = coh_floats(model->parameters);
    self->times = calloc(STEPS_MOST, sizeof *self->times);
    if (self->weights == NULL || self->gradient == NULL || self->times == NULL)
        return no_memory(err);
    coh_model_init(model, (uint64_t)config->run.seed, self->weights);
    coh_status status = coh_bench_make_up(config, model, bench->batch,
                                          &self->data, &self->batch, err);
    if (status == COH_OK)
        status = coh_shard_new(plan, -1, &rule, &model->statistics,
                               &self->shard, err);
    if (status == COH_OK)
        status = make_net(self, bench, config, err);
    if (status != COH_OK)
        return status;
    coh_shard_load(self->shard, self->weights);
    bench->nparts = coh_net_parts(&self->compute, NULL);
    bench->parts = calloc((size_t)bench->nparts, sizeof *bench->parts);
    if (bench->parts == NULL)
        return no_memory(err);
    (void)coh_net_parts(&self->compute, bench->parts);
    return COH_OK;
}

static void free_bed(bed *self)
{
    if (self->compute.self != NULL)
        self->compute.destroy(&self->compute.self);
    coh_shard_destroy(&self->shard);
    coh_batch_destroy(&self->batch);
    coh_dataset_close(&self->data);
    free(self->weights);
    free(self->gradient);
    free(self->times);
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* One step more than is counted: the first one touches the memory. */
static void time_steps(bed *self, coh_bench *bench)
{
    const double end = coh_clock_now_s() + steps_s;
    coh_step_sums sums;
    int n = 0;

    self->compute.train(self->compute.self, self->batch, self->weights,
                        self->gradient, &sums, NULL);
    while (n < STEPS_LEAST || (n < STEPS_MOST && coh_clock_now_s() < end))
        coh_net_time(&self->compute, self->batch, self->weights, self->gradient,
                     bench->parts, &self->times[n++]);
    qsort(self->times, (size_t)n, sizeof *self->times, by_size);
    bench->steps = n;
    bench->step_s = self->times[0];
    bench->step_median_s = self->times[n / 2];
}

/* Every block once, as a worker without servers does it. */
static void time_update(bed *self, coh_bench *bench, const coh_plan *plan)
{
    const double end = coh_clock_now_s() + other_s;

    bench->update_s = INFINITY;
    do {
        const double start = coh_clock_now_s();
        for (int64_t b = 0; b < plan->nblocks; b++)
            coh_shard_apply(self->shard, b,
                            self->gradient + coh_plan_block(plan, b).first,
                            (double)bench->batch, 1e-6f);
        bench->update_s = fmin(bench->update_s, coh_clock_now_s() - start);
    } while (coh_clock_now_s() < end);
}

static coh_status time_input(bed *self, coh_bench *bench, coh_err *err)
{
    const double end = coh_clock_now_s() + other_s;
    coh_status status = COH_OK;

    bench->input_s = INFINITY;
    do {
        const double start = coh_clock_now_s();
        status = read_batch(self->data, self->batch, err);
        bench->input_s = fmin(bench->input_s, coh_clock_now_s() - start);
    } while (status == COH_OK && coh_clock_now_s() < end);
    return status;
}

/* The peak before and after all else, so that no moment can be chosen. */
static coh_status measure(coh_bench *bench, coh_config *config,
                          const coh_plan *plan, coh_err *err)
{
    bed self = { 0 };

    coh_status status = make_bed(&self, bench, config, plan, err);
    if (status == COH_OK)
        status = coh_peak_measure(peak_s, &bench->peak, err);
    if (status == COH_OK)
        status = coh_peak_memcpy(&bench->memcpy_gb_s, err);
    if (status == COH_OK) {
        time_steps(&self, bench);
        time_update(&self, bench, plan);
        status = time_input(&self, bench, err);
    }
    if (status == COH_OK)
        status = coh_peak_measure(peak_s, &bench->peak, err);
    free_bed(&self);
    return status;
}

static coh_status run(const coh_args *args, coh_config *config, coh_err *err)
{
    coh_model *model = NULL;
    coh_plan plan = { 0 };

    coh_status status = coh_model_new(config, &model, err);
    if (status == COH_OK)
        status = coh_plan_make(config, model, 0, &plan, err);
    if (status == COH_OK)
        status = coh_model_check_share(model, plan.batch, err);
    if (status != COH_OK) {
        coh_plan_fini(&plan);
        coh_model_destroy(&model);
        return status;
    }
    coh_bench bench = {
        .model = model,
        .threads = coh_threads_for(config->compute.threads, 1),
        .batch = plan.batch,
    };
    status = measure(&bench, config, &plan, err);
    if (status == COH_OK && args->json)
        coh_bench_print_json(&bench);
    else if (status == COH_OK)
        coh_bench_print(&bench);
    free(bench.parts);
    coh_plan_fini(&plan);
    coh_model_destroy(&model);
    return status;
}

int coh_command_bench(int argc, char **argv)
{
    coh_config *config = NULL;
    coh_err err = COH_ERR_INIT;
    coh_args args;

    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--exchange") == 0)
            return coh_bench_exchange(argc, argv);
    }
    coh_status status = coh_args_parse(
        argc, argv, COH_ARG_TARGET | COH_ARG_SET | COH_ARG_JSON, &args, &err);
    if (status == COH_OK)
        status =
            coh_config_load(args.target, args.sets, args.nsets, &config, &err);
    if (status == COH_OK)
        status = run(&args, config, &err);
    coh_config_destroy(&config);
    return coh_command_end("bench", status, &err);
}
