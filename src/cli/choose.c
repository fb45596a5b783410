/* choose.c - see choose.h. */
#include "cli/choose.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/files.h"
#include "common/mpi_check.h"
#include "worker/nn/dnn.h"
#include "worker/nn/measure.h"

enum { TEXT_MOST = 1 << 24 }; /* bytes of a cache file that is believed */

static coh_choice_key key_of(const coh_choose_task *task)
{
    char library[32];

    coh_dnn_version(library, sizeof library);
    return coh_choice_key_of(task->model, task->batch, task->training,
                             task->threads, library);
}

/* --- the cache ---------------------------------------------------------- */

/* COH_PENDING: there is no place for one. */
static coh_status cache_folder(char out[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

    if (cache != NULL && cache[0] == '/')
        return coh_path(out, NULL, "%s/cohort", cache);
    if (home != NULL && home[0] == '/')
        return coh_path(out, NULL, "%s/.cache/cohort", home);
    return COH_PENDING;
}

static coh_status cache_file(const coh_choice_key *key, char out[PATH_MAX])
{
    char folder[PATH_MAX];
    const coh_status status = cache_folder(folder);

    return status != COH_OK ? status
                            : coh_path(out, NULL, "%s/choices_%016" PRIx64,
                                       folder, coh_choice_key_hash(key));
}

/* The whole file, for the caller to free; NULL if it cannot be read. */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t room = 0;

    if (file == NULL)
        return NULL;
    const ssize_t length = getdelim(&text, &room, '\0', file);
    fclose(file);
    if (length >= 0 && length <= TEXT_MOST)
        return text;
    free(text);
    return NULL;
}

static coh_status find_cached(const coh_choose_task *task,
                              const coh_choice_key *key, coh_choices **out)
{
    char path[PATH_MAX];
    coh_status status = cache_file(key, path);
    char *text = status == COH_OK ? read_text(path) : NULL;

    status = text != NULL ? coh_choices_find(text, task->model, key, out, NULL)
                          : COH_PENDING;
    free(text);
    return status;
}

/* Whole or not at all: other processes may read and write the same file. */
static void save_cached(const coh_choice_key *key, const coh_choices *table)
{
    char folder[PATH_MAX], path[PATH_MAX], part[PATH_MAX];

    if (cache_folder(folder) != COH_OK || cache_file(key, path) != COH_OK ||
        coh_path(part, NULL, "%s.%ld.tmp", path, (long)getpid()) != COH_OK ||
        coh_folder_make(folder, NULL) != COH_OK)
        return;
    FILE *file = fopen(part, "w");
    if (file == NULL)
        return;
    coh_choices_write(table, file);
    const bool is_written = ferror(file) == 0;
    if (fclose(file) != 0 || !is_written || rename(part, path) != 0)
        (void)unlink(part);
}

/* --- one process -------------------------------------------------------- */

static coh_status measure(const coh_choose_task *task,
                          const coh_choice_key *key, coh_choices **out,
                          coh_err *err)
{
    const bool is_small = !coh_choices_need_measure(task->model, task->batch);
    const coh_status status =
        coh_choices_measure(task->model, key, task->training, out, err);
    if (status == COH_OK && !is_small)
        save_cached(key, *out);
    return status;
}

coh_status coh_choose_known(const coh_choose_task *task, coh_choices **out,
                            coh_err *err)
{
    const coh_choice_key key = key_of(task);

    *out = NULL;
    switch (task->config->compute.algorithm) {
    case COH_COMPUTE_DIRECT:
        return COH_OK;
    case COH_COMPUTE_WINOGRAD:
        return coh_choices_winograd(task->model, &key, out, err);
    default:
        return find_cached(task, &key, out);
    }
}

coh_status coh_choose(const coh_choose_task *task, coh_choices **out,
                      coh_err *err)
{
    const coh_choice_key key = key_of(task);
    const coh_status status = coh_choose_known(task, out, err);

    return status == COH_PENDING ? measure(task, &key, out, err) : status;
}

