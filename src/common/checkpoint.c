/* checkpoint.c - see checkpoint.h. */
#include "common/checkpoint.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files.h"
#include "common/h5file.h"

enum { BLOCK_COLUMNS = 3 }; /* first, count, version */

/* Every scalar of the manifest: its type letter and field. */
#define MANIFEST_FIELDS(X)    \
    X(I64, progress.steps)    \
    X(I64, progress.samples)  \
    X(I64, progress.epoch)    \
    X(I64, progress.position) \
    X(I64, seed)              \
    X(I64, parameters)        \
    X(I64, fingerprint)       \
    X(I64, parts)             \
    X(I64, block_count)       \
    X(F64, best_score)        \
    X(I64, best_step)         \
    X(I64, normal.channels)

coh_status coh_checkpoint_begin(const char *folder, coh_err *err)
{
    const coh_status status = coh_path_remove(folder, err);
    return status == COH_OK ? coh_folder_make(folder, err) : status;
}

/* The file of one part, made or opened. */
static coh_status part_file(const char *folder, int part, bool is_new,
                            coh_h5file **out, coh_err *err)
{
    char path[PATH_MAX];
    const coh_status status =
        coh_path(path, err, "%s/part_%d.h5", folder, part);

    if (status != COH_OK)
        return status;
    return is_new ? coh_h5_create(path, out, err) : coh_h5_open(path, out, err);
}

/* Close in every case; the first failure counts. */
static coh_status close_after(coh_h5file **file, coh_status status,
                              coh_err *err)
{
    const coh_status closed = coh_h5_close(file, status == COH_OK ? err : NULL);
    return status == COH_OK ? closed : status;
}

/* rows[nblocks, 3] of what the shard owns, owned by the caller. */
static int64_t *block_rows(const coh_plan *plan, int server, coh_shard *shard)
{
    const int64_t nblocks = coh_shard_nblocks(shard);
    int64_t *rows = calloc((size_t)nblocks * BLOCK_COLUMNS + 1, sizeof *rows);

    for (int64_t i = 0; rows != NULL && i < nblocks; i++) {
        const int64_t block = coh_plan_owned_block(plan, server, i);
        const coh_range range = coh_plan_block(plan, block);
        rows[BLOCK_COLUMNS * i] = range.first;
        rows[BLOCK_COLUMNS * i + 1] = range.count;
        rows[BLOCK_COLUMNS * i + 2] = coh_shard_version(shard, block);
    }
    return rows;
}

static coh_status no_memory(coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM, "no memory for a checkpoint");
}

/* A worker without servers owns everything: part 0, server -1. */
static int server_of(const coh_plan *plan, int part)
{
    return plan->servers == 0 ? -1 : part;
}

static coh_status write_vectors(coh_h5file *file, coh_shard *shard,
                                const int64_t *rows, coh_err *err)
{
    const int64_t count = coh_shard_count(shard);
    char name[32];

    coh_status status = coh_h5_write(file, "values", COH_H5_F32, count, 1,
                                     coh_shard_values(shard), err);
    for (int i = 0; i < coh_shard_nslots(shard) && status == COH_OK; i++) {
        snprintf(name, sizeof name, "slot_%d", i);
        status = coh_h5_write(file, name, COH_H5_F32, count, 1,
                              coh_shard_slot(shard, i), err);
    }
    if (status == COH_OK)
        status =
            coh_h5_write(file, "blocks", COH_H5_I64, coh_shard_nblocks(shard),
                         BLOCK_COLUMNS, rows, err);
    return status;
}

coh_status coh_checkpoint_write_part(const char *folder, const coh_plan *plan,
                                     int part, coh_shard *shard, coh_err *err)
{
    coh_h5file *file = NULL;
    int64_t *rows = block_rows(plan, server_of(plan, part), shard);
    if (rows == NULL)
        return no_memory(err);

    coh_status status = part_file(folder, part, true, &file, err);
    if (status == COH_OK)
        status = write_vectors(file, shard, rows, err);
    status = close_after(&file, status, err);
    free(rows);
    return status;
}

