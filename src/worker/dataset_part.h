/* dataset_part.h - one file of a data set: what its kind (idx, hdf5, synthetic)
 * gives to dataset.c. Internal to dataset*.c.
 *
 *     open -> { read, rest }* -> close
 *
 * A part knows nothing of the other parts, of normalisation or of batches.
 * Letters: N = samples of the part; C, H, W = a sample's shape.
 */
#ifndef COH_WORKER_DATASET_PART_H
#define COH_WORKER_DATASET_PART_H

#include <stddef.h>
#include <stdint.h>

#include "worker/dataset.h"

/* Sample `sample` of the part belongs into row `row` of the batch. */
typedef struct coh_part_row {
    int64_t sample, row;
} coh_part_row;

typedef struct coh_part_ops {
    /* images[row, C, H, W] = the raw values of the sample, for each of
     * rows[count], which come in the order of samples. Fails with COH_E_DATA;
     * the message names the file. */
    coh_status (*read)(void *self, const coh_part_row *rows, int64_t count,
                       float *images, coh_err *err);
    /* The label of a sample, where the part has no labels[]. May be NULL. */
    int32_t (*label)(const void *self, int64_t sample);
    /* Make the targets of `model`, borrowed, from now on. NULL: cannot. */
    void (*aim)(void *self, const coh_model *model);
    /* targets[T] of a sample. False, and zeros: it has no labels. NULL: all
     * have, and there are no targets. */
    bool (*targets)(const void *self, int64_t sample, float *targets);
    /* Give back the open file and its buffers; the next read opens it again.
     * NULL if the part holds nothing but memory. */
    void (*rest)(void *self);
    void (*close)(void *self);
} coh_part_ops;

typedef struct coh_part {
    const coh_part_ops *ops;
    void *self;           /* owned, ended by ops->close */
    char *name;           /* the file, for messages, owned */
    coh_shape shape;      /* C, H, W */
    int64_t count;        /* N */
    int32_t *labels;      /* [N] checked against the classes, owned, or NULL */
    float *weights;       /* [N] finite event weights, owned; NULL: all are 1 */
    int64_t buffer_bytes; /* what it may hold between read and rest */
} coh_part;

/* Each opens one part. On COH_OK *out is the caller's, to end with
 * coh_part_close(). Fail with COH_E_DATA or COH_E_NOMEM. */
coh_status coh_part_open_idx(const char *images, const char *labels,
                             int64_t classes, coh_part *out, coh_err *err);
coh_status coh_part_open_hdf5(const coh_config *config, const char *file,
                              int64_t classes, coh_part *out, coh_err *err);
coh_status coh_part_open_synthetic(const coh_config *config, coh_split split,
                                   coh_shape input, int64_t classes,
                                   coh_part *out, coh_err *err);

/* Free what *part holds and zero it. A zeroed or half-filled one is fine. */
void coh_part_close(coh_part *part);

/* The last check of every kind of file: labels[first ..] = values[count], which
 * must be whole numbers in [0, classes). `first` is only for the message. */
coh_status coh_part_set_labels(coh_part *part, int64_t classes,
                               const double *values, int64_t first,
                               int64_t count, coh_err *err);

/* The files that a list of patterns names, each pattern's in byte order. */
typedef struct coh_files {
    int count;
    char **items; /* [count], owned */
} coh_files;

/* An existing file is taken by its name, all else is a glob(3) pattern. A part
 * from "::" on is no part of the pattern; every file's name ends in it.
 * `key` is the config's, for messages: a pattern without a file and a file
 * named twice fail with COH_E_DATA. */
coh_status coh_files_expand(const coh_list *patterns, const char *key,
                            coh_files *out, coh_err *err);
void coh_files_free(coh_files *files);

#endif
