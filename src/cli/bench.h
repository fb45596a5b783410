/* bench.h - what `cohort bench` measures (bench.c) and prints (bench_print.c);
 * `cohort bench --exchange` is another matter (bench_exchange.c). Every number
 * is defined in docs/numbers.md.
 */
#ifndef COH_CLI_BENCH_H
#define COH_CLI_BENCH_H

#include "common/model.h"
#include "worker/dataset.h"
#include "worker/nn/net.h"
#include "worker/nn/peak.h"

typedef struct coh_bench {
    const coh_model *model; /* borrowed */
    int threads;
    int64_t batch;
    coh_peak peak;
    double memcpy_gb_s;
    int steps; /* how many were timed */
    double step_s, step_median_s;
    int nparts;
    coh_step_part *parts; /* [nparts], owned */
    double update_s;      /* the update rule on all parameters */
    double choose_s;      /* to choose algorithms */
    double input_s;       /* to make the samples of a batch */
} coh_bench;

/* Flop of a part in one step; 0 where none are counted. */
double coh_bench_flop(const coh_bench *self, const coh_step_part *part);

void coh_bench_print(const coh_bench *self);
void coh_bench_print_json(const coh_bench *self);

/* A batch of samples 0, 1, ... of made-up data of the network's shape: set
 * `config` to them, open them, and read. Both are the caller's, what there is of
 * them even if the call fails. */
coh_status coh_bench_make_up(coh_config *config, const coh_model *model,
                             int64_t batch, coh_dataset **data, coh_batch **out,
                             coh_err *err);

/* The command, with --exchange among its words. */
int coh_bench_exchange(int argc, char **argv);

#endif
