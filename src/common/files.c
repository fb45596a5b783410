/* files.c - see files.h. */
#include "common/files.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { OPEN_FOLDERS_MAX = 16 };

coh_status coh_path(char out[PATH_MAX], coh_err *err, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const int length = vsnprintf(out, PATH_MAX, fmt, ap);
    va_end(ap);

    if (length < PATH_MAX)
        return COH_OK;
    return coh_fail(err, COH_E_IO, "path too long: %.200s...", out);
}

static coh_status fail_errno(const char *step, const char *path, coh_err *err)
{
    return coh_fail(err, COH_E_IO, "cannot %s '%s': %s", step, path,
                    strerror(errno));
}

/* Make one folder; fine if it is there already. */
static coh_status make_one(const char *path, coh_err *err)
{
    struct stat info;

    if (mkdir(path, 0777) == 0)
        return COH_OK;
    if (errno == EEXIST && stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return COH_OK;
        errno = ENOTDIR;
    }
    return fail_errno("make folder", path, err);
}

coh_status coh_folder_make(const char *path, coh_err *err)
{
    char part[PATH_MAX];
    coh_status status = coh_path(part, err, "%s", path);

    for (char *slash = part; status == COH_OK && *slash != '\0'; slash++) {
        if (*slash != '/' || slash == part)
            continue;
        *slash = '\0';
        status = make_one(part, err);
        *slash = '/';
    }
    return status == COH_OK ? make_one(path, err) : status;
}

static int remove_one(const char *path, const struct stat *info, int kind,
                      struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path);
}

coh_status coh_path_remove(const char *path, coh_err *err)
{
    if (nftw(path, remove_one, OPEN_FOLDERS_MAX, FTW_DEPTH | FTW_PHYS) != 0 &&
        errno != ENOENT)
        return fail_errno("remove", path, err);
    return COH_OK;
}

coh_status coh_path_sync(const char *path, coh_err *err)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail_errno("open", path, err);

    const int rc = fsync(fd);
    const int why = errno;
    (void)close(fd); /* read-only: nothing left to lose */
    errno = why;
    return rc == 0 ? COH_OK : fail_errno("push to disk", path, err);
}

coh_status coh_path_rename(const char *from, const char *to, coh_err *err)
{
    char folder[PATH_MAX];

    if (rename(from, to) != 0)
        return fail_errno("rename to its real name", from, err);
    const coh_status status = coh_path(folder, err, "%s", to);
    if (status != COH_OK)
        return status;
    char *slash = strrchr(folder, '/');
    if (slash == NULL)
        return coh_path_sync(".", err);
    slash[slash == folder ? 1 : 0] = '\0';
    return coh_path_sync(folder, err);
}

bool coh_path_exists(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0;
}
