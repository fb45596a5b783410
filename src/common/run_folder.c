/* run_folder.c - see run_folder.h. */
#include "common/run_folder.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "common/checkpoint.h"
#include "common/files.h"

coh_status coh_run_folder_find(const char *given, char out[PATH_MAX],
                               coh_err *err)
{
    char path[PATH_MAX];

    coh_status status = coh_path(path, err, "%s/manifest.h5", given);
    if (status != COH_OK)
        return status;
    if (coh_path_exists(path))
        return coh_path(out, err, "%s", given);
    status = coh_path(path, err, "%s/checkpoints", given);
    return status == COH_OK ? coh_checkpoint_newest(path, out, err) : status;
}

/* Make path itself, which must not exist. */
static coh_status make_own(const char *path, bool may_exist, coh_err *err)
{
    if (mkdir(path, 0777) == 0 || (may_exist && errno == EEXIST))
        return COH_OK;
    if (errno == EEXIST)
        return coh_fail(err, COH_E_CONFIG,
                        "run folder '%s' exists: a run of that name was "
                        "started before; go on with it by --resume auto, or "
                        "choose another name by --set run.name=...",
                        path);
    return coh_fail(err, COH_E_IO, "cannot make run folder '%s': %s", path,
                    strerror(errno));
}

static coh_status write_config(const coh_config *config, const char *folder,
                               coh_err *err)
{
    char path[PATH_MAX], temporary[PATH_MAX];

    coh_status status = coh_path(path, err, "%s/config.yaml", folder);
    if (status == COH_OK)
        status = coh_path(temporary, err, "%s/config.yaml.tmp", folder);
    if (status != COH_OK)
        return status;

    FILE *out = fopen(temporary, "w");
    if (out == NULL)
        return coh_fail(err, COH_E_IO, "cannot write '%s': %s", temporary,
                        strerror(errno));
    coh_config_write(config, out);
    const bool bad = ferror(out) != 0;
    if (fclose(out) != 0 || bad)
        return coh_fail(err, COH_E_IO, "cannot write '%s': %s", temporary,
                        strerror(errno));
    status = coh_path_sync(temporary, err);
    return status == COH_OK ? coh_path_rename(temporary, path, err) : status;
}

static bool is_same_file(const char *a, const char *b)
{
    struct stat left, right;

    return stat(a, &left) == 0 && stat(b, &right) == 0 &&
           left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

coh_status coh_run_folder_choose(const coh_config *config, const char *resume,
                                 coh_run_folder *out, coh_err *err)
{
    char own[PATH_MAX];

    memset(out, 0, sizeof *out);
    coh_status status =
        coh_path(out->path, err, "%s/%s", config->run.out, config->run.name);
    if (status != COH_OK || resume == NULL)
        return status;
    const coh_status has_own = coh_run_folder_find(out->path, own, err);
    if (has_own < 0)
        return has_own;
    if (strcmp(resume, "auto") == 0) {
        out->may_exist = true;
        return has_own == COH_OK ? coh_path(out->checkpoint, err, "%s", own)
                                 : COH_OK;
    }
    status = coh_run_folder_find(resume, out->checkpoint, err);
    if (status == COH_PENDING)
        return coh_fail(err, COH_E_CONFIG,
                        "--resume '%s': no checkpoint there: give a run "
                        "folder, a checkpoints/step_N folder, or auto",
                        resume);
    out->may_exist = has_own == COH_OK && is_same_file(own, out->checkpoint);
    return status;
}

coh_status coh_run_folder_claim(const coh_config *config,
                                const coh_run_folder *self, coh_err *err)
{
    static const char *const inner[] = { "log", "checkpoints" };
    char path[PATH_MAX];

    coh_status status = coh_folder_make(config->run.out, err);
    if (status == COH_OK)
        status = make_own(self->path, self->may_exist, err);
    for (int i = 0; i < 2 && status == COH_OK; i++) {
        status = coh_path(path, err, "%s/%s", self->path, inner[i]);
        if (status == COH_OK)
            status = coh_folder_make(path, err);
    }
    return status == COH_OK ? write_config(config, self->path, err) : status;
}

bool coh_run_folder_is_done(const char *folder)
{
    char path[PATH_MAX], line[256];
    bool is_done = false;

    if (coh_path(path, NULL, "%s/summary.json", folder) != COH_OK)
        return false;
    FILE *in = fopen(path, "r");
    while (in != NULL && fgets(line, sizeof line, in) != NULL)
        is_done = is_done || strstr(line, "\"status\": \"done\"") != NULL;
    if (in != NULL)
        (void)fclose(in);
    return is_done;
}
