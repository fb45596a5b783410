/* dataset_idx.c - the files of MNIST, gzip or not; see dataset_part.h.
 *
 * A file is 0, 0, the element type, the rank, then each dimension as a
 * big-endian uint32, then the elements, big-endian, last dimension fastest
 * (http://yann.lecun.com/exdb/mnist). zlib reads both plain and gzip files.
 */
#include "worker/dataset_part.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>

#include <zlib.h>

enum {
    RANK_MAX = 4,
    FIRST_BYTES = 1 << 20 /* what is allocated on the header's word alone */
};

/* One file in memory, elements as they lie in it. */
typedef struct idx_file {
    int type, rank;
    int64_t dims[RANK_MAX]; /* [rank] */
    int64_t count;          /* elements */
    unsigned char *bytes;   /* [count x size of the type], owned */
} idx_file;

typedef struct idx_images {
    idx_file file;
    int64_t pixels; /* elements of a sample */
} idx_images;

static int element_bytes(int type)
{
    switch (type) {
    case 0x08: /* uint8 */
    case 0x09: /* int8 */
        return 1;
    case 0x0B: /* int16 */
        return 2;
    case 0x0C: /* int32 */
    case 0x0D: /* float32 */
        return 4;
    case 0x0E: /* float64 */
        return 8;
    default:
        return 0;
    }
}

