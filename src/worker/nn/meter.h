/* meter.h - how long one op takes, or one change of layout: the stopwatch of
 * measure.c.
 *
 *     init -> { copy | ways | pool }* -> fini
 *
 * A time is the least of some runs; of fewer, where they take long, once the
 * time budget is used up.
 * Threads: one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_METER_H
#define COH_WORKER_NN_METER_H

#include "worker/nn/path.h"
#include "worker/nn/probe.h"

typedef struct coh_meter {
    coh_dnn *dnn;    /* owned */
    coh_arena arena; /* owned */
    double end;      /* of the budget */
} coh_meter;

/* End with coh_meter_fini() whatever is returned. Fails as coh_dnn_new(). */
coh_status coh_meter_init(coh_meter *self, double budget_s, coh_err *err);
void coh_meter_fini(coh_meter *self);

/* Seconds to copy between two layouts; very many if oneDNN refuses. */
double coh_meter_copy(coh_meter *self, const coh_layout *from,
                      const coh_layout *to);

/* All ways of one pass, by specs[COH_WAY_COUNT]; one without a name is none.
 * Sets ways[]: whether oneDNN has it (and better
 * than as its slow reference), its formats, and if is_timed its seconds,
 * with the copy of its weights. The ways take turns, so that a slow moment of
 * the machine is no way's alone; one that is far behind drops out.
 * A way for which memory is short is none. Fails as coh_probe_new() does if
 * COH_WAY_DIRECT is refused. */
coh_status coh_meter_ways(coh_meter *self, const coh_op_spec *specs,
                          bool is_timed, coh_path_way *ways, coh_err *err);

/* Seconds of a pool, by the spec of its forward pass: with the backward one if
 * that is COH_PASS_TRAIN. 0 if oneDNN refuses. */
double coh_meter_pool(coh_meter *self, const coh_op_spec *spec);

#endif
