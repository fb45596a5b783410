/* dataset.h - one set of labelled images: random access by sample index.
 *
 *     open -> { count | read }* -> close
 *
 * Images stay on disk (idx: in memory as the bytes of the file; gzip cannot be
 * read from the middle). Labels and weights, 4 bytes a sample each, are read at
 * open. At most 64 files are open at a time; chunk caches hold up to 512 MiB,
 * and those of the file in use.
 * Values come as float32 after conversion, log1p and normalisation.
 *
 * hdf5: FILE::GROUP takes the datasets from a group of the file; a `*` in it
 * stands for the dataset's name: mnist.h5::train, events.h5::*_val.
 * Threads: one at a time. HDF5 is not thread-safe everywhere: the one lock of
 * hdf5_lock.h is taken inside.   MPI: none.
 */
#ifndef COH_WORKER_DATASET_H
#define COH_WORKER_DATASET_H

#include "common/config.h"
#include "common/normal.h"
#include "worker/batch.h"

typedef struct coh_dataset coh_dataset;

typedef enum coh_split {
    COH_SPLIT_TRAIN,
    COH_SPLIT_VALIDATION,
    COH_SPLIT_TEST
} coh_split;

/* Open the files that config->data names for `split` (patterns expanded in
 * byte order, so that every rank has the same sample order). A validation
 * split without files is the test split; no files at all is an empty set.
 * `input` and `classes` are the model's: files must agree.
 * Not collective. On COH_OK *out is the caller's.
 * Fails with COH_E_DATA: the file, what is wrong with it, and what to do;
 * COH_E_CONFIG if data.classes does not fit (synthetic); COH_E_NOMEM. */
coh_status coh_dataset_open(const coh_config *config, coh_split split,
                            coh_shape input, int64_t classes, coh_dataset **out,
                            coh_err *err);
void coh_dataset_close(coh_dataset **self);

int64_t coh_dataset_count(const coh_dataset *self); /* samples */

/* Bytes that reading may add to what it holds once it is open: chunk caches.
 */
int64_t coh_dataset_cache_bytes(const coh_dataset *self);

/* Read the targets of `model` (borrowed while the set is open) with every
 * sample from now on: batches must have room for them. Fails with COH_E_CONFIG
 * if it has some and the files have none: only synthetic data has. */
coh_status coh_dataset_aim(coh_dataset *self, const coh_model *model,
                           coh_err *err);

/* Both, for what `model` needs: without a classifier any label will do. */
coh_status coh_dataset_open_for(const coh_config *config, coh_split split,
                                const coh_model *model, coh_dataset **out,
                                coh_err *err);

/* The numbers of a sample's targets: T of a batch. */
int64_t coh_dataset_targets(const coh_dataset *self);

/* Measure config's normalisation on the first min(count, limit) samples of
 * the seeded permutation of epoch 0. Fails with COH_E_DATA (file unreadable, or
 * a value that is not finite: which sample), COH_E_CONFIG (more channels than
 * COH_CHANNELS_MAX). */
coh_status coh_dataset_measure(coh_dataset *self, const coh_config *config,
                               coh_normal *out, coh_err *err);

/* Use `normal` for every read from now on. Copied. */
void coh_dataset_normalize(coh_dataset *self, const coh_normal *normal);

/* Fill rows [0, count) of `batch` with samples[count] and pad the rest; sets
 * batch->samples and ->count. count <= batch->capacity. Fails with COH_E_DATA:
 * file and sample; the batch then holds nothing of use. */
coh_status coh_dataset_read(coh_dataset *self, const int64_t *samples,
                            int64_t count, coh_batch *batch, coh_err *err);

#endif
