/* checkpoint.c - see checkpoint.h; here what writes. */
#include "common/checkpoint_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

coh_status coh_checkpoint_begin(const char *folder, coh_err *err)
{
    const coh_status status = coh_path_remove(folder, err);
    return status == COH_OK ? coh_folder_make(folder, err) : status;
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
    int64_t *rows =
        calloc((size_t)nblocks * COH_BLOCK_COLUMNS + 1, sizeof *rows);

    for (int64_t i = 0; rows != NULL && i < nblocks; i++) {
        const int64_t block = coh_plan_owned_block(plan, server, i);
        const coh_range range = coh_plan_block(plan, block);
        rows[COH_BLOCK_COLUMNS * i] = range.first;
        rows[COH_BLOCK_COLUMNS * i + 1] = range.count;
        rows[COH_BLOCK_COLUMNS * i + 2] = coh_shard_version(shard, block);
    }
    return rows;
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
                         COH_BLOCK_COLUMNS, rows, err);
    return status;
}

coh_status coh_checkpoint_write_part(const char *folder, const coh_plan *plan,
                                     int part, coh_shard *shard, coh_err *err)
{
    coh_h5file *file = NULL;
    int64_t *rows = block_rows(plan, coh_part_server(plan, part), shard);
    if (rows == NULL)
        return coh_no_memory(err);

    coh_status status = coh_part_file(folder, part, true, &file, err);
    if (status == COH_OK)
        status = write_vectors(file, shard, rows, err);
    status = close_after(&file, status, err);
    free(rows);
    return status;
}

coh_status coh_checkpoint_write_weights(const char *folder, const float *values,
                                        int64_t count, coh_err *err)
{
    const int64_t row[COH_BLOCK_COLUMNS] = { 0, count, 0 };
    coh_h5file *file = NULL;

    coh_status status = coh_part_file(folder, 0, true, &file, err);
    if (status == COH_OK)
        status =
            coh_h5_write(file, "values", COH_H5_F32, count, 1, values, err);
    if (status == COH_OK)
        status = coh_h5_write(file, "blocks", COH_H5_I64, 1, COH_BLOCK_COLUMNS,
                              row, err);
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
        return coh_no_memory(err);
    coh_config_write(config, out);
    coh_status status = fclose(out) == 0 ? COH_OK : coh_no_memory(err);
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
    COH_MANIFEST_FIELDS(X)
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
    const char *choices = manifest->choices;
    if (status == COH_OK && choices != NULL && choices[0] != '\0')
        status = coh_h5_write(file, "choices", COH_H5_TEXT,
                              (int64_t)strlen(choices), 1, choices, err);
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
