/* probe.h - an op with memory to work on, to be timed alone.
 *
 *     new -> { time }* -> destroy
 *
 * Its values are zeros, which take as long as others. Probes share one arena:
 * what one leaves there does not matter to the next.
 * Threads: one caller.   MPI: none.
 */
#ifndef COH_WORKER_NN_PROBE_H
#define COH_WORKER_NN_PROBE_H

#include "worker/nn/dnn.h"
#include "worker/nn/pages.h"

typedef struct coh_probe coh_probe;

/* Make spec's op and point all its operands at the arena, which is borrowed.
 * On COH_OK *out is the caller's. Fails as coh_op_new() does. */
coh_status coh_probe_new(coh_dnn *dnn, const coh_op_spec *spec,
                         coh_arena *arena, coh_probe **out, coh_err *err);
/* The same for a change of layout. */
coh_status coh_probe_new_reorder(coh_dnn *dnn, const coh_layout *from,
                                 const coh_layout *to, coh_arena *arena,
                                 coh_probe **out, coh_err *err);
void coh_probe_destroy(coh_probe **self);

/* Run once; the time of it in seconds. */
double coh_probe_time(coh_probe *self);

const coh_op *coh_probe_op(const coh_probe *self);

#endif
