/* h5file.h - named vectors in an HDF5 file, as much as a checkpoint needs.
 *
 *     create -> write* -> close        the file is on disk after close
 *     open -> { size | read }* -> close
 *
 * Threads: takes the lock of hdf5_lock.h inside.   MPI: none.
 */
#ifndef COH_COMMON_H5FILE_H
#define COH_COMMON_H5FILE_H

#include <stdint.h>

#include "common/status.h"

typedef struct coh_h5file coh_h5file;

typedef enum coh_h5_type {
    COH_H5_F32, /* float */
    COH_H5_F64, /* double */
    COH_H5_I64, /* int64_t */
    COH_H5_TEXT /* char, as 8-bit numbers */
} coh_h5_type;

/* Make `path` anew. On COH_OK *out is the caller's. Fails with COH_E_IO. */
coh_status coh_h5_create(const char *path, coh_h5file **out, coh_err *err);

/* Fails with COH_E_DATA: no such file, or no HDF5 file. */
coh_status coh_h5_open(const char *path, coh_h5file **out, coh_err *err);

/* data[rows, columns] of `type` (columns 1: a vector). Fails with COH_E_IO. */
coh_status coh_h5_write(coh_h5file *self, const char *name, coh_h5_type type,
                        int64_t rows, int64_t columns, const void *data,
                        coh_err *err);

/* How many elements `name` has. Fails with COH_E_DATA. */
coh_status coh_h5_size(coh_h5file *self, const char *name, int64_t *out,
                       coh_err *err);

/* All of `name`, which must have `count` elements. Fails with COH_E_DATA. */
coh_status coh_h5_read(coh_h5file *self, const char *name, coh_h5_type type,
                       int64_t count, void *data, coh_err *err);

/* Close and set to NULL; a created file is pushed to disk. NULL is fine.
 * Fails with COH_E_IO: what was written is then not to be trusted. */
coh_status coh_h5_close(coh_h5file **self, coh_err *err);

#endif
