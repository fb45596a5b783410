/* measure.h - time the ways to do each pass, and choose.
 *
 * A pass of less than some million flop, which no way could make much faster,
 * is not timed but left direct: small networks cost nothing here. The network
 * of config/hep.yaml takes a few seconds; when a time budget is used up, what
 * takes long is timed once only.
 * Threads: one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_MEASURE_H
#define COH_WORKER_NN_MEASURE_H

#include "worker/nn/choice.h"

/* Make the table of `key` for steps of key->batch rows, with key->threads
 * threads, which are set for all OpenMP of the calling thread.
 * On COH_OK *out is the caller's. Fails with COH_E_NOMEM, or COH_E_FAILED: the
 * layer that oneDNN refused. */
coh_status coh_choices_measure(const coh_model *model,
                               const coh_choice_key *key, bool training,
                               coh_choices **out, coh_err *err);

/* Is there a pass that is timed? */
bool coh_choices_need_measure(const coh_model *model, int64_t batch);

/* The same without measuring: Winograd (winograd.h) wherever it can be.
 * Fails with COH_E_NOMEM. */
coh_status coh_choices_winograd(const coh_model *model,
                                const coh_choice_key *key, coh_choices **out,
                                coh_err *err);

#endif
