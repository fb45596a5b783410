/* checkpoint_folder.c - see checkpoint.h; here the folder of checkpoints. */
#include "common/checkpoint.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files.h"

/* The N of step_N; -1 for any other name. */
static int64_t step_of(const char *name)
{
    int64_t step = -1;
    int end = 0;

    if (sscanf(name, "step_%" SCNd64 "%n", &step, &end) != 1 ||
        name[end] != '\0')
        return -1;
    return step;
}

static int newest_first(const struct dirent **a, const struct dirent **b)
{
    const int64_t left = step_of((*a)->d_name), right = step_of((*b)->d_name);
    return left < right ? 1 : left > right ? -1 : 0;
}

/* path = checkpoints/name, if that is a whole checkpoint. */
static bool is_whole(const char *checkpoints, const char *name,
                     char path[PATH_MAX])
{
    char manifest[PATH_MAX];

    return step_of(name) >= 0 &&
           coh_path(path, NULL, "%s/%s", checkpoints, name) == COH_OK &&
           coh_path(manifest, NULL, "%s/manifest.h5", path) == COH_OK &&
           coh_path_exists(manifest);
}

/* What died on the way: step_N.tmp, step_N.old.tmp. */
static bool is_stray(const char *name)
{
    const char *end = strrchr(name, '.');

    return strncmp(name, "step_", 5) == 0 && end != NULL &&
           strcmp(end, ".tmp") == 0;
}

static void free_names(struct dirent **names, int count)
{
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

coh_status coh_checkpoint_newest(const char *checkpoints, char out[PATH_MAX],
                                 coh_err *err)
{
    struct dirent **names = NULL;
    const int count = scandir(checkpoints, &names, NULL, newest_first);
    coh_status status = COH_PENDING;
    char path[PATH_MAX];

    for (int i = 0; i < count && status == COH_PENDING; i++) {
        if (is_whole(checkpoints, names[i]->d_name, path))
            status = coh_path(out, err, "%s", path);
    }
    free_names(names, count);
    return status;
}

void coh_checkpoint_prune(const char *checkpoints, int64_t keep)
{
    struct dirent **names = NULL;
    const int count = scandir(checkpoints, &names, NULL, newest_first);
    int64_t seen = 0;
    char path[PATH_MAX];

    for (int i = 0; i < count; i++) {
        const char *name = names[i]->d_name;
        const bool is_old = is_whole(checkpoints, name, path) && ++seen > keep;
        if (is_stray(name))
            (void)coh_path(path, NULL, "%s/%s", checkpoints, name);
        if (is_old || is_stray(name))
            (void)coh_path_remove(path, NULL);
    }
    free_names(names, count);
}