coh_status coh_checkpoint_write_weights(const char *folder, const float *values,
                                        int64_t count, coh_err *err)
{
    const int64_t row[BLOCK_COLUMNS] = { 0, count, 0 };
    coh_h5file *file = NULL;

    coh_status status = part_file(folder, 0, true, &file, err);
    if (status == COH_OK)
        status =
            coh_h5_write(file, "values", COH_H5_F32, count, 1, values, err);
    if (status == COH_OK)
        status = coh_h5_write(file, "blocks", COH_H5_I64, 1, BLOCK_COLUMNS, row,
                              err);
    return close_after(&file, status, err);
}

/* The config as text: a dataset "config". */
static coh_status write_config(coh_h5file *file, const coh_config *config,
                               coh_err *err)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);

    if (out == NULL)
        return no_memory(err);
    coh_config_write(config, out);
    coh_status status = fclose(out) == 0 ? COH_OK : no_memory(err);
    if (status == COH_OK)
        status = coh_h5_write(file, "config", COH_H5_TEXT, (int64_t)length, 1,
                              text, err);
    free(text);
    return status;
}

static coh_status write_manifest(coh_h5file *file, const coh_manifest *manifest,
                                 const coh_config *config, coh_err *err)
{
    coh_status status = COH_OK;

#define X(type, field)                                           \
    if (status == COH_OK)                                        \
        status = coh_h5_write(file, #field, COH_H5_##type, 1, 1, \
                              &manifest->field, err);
    MANIFEST_FIELDS(X)
#undef X
    if (status == COH_OK)
        status = coh_h5_write(file, "normal.shift", COH_H5_F32,
                              manifest->normal.channels, 1,
                              manifest->normal.shift, err);
    if (status == COH_OK)
        status = coh_h5_write(file, "normal.factor", COH_H5_F32,
                              manifest->normal.channels, 1,
                              manifest->normal.factor, err);
    if (status == COH_OK)
        status = write_config(file, config, err);
    return status;
}

/* Rename `folder` to `name`. One that stands there is moved aside and removed
 * afterwards: half removed it would pass for a whole one. */
static coh_status take_place(const char *folder, const char *name, coh_err *err)
{
    char old[PATH_MAX];

    if (!coh_path_exists(name))
        return coh_path_rename(folder, name, err);
    coh_status status = coh_path(old, err, "%s.old.tmp", name);
    if (status == COH_OK)
        status = coh_path_remove(old, err);
    if (status == COH_OK)
        status = coh_path_rename(name, old, err);
    if (status == COH_OK)
        status = coh_path_rename(folder, name, err);
    return status == COH_OK ? coh_path_remove(old, err) : status;
}

coh_status coh_checkpoint_commit(const char *folder, const char *name,
                                 const coh_manifest *manifest,
                                 const coh_config *config, coh_err *err)
{
    char path[PATH_MAX];
    coh_h5file *file = NULL;

    coh_status status = coh_path(path, err, "%s/manifest.h5", folder);
    if (status == COH_OK)
        status = coh_h5_create(path, &file, err);
    if (status == COH_OK)
        status = write_manifest(file, manifest, config, err);
    status = close_after(&file, status, err);
    if (status == COH_OK)
        status = coh_path_sync(folder, err);
    return status == COH_OK ? take_place(folder, name, err) : status;
}

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

