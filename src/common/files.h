/* files.h - small things with files and folders that the C library lacks. */
#ifndef COH_COMMON_FILES_H
#define COH_COMMON_FILES_H

#include <limits.h>
#include <stdbool.h>

#include "common/status.h"

/* out = printf(fmt, ...). Fails with COH_E_IO if it is longer than a path. */
coh_status coh_path(char out[PATH_MAX], coh_err *err, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Make a folder and those above it; fine if it exists. Fails with COH_E_IO. */
coh_status coh_folder_make(const char *path, coh_err *err);

/* Remove a file, or a folder with all in it. Fails with COH_E_IO. */
coh_status coh_path_remove(const char *path, coh_err *err);

/* Push a closed file, or the names in a folder, to disk. */
coh_status coh_path_sync(const char *path, coh_err *err);

/* Rename so that the new name survives a crash: both on one file system. */
coh_status coh_path_rename(const char *from, const char *to, coh_err *err);

bool coh_path_exists(const char *path);

#endif
