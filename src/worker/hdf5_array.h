/* hdf5_array.h - one array of numbers in an HDF5 file, sure to be whole.
 *
 * HDF5 gives zeros, without a word, for chunks that were never written, for
 * external files and for virtual sources that are missing or cut short: all
 * that is looked for before an array is used. Arrays packed with h5py's lzf
 * can be read.
 *
 * For dataset_hdf5.c only; the lock of hdf5_lock.h is held by the caller.
 */
#ifndef COH_WORKER_HDF5_ARRAY_H
#define COH_WORKER_HDF5_ARRAY_H

#include <hdf5.h>

#include "worker/dataset_layout.h"

/* Say `file: what`, and the innermost reason that HDF5 has for the call just
 * made: to be called before any other HDF5 function. Returns COH_E_DATA. */
coh_status coh_hdf5_fail(coh_err *err, const char *file, const char *what);

/* Open dataset `name` of `file` and describe it. `path` names the file and
 * `key` the config's key in messages. On COH_OK H5Dclose(*out) is the caller's.
 * Fails with COH_E_DATA: no such dataset (what there is), not numbers, more
 * axes than COH_AXES_MAX, not whole, packed with an unknown filter. */
coh_status coh_hdf5_open_array(hid_t file, const char *path, const char *key,
                               const char *name, hid_t *out, coh_layout *layout,
                               coh_err *err);

#endif