coh_status coh_checkpoint_newest(const char *checkpoints, char out[PATH_MAX],
                                 coh_err *err)
{
    struct dirent **names = NULL;
    const int count = scandir(checkpoints, &names, NULL, newest_first);
    coh_status status = COH_PENDING;
    char manifest[PATH_MAX];

    for (int i = 0; i < count && status == COH_PENDING; i++) {
        if (step_of(names[i]->d_name) < 0)
            continue;
        status = coh_path(out, err, "%s/%s", checkpoints, names[i]->d_name);
        if (status == COH_OK)
            status = coh_path(manifest, err, "%s/manifest.h5", out);
        if (status == COH_OK && !coh_path_exists(manifest))
            status = COH_PENDING;
    }
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
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
        const char *end = strrchr(name, '.');
        const bool is_stray = strncmp(name, "step_", 5) == 0 && end != NULL &&
                              strcmp(end, ".tmp") == 0;
        if ((is_stray || (step_of(name) >= 0 && ++seen > keep)) &&
            coh_path(path, NULL, "%s/%s", checkpoints, name) == COH_OK)
            (void)coh_path_remove(path, NULL);
    }
    for (int i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

static coh_status open_manifest(const char *folder, coh_h5file **out,
                                coh_err *err)
{
    char path[PATH_MAX];
    const coh_status status = coh_path(path, err, "%s/manifest.h5", folder);

    return status == COH_OK ? coh_h5_open(path, out, err) : status;
}

coh_status coh_checkpoint_read_manifest(const char *folder, coh_manifest *out,
                                        coh_err *err)
{
    coh_h5file *file = NULL;
    coh_manifest read = { 0 };

    coh_status status = open_manifest(folder, &file, err);
#define X(type, field)    \
    if (status == COH_OK) \
        status = coh_h5_read(file, #field, COH_H5_##type, 1, &read.field, err);
    MANIFEST_FIELDS(X)
#undef X
    const int64_t channels = read.normal.channels;
    if (status == COH_OK && (channels < 0 || channels > COH_CHANNELS_MAX))
        status =
            coh_fail(err, COH_E_DATA, "manifest of '%s' is damaged", folder);
    if (status == COH_OK)
        status = coh_h5_read(file, "normal.shift", COH_H5_F32, channels,
                             read.normal.shift, err);
    if (status == COH_OK)
        status = coh_h5_read(file, "normal.factor", COH_H5_F32, channels,
                             read.normal.factor, err);
    (void)coh_h5_close(&file, NULL);
    if (status == COH_OK)
        *out = read;
    return status;
}

coh_status coh_checkpoint_read_config(const char *folder, char **out,
                                      coh_err *err)
{
    coh_h5file *file = NULL;
    char *text = NULL;
    int64_t length = 0;

    coh_status status = open_manifest(folder, &file, err);
    if (status == COH_OK)
        status = coh_h5_size(file, "config", &length, err);
    if (status == COH_OK) {
        text = calloc((size_t)length + 1, 1);
        status = text == NULL ? no_memory(err)
                              : coh_h5_read(file, "config", COH_H5_TEXT, length,
                                            text, err);
    }
    (void)coh_h5_close(&file, NULL);
    if (status == COH_OK)
        *out = text;
    else
        free(text);
    return status;
}

/* Read the table of blocks of an open part; *out is the caller's. */
static coh_status read_rows(coh_h5file *file, int64_t **out, int64_t *nblocks,
                            coh_err *err)
{
    int64_t size = 0;
    coh_status status = coh_h5_size(file, "blocks", &size, err);
    if (status != COH_OK)
        return status;

    int64_t *rows = calloc((size_t)size + 1, sizeof *rows);
    if (rows == NULL)
        return no_memory(err);
    status = coh_h5_read(file, "blocks", COH_H5_I64, size, rows, err);
    if (status != COH_OK) {
        free(rows);
        return status;
    }
    *nblocks = size / BLOCK_COLUMNS;
    *out = rows;
    return COH_OK;
}

/* Compare with what the shard owns, and take the versions. */
static coh_status take_versions(const coh_plan *plan, int server,
                                coh_shard *shard, const int64_t *rows,
                                int64_t nblocks, coh_err *err)
{
    bool fits = nblocks == coh_shard_nblocks(shard);

    for (int64_t i = 0; fits && i < nblocks; i++) {
        const coh_range range =
            coh_plan_block(plan, coh_plan_owned_block(plan, server, i));
        fits = rows[BLOCK_COLUMNS * i] == range.first &&
               rows[BLOCK_COLUMNS * i + 1] == range.count;
        coh_shard_versions(shard)[i] = rows[BLOCK_COLUMNS * i + 2];
    }
    if (fits)
        return COH_OK;
    return coh_fail(err, COH_E_CONFIG,
                    "its parameters were cut and placed otherwise: resume "
                    "with the servers and exchange.block it was saved with");
}

/* The optimizer state must be of the same kind as the shard's. */
static coh_status check_slots(coh_h5file *file, int nslots, coh_err *err)
{
    char name[32];
    int64_t size;

    for (int i = 0; i < COH_SLOTS_MAX; i++) {
        snprintf(name, sizeof name, "slot_%d", i);
        const bool is_there = coh_h5_size(file, name, &size, NULL) == COH_OK;
        if (is_there != (i < nslots))
            return coh_fail(err, COH_E_CONFIG,
                            "its optimizer state is of another optimizer.rule, "
                            "or it holds weights only: resume with the rule it "
                            "was saved with");
    }
    return COH_OK;
}

coh_status coh_checkpoint_read_part(const char *folder, const coh_plan *plan,
                                    int part, coh_shard *shard, coh_err *err)
{
    coh_h5file *file = NULL;
    int64_t *rows = NULL;
    int64_t nblocks = 0;
    const int64_t count = coh_shard_count(shard);
    char name[32];

    coh_status status = part_file(folder, part, false, &file, err);
    if (status == COH_OK)
        status = read_rows(file, &rows, &nblocks, err);
    if (status == COH_OK)
        status = take_versions(plan, server_of(plan, part), shard, rows,
                               nblocks, err);
    if (status == COH_OK)
        status = check_slots(file, coh_shard_nslots(shard), err);
    if (status == COH_OK)
        status = coh_h5_read(file, "values", COH_H5_F32, count,
                             coh_shard_values(shard), err);
    for (int i = 0; i < coh_shard_nslots(shard) && status == COH_OK; i++) {
        snprintf(name, sizeof name, "slot_%d", i);
        status = coh_h5_read(file, name, COH_H5_F32, count,
                             coh_shard_slot(shard, i), err);
    }
    (void)coh_h5_close(&file, NULL);
    free(rows);
    if (status != COH_OK)
        coh_err_context(err, "checkpoint '%s'", folder);
    return status;
}

/* Put the blocks of one part, values[], where they belong. */
static coh_status scatter(const int64_t *rows, int64_t nblocks,
                          const float *part, int64_t part_count, float *values,
                          int64_t count, coh_err *err)
{
    int64_t at = 0;

    for (int64_t i = 0; i < nblocks; i++) {
        const int64_t first = rows[BLOCK_COLUMNS * i];
        const int64_t n = rows[BLOCK_COLUMNS * i + 1];
        if (first < 0 || n < 0 || n > count || first > count - n ||
            n > part_count - at)
            return coh_fail(err, COH_E_DATA, "its table of blocks is damaged");
        memcpy(values + first, part + at, (size_t)n * sizeof *values);
        at += n;
    }
    if (at != part_count)
        return coh_fail(err, COH_E_DATA, "its table of blocks is damaged");
    return COH_OK;
}

/* *filled grows by what the part holds. */
static coh_status read_part_weights(const char *folder, int part, float *values,
                                    int64_t count, int64_t *filled,
                                    coh_err *err)
{
    coh_h5file *file = NULL;
    int64_t *rows = NULL;
    float *vector = NULL;
    int64_t nblocks = 0, part_count = 0;

    coh_status status = part_file(folder, part, false, &file, err);
    if (status == COH_OK)
        status = read_rows(file, &rows, &nblocks, err);
    if (status == COH_OK)
        status = coh_h5_size(file, "values", &part_count, err);
    if (status == COH_OK) {
        vector = malloc((size_t)part_count * sizeof *vector + 1);
        status = vector == NULL ? no_memory(err)
                                : coh_h5_read(file, "values", COH_H5_F32,
                                              part_count, vector, err);
    }
    if (status == COH_OK)
        status = scatter(rows, nblocks, vector, part_count, values, count, err);
    *filled += part_count;
    (void)coh_h5_close(&file, NULL);
    free(vector);
    free(rows);
    return status;
}

coh_status coh_checkpoint_read_weights(const char *folder,
                                       const coh_manifest *manifest,
                                       float *values, coh_err *err)
{
    const int64_t count = manifest->parameters;
    coh_status status = COH_OK;
    int64_t filled = 0;

    for (int part = 0; part < manifest->parts && status == COH_OK; part++)
        status = read_part_weights(folder, part, values, count, &filled, err);
    if (status == COH_OK && filled != count)
        status =
            coh_fail(err, COH_E_DATA,
                     "its parts hold %" PRId64 " of %" PRId64 " parameters",
                     filled, count);
    if (status != COH_OK)
        coh_err_context(err, "checkpoint '%s'", folder);
    return status;
}