static uint64_t big_endian(const unsigned char *bytes, int size)
{
    uint64_t value = 0;
    for (int i = 0; i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

static double decode(int type, const unsigned char *bytes)
{
    const uint64_t bits = big_endian(bytes, element_bytes(type));
    const uint32_t low = (uint32_t)bits;
    float f4;
    double f8;

    switch (type) {
    case 0x09:
        return (int8_t)low;
    case 0x0B:
        return (int16_t)low;
    case 0x0C:
        return (int32_t)low;
    case 0x0D:
        memcpy(&f4, &low, sizeof f4);
        return f4;
    case 0x0E:
        memcpy(&f8, &bits, sizeof f8);
        return f8;
    default:
        return low;
    }
}

/* Read exactly `size` bytes into bytes. */
static coh_status read_bytes(gzFile gz, const char *path, void *bytes,
                             unsigned size, coh_err *err)
{
    const int got = gzread(gz, bytes, size);
    int code = Z_OK;

    if (got == (int)size)
        return COH_OK;
    const char *why = gzerror(gz, &code);
    if (code == Z_ERRNO)
        return coh_fail(err, COH_E_DATA, "%s: cannot read: %s", path,
                        strerror(errno));
    if (code != Z_OK && code != Z_BUF_ERROR)
        return coh_fail(err, COH_E_DATA,
                        "%s: damaged gzip data (%s): fetch the file again",
                        path, why);
    return coh_fail(err, COH_E_DATA,
                    "%s: the file is cut short: its header promises more than "
                    "it holds; fetch it again",
                    path);
}

/* Fill type, rank, dims and count of *file. */
static coh_status read_header(gzFile gz, const char *path, idx_file *file,
                              coh_err *err)
{
    unsigned char head[4], dim[4];
    coh_status status = read_bytes(gz, path, head, sizeof head, err);
    if (status != COH_OK)
        return status;
    if (head[0] != 0 || head[1] != 0 || element_bytes(head[2]) == 0)
        return coh_fail(err, COH_E_DATA,
                        "%s: starts with %02x %02x %02x %02x: not an idx file "
                        "(00 00, a type 08 to 0e, the rank); see data.kind",
                        path, head[0], head[1], head[2], head[3]);
    if (head[3] < 1 || head[3] > RANK_MAX)
        return coh_fail(err, COH_E_DATA,
                        "%s: has %d dimensions; images have 3 (N, H, W) or 4 "
                        "(N, C, H, W), labels 1",
                        path, head[3]);

    file->type = head[2];
    file->rank = head[3];
    file->count = 1;
    for (int i = 0; i < file->rank; i++) {
        status = read_bytes(gz, path, dim, sizeof dim, err);
        if (status != COH_OK)
            return status;
        file->dims[i] = (int64_t)big_endian(dim, 4);
        if (__builtin_mul_overflow(file->count, file->dims[i], &file->count) ||
            file->count > INT64_MAX / 8)
            return coh_fail(err, COH_E_DATA,
                            "%s: the header claims more elements than any "
                            "file can hold: damaged?",
                            path);
    }
    return COH_OK;
}

/* Read `total` bytes into *bytes (owned by the caller, also on failure). The
 * header may lie: memory grows only with what is really there. */
static coh_status read_elements(gzFile gz, const char *path, int64_t total,
                                unsigned char **bytes, coh_err *err)
{
    int64_t have = 0, room = 0;

    while (have < total) {
        room = room == 0 ? FIRST_BYTES : 2 * room;
        if (room > total)
            room = total;
        unsigned char *grown = realloc(*bytes, (size_t)room);
        if (grown == NULL)
            return coh_fail(err, COH_E_NOMEM,
                            "%s: no memory for its %" PRId64 " bytes", path,
                            total);
        *bytes = grown;
        while (have < room) {
            const int64_t left = room - have;
            const unsigned size = (unsigned)(left < 1 << 30 ? left : 1 << 30);
            const coh_status status =
                read_bytes(gz, path, *bytes + have, size, err);
            if (status != COH_OK)
                return status;
            have += size;
        }
    }
    return COH_OK;
}

/* Nothing may follow; for gzip this is also where the checksum is compared. */
static coh_status check_end(gzFile gz, const char *path, coh_err *err)
{
    char extra;
    int code = Z_OK;
    const int got = gzread(gz, &extra, 1);

    const char *why = gzerror(gz, &code);

    if (got == 0 && code == Z_OK)
        return COH_OK;
    if (got <= 0)
        return coh_fail(err, COH_E_DATA,
                        "%s: damaged gzip data (%s): fetch the file again",
                        path, why);
    return coh_fail(err, COH_E_DATA,
                    "%s: bytes follow after the last element: the header does "
                    "not belong to this file",
                    path);
}

/* A plain file's size is known: see at once whether the header can be true. */
static coh_status check_size(gzFile gz, const char *path, const idx_file *file,
                             coh_err *err)
{
    const int64_t want =
        4 + 4 * (int64_t)file->rank + file->count * element_bytes(file->type);
    struct stat info;

    if (!gzdirect(gz) || stat(path, &info) != 0 || !S_ISREG(info.st_mode) ||
        info.st_size == want)
        return COH_OK;
    return coh_fail(err, COH_E_DATA,
                    "%s: has %" PRId64 " bytes, its header promises %" PRId64
                    ": %s; fetch it again",
                    path, (int64_t)info.st_size, want,
                    info.st_size < want ? "the file is cut short"
                                        : "bytes follow the last element");
}

static coh_status load(const char *path, idx_file *out, coh_err *err)
{
    gzFile gz = gzopen(path, "rb");
    if (gz == NULL)
        return coh_fail(err, COH_E_DATA, "%s: cannot open: %s", path,
                        strerror(errno));
    (void)gzbuffer(gz, 1 << 18);

    idx_file file = { 0 };
    coh_status status = read_header(gz, path, &file, err);
    if (status == COH_OK)
        status = check_size(gz, path, &file, err);
    if (status == COH_OK)
        status = read_elements(gz, path, file.count * element_bytes(file.type),
                               &file.bytes, err);
    if (status == COH_OK)
        status = check_end(gz, path, err);
    (void)gzclose(gz); /* read-only: every fault was seen above */

    if (status != COH_OK) {
        free(file.bytes);
        return status;
    }
    *out = file;
    return COH_OK;
}

/* --- The part ------------------------------------------------------------ */

static coh_status read_rows(void *self, const coh_part_row *rows, int64_t count,
                            float *images, coh_err *err)
{
    (void)err;
    const idx_images *part = self;
    const int type = part->file.type;
    const int64_t pixels = part->pixels;
    const int64_t size = element_bytes(type);

    for (int64_t r = 0; r < count; r++) {
        float *image = images + rows[r].row * pixels;
        const unsigned char *bytes =
            part->file.bytes + rows[r].sample * pixels * size;
        if (type == 0x08) {
            for (int64_t i = 0; i < pixels; i++)
                image[i] = bytes[i];
        } else {
            for (int64_t i = 0; i < pixels; i++)
                image[i] = (float)decode(type, bytes + i * size);
        }
    }
    return COH_OK;
}

static void close_images(void *self)
{
    idx_images *part = self;

    free(part->file.bytes);
    free(part);
}

static const coh_part_ops idx_ops = { .read = read_rows,
                                      .close = close_images };

static coh_status open_images(const char *path, coh_part *part, coh_err *err)
{
    idx_images *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", path);
    part->self = self;
    part->ops = &idx_ops;

    coh_status status = load(path, &self->file, err);
    if (status != COH_OK)
        return status;
    const idx_file *file = &self->file;
    const int rank = file->rank;
    if (rank < 3)
        return coh_fail(err, COH_E_DATA,
                        "%s: has %d dimension%s; images have 3 (N, H, W) or 4 "
                        "(N, C, H, W): are images and labels swapped?",
                        path, rank, rank == 1 ? "" : "s");

    part->count = file->dims[0];
    part->shape = (coh_shape){ rank == 4 ? file->dims[1] : 1,
                               file->dims[rank - 2], file->dims[rank - 1] };
    self->pixels = coh_shape_count(part->shape);
    return COH_OK;
}

/* The labels of an open part, from their own file. */
static coh_status take_labels(const char *path, const idx_file *file,
                              int64_t classes, coh_part *part, coh_err *err)
{
    if (file->rank != 1)
        return coh_fail(err, COH_E_DATA,
                        "%s: has %d dimensions; labels have 1: are images and "
                        "labels swapped?",
                        path, file->rank);
    if (file->count != part->count)
        return coh_fail(err, COH_E_DATA,
                        "%s holds %" PRId64 " images but %s %" PRId64
                        " labels: they do not belong together",
                        part->name, part->count, path, file->count);

    part->labels = malloc((size_t)(part->count + 1) * sizeof *part->labels);
    if (part->labels == NULL)
        return coh_fail(err, COH_E_NOMEM, "%s: no memory for labels", path);
    const int size = element_bytes(file->type);
    for (int64_t i = 0; i < part->count; i++) {
        const double value = decode(file->type, file->bytes + i * size);
        const coh_status status =
            coh_part_set_labels(part, classes, &value, i, 1, err);
        if (status != COH_OK) {
            coh_err_context(err, "%s", path);
            return status;
        }
    }
    return COH_OK;
}

coh_status coh_part_open_idx(const char *images, const char *labels,
                             int64_t classes, coh_part *out, coh_err *err)
{
    coh_part part = { .name = strdup(images) };
    idx_file file = { 0 };
    coh_status status =
        part.name == NULL ? coh_fail(err, COH_E_NOMEM, "%s: no memory", images)
                          : open_images(images, &part, err);
    if (status == COH_OK)
        status = load(labels, &file, err);
    if (status == COH_OK)
        status = take_labels(labels, &file, classes, &part, err);
    free(file.bytes);

    if (status != COH_OK) {
        coh_part_close(&part);
        return status;
    }
    *out = part;
    return COH_OK;
}