/* --- all ranks ---------------------------------------------------------- */

/* Rank 0's text on all ranks, for the caller to free. */
static char *share_text(MPI_Comm comm, const char *text)
{
    int length = text != NULL ? (int)strlen(text) : 0;

    COH_MPI(MPI_Bcast(&length, 1, MPI_INT, 0, comm));
    char *copy = calloc((size_t)length + 1, 1);
    COH_ASSERT(copy != NULL);
    if (text != NULL)
        memcpy(copy, text, (size_t)length);
    COH_MPI(MPI_Bcast(copy, length, MPI_CHAR, 0, comm));
    return copy;
}

/* Is this the lowest rank of those that ask for a table of the same key? */
static bool is_first_of_kind(MPI_Comm comm, const coh_choice_key *key,
                             bool asks)
{
    int rank, size;
    bool is_first = asks;

    COH_MPI(MPI_Comm_rank(comm, &rank));
    COH_MPI(MPI_Comm_size(comm, &size));
    const uint64_t mine = asks ? coh_choice_key_hash(key) : 0;
    uint64_t *all = calloc((size_t)size, sizeof *all);
    COH_ASSERT(all != NULL);
    COH_MPI(MPI_Allgather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, comm));
    for (int i = 0; i < rank; i++)
        is_first = is_first && all[i] != mine;
    free(all);
    return is_first;
}

/* `known` with the tables of all ranks behind it, for the caller to free;
 * `table` is NULL on ranks that add none. */
static char *gather_text(MPI_Comm comm, const char *known,
                         const coh_choices *table)
{
    int size, sum = 0;
    char *mine = NULL;
    size_t length = 0;

    COH_MPI(MPI_Comm_size(comm, &size));
    FILE *out = open_memstream(&mine, &length);
    int *counts = calloc((size_t)size, sizeof *counts);
    int *first = calloc((size_t)size, sizeof *first);
    COH_ASSERT(out != NULL && counts != NULL && first != NULL);
    if (table != NULL)
        coh_choices_write(table, out);
    COH_ASSERT(fclose(out) == 0);
    const int count = (int)length, before = (int)strlen(known);
    COH_MPI(MPI_Allgather(&count, 1, MPI_INT, counts, 1, MPI_INT, comm));
    for (int i = 0; i < size; i++) {
        first[i] = before + sum;
        sum += counts[i];
    }
    char *text = calloc((size_t)(before + sum) + 1, 1);
    COH_ASSERT(text != NULL);
    memcpy(text, known, (size_t)before);
    COH_MPI(MPI_Allgatherv(mine, count, MPI_CHAR, text, counts, first, MPI_CHAR,
                           comm));
    free(mine);
    free(counts);
    free(first);
    return text;
}

coh_status coh_choose_together(MPI_Comm comm, const coh_choose_task *task,
                               bool computes, const char *known, char **text,
                               coh_choices **out, coh_err *err)
{
    const bool may_measure =
        task->config->compute.algorithm == COH_COMPUTE_AUTO;
    const coh_choice_key key = key_of(task);
    coh_status status = COH_OK;

    char *before = share_text(comm, may_measure ? known : NULL);
    *out = NULL;
    if (computes && may_measure)
        status = coh_choices_find(before, task->model, &key, out, err);
    const bool asks = status == COH_PENDING;
    const bool is_first = is_first_of_kind(comm, &key, asks);
    if (is_first || (computes && !may_measure))
        status = coh_choose(task, out, err);
    status = coh_agree(comm, asks && !is_first ? COH_OK : status, err);
    if (status == COH_OK)
        *text = gather_text(comm, before, is_first ? *out : NULL);
    free(before);
    if (status == COH_OK && asks && !is_first)
        status = coh_choices_find(*text, task->model, &key, out, err);
    COH_ASSERT(status != COH_PENDING);
    return coh_agree(comm, status, err);
}
