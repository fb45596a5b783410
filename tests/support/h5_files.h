/* h5_files.h - small HDF5 files for tests: see data_files.h. */
#ifndef COH_TESTS_H5_FILES_H
#define COH_TESTS_H5_FILES_H

#include <hdf5.h>

#include "support/data_files.h"

/* A new file in the room's folder, in the newest format of the library. */
static inline hid_t h5_create(const data_room *room, const char *name)
{
    char path[DATA_PATH_SIZE];
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file = H5Fcreate(data_path(room, name, path), H5F_ACC_TRUNC,
                                 H5P_DEFAULT, access);
    H5Pclose(access);
    ck_assert_int_ge(file, 0);
    return file;
}

/* Dataset `name` of `type`, groups made on the way; values NULL: not written.
 * `plist` is H5P_DEFAULT or how to store it. */
static inline void h5_add(hid_t file, const char *name, hid_t type, int rank,
                          const hsize_t *dims, hid_t plist, const float *values)
{
    const hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    const hid_t space = H5Screate_simple(rank, dims, NULL);
    const hid_t data =
        H5Dcreate2(file, name, type, space, links, plist, H5P_DEFAULT);
    ck_assert_int_ge(data, 0);
    if (values != NULL)
        ck_assert_int_ge(H5Dwrite(data, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL,
                                  H5P_DEFAULT, values),
                         0);
    H5Dclose(data);
    H5Sclose(space);
    H5Pclose(links);
}

/* IEEE half precision, which HDF5 1.10 has no name for. */
static inline hid_t h5_half(H5T_order_t order)
{
    const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    H5Tset_fields(type, 15, 10, 5, 0, 10);
    H5Tset_size(type, 2);
    H5Tset_ebias(type, 15);
    H5Tset_order(type, order);
    return type;
}

#endif
