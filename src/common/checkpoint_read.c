/* checkpoint_read.c - see checkpoint.h; here what reads. */
#include "common/checkpoint_layout.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
    COH_MANIFEST_FIELDS(X)
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

/* A text of an open manifest, *out owned by the caller. */
static coh_status read_text(coh_h5file *file, const char *name, char **out,
                            coh_err *err)
{
    int64_t length = 0;
    coh_status status = coh_h5_size(file, name, &length, err);
    char *text = status == COH_OK ? calloc((size_t)length + 1, 1) : NULL;

    if (status == COH_OK)
        status = text == NULL
                     ? coh_no_memory(err)
                     : coh_h5_read(file, name, COH_H5_TEXT, length, text, err);
    if (status == COH_OK)
        *out = text;
    else
        free(text);
    return status;
}

coh_status coh_checkpoint_read_config(const char *folder, char **out,
                                      coh_err *err)
{
    coh_h5file *file = NULL;

    coh_status status = open_manifest(folder, &file, err);
    if (status == COH_OK)
        status = read_text(file, "config", out, err);
    (void)coh_h5_close(&file, NULL);
    return status;
}

coh_status coh_checkpoint_read_choices(const char *folder, char **out,
                                       coh_err *err)
{
    coh_h5file *file = NULL;
    int64_t length = 0;

    coh_status status = open_manifest(folder, &file, err);
    if (status != COH_OK)
        return status;
    if (coh_h5_size(file, "choices", &length, NULL) == COH_OK) {
        status = read_text(file, "choices", out, err);
    } else {
        *out = calloc(1, 1);
        status = *out == NULL ? coh_no_memory(err) : COH_OK;
    }
    (void)coh_h5_close(&file, NULL);
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
        return coh_no_memory(err);
    status = coh_h5_read(file, "blocks", COH_H5_I64, size, rows, err);
    if (status != COH_OK) {
        free(rows);
        return status;
    }
    *nblocks = size / COH_BLOCK_COLUMNS;
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
        fits = rows[COH_BLOCK_COLUMNS * i] == range.first &&
               rows[COH_BLOCK_COLUMNS * i + 1] == range.count;
        coh_shard_versions(shard)[i] = rows[COH_BLOCK_COLUMNS * i + 2];
    }
    if (fits)
        return COH_OK;
    return coh_fail(err, COH_E_CONFIG,
                    "its parameters were cut and placed otherwise: resume "
                    "with the servers, exchange.placement and block it was "
                    "saved with");
}

/* The optimizer state must be of the same kind as the shard's, if that has any.
 */
static coh_status check_slots(coh_h5file *file, int nslots, coh_err *err)
{
    char name[32];
    int64_t size;

    for (int i = 0; i < COH_SLOTS_MAX && nslots > 0; i++) {
        snprintf(name, sizeof name, "slot_%d", i);
        const bool is_there = coh_h5_size(file, name, &size, NULL) == COH_OK;
        if (is_there != (i < nslots))
            return coh_fail(err, COH_E_CONFIG,
                            "its optimizer state is of another optimizer.rule, "
                            "or it holds weights only (as with exchange.every "
                            "above 1): resume with the keys it was saved with");
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

    coh_status status = coh_part_file(folder, part, false, &file, err);
    if (status == COH_OK)
        status = read_rows(file, &rows, &nblocks, err);
    if (status == COH_OK)
        status = take_versions(plan, coh_part_server(plan, part), shard, rows,
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
        const int64_t first = rows[COH_BLOCK_COLUMNS * i];
        const int64_t n = rows[COH_BLOCK_COLUMNS * i + 1];
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

    coh_status status = coh_part_file(folder, part, false, &file, err);
    if (status == COH_OK)
        status = read_rows(file, &rows, &nblocks, err);
    if (status == COH_OK)
        status = coh_h5_size(file, "values", &part_count, err);
    if (status == COH_OK) {
        vector = malloc((size_t)part_count * sizeof *vector + 1);
        status = vector == NULL ? coh_no_memory(err)
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
