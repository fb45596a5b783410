/* h5file.c - see h5file.h. */
#include "common/h5file.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

#include "common/files.h"
#include "common/hdf5_lock.h"

struct coh_h5file {
    hid_t id;
    bool is_new;
    char path[PATH_MAX];
};

/* HDF5 says little about why; the system's last error often does. */
static coh_status fail(const coh_h5file *self, coh_status status,
                       const char *step, const char *name, coh_err *err)
{
    const char *why = errno != 0 ? strerror(errno)
                                 : "not a valid HDF5 file, "
                                   "or not one of cohort";
    return coh_fail(err, status, "cannot %s %s of '%s': %s", step, name,
                    self->path, why);
}

/* Every call of HDF5 stands between these two: its lock, and its habit of
 * printing errors turned off. */
static void enter(void)
{
    coh_hdf5_lock();
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    errno = 0;
}

static hid_t memory_type(coh_h5_type type)
{
    switch (type) {
    case COH_H5_F32:
        return H5T_NATIVE_FLOAT;
    case COH_H5_F64:
        return H5T_NATIVE_DOUBLE;
    case COH_H5_I64:
        return H5T_NATIVE_INT64;
    case COH_H5_TEXT:
        break;
    }
    return H5T_NATIVE_SCHAR; /* char has no sign on some machines */
}

static hid_t file_type(coh_h5_type type)
{
    switch (type) {
    case COH_H5_F32:
        return H5T_IEEE_F32LE;
    case COH_H5_F64:
        return H5T_IEEE_F64LE;
    case COH_H5_I64:
        return H5T_STD_I64LE;
    case COH_H5_TEXT:
        break;
    }
    return H5T_STD_I8LE;
}

static coh_status new_file(const char *path, bool is_new, coh_h5file **out,
                           coh_err *err)
{
    coh_h5file *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory to open '%s'", path);
    self->is_new = is_new;
    const coh_status status = coh_path(self->path, err, "%s", path);
    if (status != COH_OK) {
        free(self);
        return status;
    }

    enter();
    self->id = is_new ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT)
                      : H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    coh_hdf5_unlock();
    if (self->id < 0) {
        fail(self, is_new ? COH_E_IO : COH_E_DATA, is_new ? "create" : "open",
             "the file", err);
        free(self);
        return is_new ? COH_E_IO : COH_E_DATA;
    }
    *out = self;
    return COH_OK;
}

coh_status coh_h5_create(const char *path, coh_h5file **out, coh_err *err)
{
    return new_file(path, true, out, err);
}

coh_status coh_h5_open(const char *path, coh_h5file **out, coh_err *err)
{
    return new_file(path, false, out, err);
}

/* Datasets without the time they were made: the same content is the same
 * bytes. Negative on failure. */
static hid_t without_times(void)
{
    const hid_t list = H5Pcreate(H5P_DATASET_CREATE);

    if (list >= 0)
        (void)H5Pset_obj_track_times(list, false);
    return list;
}

coh_status coh_h5_write(coh_h5file *self, const char *name, coh_h5_type type,
                        int64_t rows, int64_t columns, const void *data,
                        coh_err *err)
{
    const hsize_t shape[2] = { (hsize_t)rows, (hsize_t)columns };
    hid_t set = H5I_INVALID_HID;
    bool ok = false;

    enter();
    const hid_t space = H5Screate_simple(columns == 1 ? 1 : 2, shape, NULL);
    const hid_t list = without_times();
    if (space >= 0 && list >= 0)
        set = H5Dcreate2(self->id, name, file_type(type), space, H5P_DEFAULT,
                         list, H5P_DEFAULT);
    if (set >= 0)
        ok = H5Dwrite(set, memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                      data) >= 0;
    if (set >= 0 && H5Dclose(set) < 0)
        ok = false;
    if (space >= 0 && H5Sclose(space) < 0)
        ok = false;
    if (list >= 0)
        (void)H5Pclose(list);
    coh_hdf5_unlock();
    return ok ? COH_OK : fail(self, COH_E_IO, "write", name, err);
}

/* Open dataset `name` and count its elements; negative if it cannot be. */
static hid_t open_set(coh_h5file *self, const char *name, int64_t *count)
{
    const hid_t set = H5Dopen2(self->id, name, H5P_DEFAULT);
    if (set < 0)
        return set;
    const hid_t space = H5Dget_space(set);
    *count = space < 0 ? -1 : (int64_t)H5Sget_simple_extent_npoints(space);
    if (space >= 0)
        (void)H5Sclose(space);
    return set;
}

coh_status coh_h5_size(coh_h5file *self, const char *name, int64_t *out,
                       coh_err *err)
{
    int64_t count = -1;

    enter();
    const hid_t set = open_set(self, name, &count);
    if (set >= 0)
        (void)H5Dclose(set);
    coh_hdf5_unlock();
    if (count < 0)
        return fail(self, COH_E_DATA, "find", name, err);
    *out = count;
    return COH_OK;
}

coh_status coh_h5_read(coh_h5file *self, const char *name, coh_h5_type type,
                       int64_t count, void *data, coh_err *err)
{
    int64_t there = -1;
    bool ok = false;

    enter();
    const hid_t set = open_set(self, name, &there);
    if (set >= 0 && there == count)
        ok = H5Dread(set, memory_type(type), H5S_ALL, H5S_ALL, H5P_DEFAULT,
                     data) >= 0;
    if (set >= 0)
        (void)H5Dclose(set);
    coh_hdf5_unlock();
    if (there >= 0 && there != count)
        return coh_fail(err, COH_E_DATA,
                        "%s of '%s' has %" PRId64 " elements, expected "
                        "%" PRId64,
                        name, self->path, there, count);
    return ok ? COH_OK : fail(self, COH_E_DATA, "read", name, err);
}

coh_status coh_h5_close(coh_h5file **self, coh_err *err)
{
    coh_h5file *file = *self;
    coh_status status = COH_OK;

    if (file == NULL)
        return COH_OK;
    enter();
    const herr_t rc = H5Fclose(file->id);
    coh_hdf5_unlock();
    if (file->is_new && rc < 0)
        status = fail(file, COH_E_IO, "close", "the file", err);
    else if (file->is_new)
        status = coh_path_sync(file->path, err);
    free(file);
    *self = NULL;
    return status;
}
