/* loader.h - batches that a thread reads ahead of the step that needs them; or,
 * without a thread, that are read when they are taken.
 *
 *     new -> { ask | take -> give }* -> destroy
 *
 * ask() queues a piece of an epoch and returns at once; take() hands out the
 * batches in the order asked, waiting if need be; give() returns one for
 * reuse. `depth` batches exist; more may be asked, they are read as batches
 * come free. The data set is borrowed and belongs to the loader's thread while
 * pieces are outstanding. With depth 0 there is no thread: one batch exists, and
 * take() reads.
 * Threads: one caller.   MPI: none.
 */
#ifndef COH_WORKER_LOADER_H
#define COH_WORKER_LOADER_H

#include "worker/dataset.h"

typedef struct coh_loader coh_loader;

/* Positions [first, first + count) of epoch `epoch`. The sample at a position
 * is coh_rng_permute(seed, epoch, set size, position) if shuffled, else the
 * position itself. count may be 0: a batch of padding. */
typedef struct coh_piece {
    uint32_t epoch;
    int64_t first, count;
} coh_piece;

/* On COH_OK *out is the caller's. Fails with COH_E_NOMEM, COH_E_FAILED. */
coh_status coh_loader_new(coh_dataset *dataset, coh_shape input,
                          int64_t capacity, int64_t depth, uint64_t seed,
                          bool shuffled, coh_loader **out, coh_err *err);

/* Stops the thread, after the batch it is reading; pieces not taken are
 * dropped. Batches not given back are freed too. */
void coh_loader_destroy(coh_loader **self);

/* Queue one piece; piece.count <= capacity. Fails with COH_E_NOMEM. */
coh_status coh_loader_ask(coh_loader *self, coh_piece piece, coh_err *err);

/* The next batch, until give(). A piece that could not be read fails here, in
 * its place and once, with the reader's status; the next ones go on. There must
 * be a piece asked for, and fewer batches not given back than exist. */
coh_status coh_loader_take(coh_loader *self, coh_batch **out, coh_err *err);
void coh_loader_give(coh_loader *self, coh_batch *batch);

#endif
