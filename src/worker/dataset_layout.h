/* dataset_layout.h - names, axes and halves of image arrays in a file: the
 * part of dataset_hdf5.c that needs no HDF5. Pure functions. Internal to dataset*.c.
 */
#ifndef COH_WORKER_DATASET_LAYOUT_H
#define COH_WORKER_DATASET_LAYOUT_H

#include "worker/dataset.h"

/* An array as a file describes it: its first axis counts samples. */
enum { COH_AXES_MAX = 4 };
typedef struct coh_layout {
    int rank;
    int64_t dims[COH_AXES_MAX]; /* [rank] */
} coh_layout;

/* "x.h5::G" -> "x.h5" and "G"; without "::" the second is "". Both are the
 * caller's to free. Fails with COH_E_NOMEM. */
coh_status coh_layout_split(const char *file, char **path, char **within,
                            coh_err *err);

/* The name of dataset `name` in a file given as FILE::within: a `*` in within
 * stands for the name (*_val: data_val); without one, within is a group (train:
 * train/data). The caller's to free; NULL if memory is out. */
char *coh_layout_name(const char *within, const char *name);

/* Samples and shape of `arrays` equal arrays: one of [N,C,H,W], [N,H,W,C] (by
 * `axes`) or [N,H,W], or several of [N,H,W], each a channel.
 * Fails with COH_E_DATA; the caller adds the names. */
coh_status coh_layout_shape(const coh_layout *array, int arrays, coh_axes axes,
                            int64_t *count, coh_shape *shape, coh_err *err);

/* image[H,W,C] becomes image[C,H,W]; scratch[C x H x W]. */
void coh_layout_to_nchw(coh_shape shape, float *image, float *scratch);

/* floats[count] = the IEEE half precision numbers of halves[count], exactly;
 * HDF5's own way to do it is 30 times slower. */
void coh_layout_from_half(const uint16_t *halves, int64_t count, float *floats);

/* "[60000,28,28]" into text[size]; returns text. */
const char *coh_layout_text(const coh_layout *array, char *text, size_t size);

#endif
