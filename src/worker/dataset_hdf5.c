/* dataset_hdf5.c - images, labels and weights in HDF5; see dataset_part.h.
 *
 * In the order of this file: labels and weights, reading, opening. Every
 * function but the ops and the opener is called with the lock held.
 *
 * Values come by HDF5's conversion to the machine's float where that is fast.
 * Where it would go bit by bit (half precision; other byte order and another
 * size), a sample is read as it is but in the machine's order, and then turned.
 *
 * Chunk caches: each dataset may keep as many bytes as it has, at most
 * CACHE_BYTES, but at least the chunks that one sample touches: else each
 * sample would unpack them all again.
 */
#include "worker/dataset_part.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/hdf5_lock.h"
#include "worker/dataset_layout.h"
#include "worker/hdf5_array.h"

enum {
    CACHE_BYTES = 64 << 20,
    CACHE_SLOTS_MIN = 521,
    CACHE_SLOTS_MAX = 1000003,
    VECTOR_PIECE = 65536 /* labels or weights read at once */
};

/* How the values of an array become floats. */
typedef enum way { WAY_DIRECT, WAY_HALF, WAY_STAGED } way;

/* One array of images. */
typedef struct image_set {
    char *name; /* owned */
    coh_layout layout;
    int64_t cache_bytes, cache_slots;
    way way;
    hid_t data, space, type; /* type in memory; H5I_INVALID_HID at rest */
} image_set;

typedef struct h5_part {
    const char *name;    /* as given, borrowed from the coh_part */
    char *path, *within; /* its two halves, owned */
    coh_axes axes;
    coh_shape shape;
    int nsets;
    image_set *sets; /* [nsets], owned */
    float *scratch;  /* [C, H, W], owned, NULL where no axes are turned */
    void *staging;   /* [C, H, W] of any type, owned, NULL where not needed */
    hid_t file;      /* H5I_INVALID_HID at rest */
} h5_part;

/* --- HDF5 prints nothing: its reason goes into our message ----------------- */

typedef struct quiet {
    H5E_auto2_t print;
    void *data;
} quiet;

static quiet enter(void)
{
    quiet was = { NULL, NULL };

    coh_hdf5_lock();
    (void)H5Eget_auto2(H5E_DEFAULT, &was.print, &was.data);
    (void)H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return was;
}

static void leave(quiet was)
{
    (void)H5Eset_auto2(H5E_DEFAULT, was.print, was.data);
    coh_hdf5_unlock();
}

/* --- Labels and weights: [N] or [N,1], read at open ------------------------ */

static coh_status check_vector(const h5_part *self, const char *key,
                               const char *name, const coh_layout *layout,
                               int64_t count, coh_err *err)
{
    char text[96];
    const bool is_vector =
        layout->rank == 1 || (layout->rank == 2 && layout->dims[1] == 1);

    if (is_vector && layout->dims[0] == count)
        return COH_OK;
    return coh_fail(err, COH_E_DATA,
                    "%s: dataset '%s' (%s) is %s; for %" PRId64
                    " images it must be [%" PRId64 "] or [%" PRId64 ",1]",
                    self->name, name, key,
                    coh_layout_text(layout, text, sizeof text), count, count,
                    count);
}

/* values[count] from element `first` on. */
static coh_status read_piece(const h5_part *self, hid_t data, int rank,
                             int64_t first, int64_t count, double *values,
                             coh_err *err)
{
    const hsize_t start[2] = { (hsize_t)first, 0 };
    const hsize_t block[2] = { (hsize_t)count, 1 };
    const hid_t space = H5Dget_space(data);
    const hid_t memory = H5Screate_simple(1, block, NULL);
    coh_status status = COH_OK;

    COH_ASSERT(rank <= 2);
    if (H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, block, NULL) <
            0 ||
        H5Dread(data, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values) <
            0)
        status = coh_hdf5_fail(err, self->name, "cannot read");
    (void)H5Sclose(memory);
    (void)H5Sclose(space);
    return status;
}

static coh_status set_weights(coh_part *part, const double *values,
                              int64_t first, int64_t count, coh_err *err)
{
    for (int64_t i = 0; i < count; i++) {
        const float weight = (float)values[i];
        if (!__builtin_isfinite(weight))
            return coh_fail(err, COH_E_DATA,
                            "sample %" PRId64 " has the weight %g, which is "
                            "not a finite float32",
                            first + i, values[i]);
        part->weights[first + i] = weight;
    }
    return COH_OK;
}

/* Read labels (classes > 0) or weights (classes 0) in pieces. */
static coh_status take_vector(const h5_part *self, const char *key,
                              const char *plain_name, int64_t classes,
                              coh_part *part, coh_err *err)
{
    char *name = coh_layout_name(self->within, plain_name);
    double *values = malloc(VECTOR_PIECE * sizeof *values);
    hid_t data = H5I_INVALID_HID;
    coh_layout layout = { 0 };
    coh_status status = COH_OK;

    if (name == NULL || values == NULL)
        status = coh_fail(err, COH_E_NOMEM, "%s: no memory", self->name);
    if (status == COH_OK)
        status = coh_hdf5_open_array(self->file, self->name, key, name, &data,
                                     &layout, err);
    if (status == COH_OK)
        status = check_vector(self, key, name, &layout, part->count, err);
    for (int64_t i = 0; status == COH_OK && i < part->count;
         i += VECTOR_PIECE) {
        const int64_t left = part->count - i;
        const int64_t count = left < VECTOR_PIECE ? left : VECTOR_PIECE;
        status = read_piece(self, data, layout.rank, i, count, values, err);
        if (status != COH_OK)
            break;
        status = classes > 0
                     ? coh_part_set_labels(part, classes, values, i, count, err)
                     : set_weights(part, values, i, count, err);
        if (status != COH_OK)
            coh_err_context(err, "%s: dataset '%s' (%s)", self->name, name,
                            key);
    }
    if (data >= 0)
        (void)H5Dclose(data);
    free(values);
    free(name);
    return status;
}

static coh_status take_vectors(const h5_part *self, const coh_config *config,
                               int64_t classes, coh_part *part, coh_err *err)
{
    const size_t room = (size_t)part->count + 1;
    const bool has_weights =
        config->data.weights != NULL && config->data.weights[0] != '\0';

    part->labels = malloc(room * sizeof *part->labels);
    if (has_weights)
        part->weights = malloc(room * sizeof *part->weights);
    if (part->labels == NULL || (has_weights && part->weights == NULL))
        return coh_fail(err, COH_E_NOMEM,
                        "%s: no memory for the labels of %" PRId64 " samples",
                        self->name, part->count);

    coh_status status = take_vector(self, "data.labels", config->data.labels,
                                    classes, part, err);
    if (status == COH_OK && has_weights)
        status = take_vector(self, "data.weights", config->data.weights, 0,
                             part, err);
    return status;
}

/* --- Reading --------------------------------------------------------------- */

static void rest(void *part)
{
    h5_part *self = part;
    const quiet was = enter();

    for (int i = 0; i < self->nsets; i++) {
        if (self->sets[i].space >= 0)
            (void)H5Sclose(self->sets[i].space);
        if (self->sets[i].type >= 0)
            (void)H5Tclose(self->sets[i].type);
        if (self->sets[i].data >= 0)
            (void)H5Dclose(self->sets[i].data);
        self->sets[i].space = self->sets[i].type = H5I_INVALID_HID;
        self->sets[i].data = H5I_INVALID_HID;
    }
    if (self->file >= 0)
        (void)H5Fclose(self->file);
    self->file = H5I_INVALID_HID;
    leave(was);
}

static bool is_half(hid_t type)
{
    size_t sign, exponent, exponent_bits, mantissa, mantissa_bits;

    return H5Tget_class(type) == H5T_FLOAT && H5Tget_size(type) == 2 &&
           H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa,
                         &mantissa_bits) >= 0 &&
           sign == 15 && exponent == 10 && exponent_bits == 5 &&
           mantissa == 0 && mantissa_bits == 10 && H5Tget_ebias(type) == 15;
}

/* Choose the way of an array and its type in memory, the caller's to close. */
static hid_t memory_type(hid_t data, way *out)
{
    const H5T_order_t order = H5Tget_order(H5T_NATIVE_INT);
    const hid_t type = H5Dget_type(data);
    const size_t size = H5Tget_size(type);
    hid_t memory = H5I_INVALID_HID;

    *out = WAY_DIRECT;
    if (is_half(type)) {
        *out = WAY_HALF;
        memory = H5Tcopy(type);
        (void)H5Tset_order(memory, order);
    } else if (size > 1 && size <= sizeof(double) &&
               H5Tget_order(type) != order &&
               !(size == sizeof(float) && H5Tget_class(type) == H5T_FLOAT)) {
        *out = WAY_STAGED;
        memory = H5Tget_native_type(type, H5T_DIR_DEFAULT);
        if (memory >= 0 && H5Tget_size(memory) > sizeof(double)) {
            (void)H5Tclose(memory);
            memory = H5I_INVALID_HID;
        }
    }
    (void)H5Tclose(type);
    if (memory < 0) {
        *out = WAY_DIRECT;
        memory = H5Tcopy(H5T_NATIVE_FLOAT);
    }
    return memory;
}

static coh_status wake_set(h5_part *self, image_set *set, coh_err *err)
{
    hsize_t dims[H5S_MAX_RANK] = { 0 };
    const hid_t access = H5Pcreate(H5P_DATASET_ACCESS);

    (void)H5Pset_chunk_cache(access, (size_t)set->cache_slots,
                             (size_t)set->cache_bytes,
                             H5D_CHUNK_CACHE_W0_DEFAULT);
    set->data = H5Dopen2(self->file, set->name, access);
    (void)H5Pclose(access);
    if (set->data >= 0) {
        set->space = H5Dget_space(set->data);
        set->type = memory_type(set->data, &set->way);
    }

    const int rank =
        set->space >= 0 ? H5Sget_simple_extent_dims(set->space, dims, NULL) : 0;
    bool is_same = rank == set->layout.rank;
    for (int i = 0; is_same && i < rank; i++)
        is_same = (int64_t)dims[i] >= set->layout.dims[i];
    if (!is_same)
        return coh_fail(err, COH_E_DATA,
                        "%s: dataset '%s' changed since the file was first "
                        "opened: leave the files alone while a job runs",
                        self->name, set->name);
    return COH_OK;
}

/* Open the file and its image arrays, if they are not. */
static coh_status wake(h5_part *self, coh_err *err)
{
    if (self->file < 0)
        self->file = H5Fopen(self->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (self->file < 0)
        return coh_hdf5_fail(err, self->name, "cannot open it again");
    for (int i = 0; i < self->nsets; i++) {
        if (self->sets[i].space >= 0)
            continue;
        const coh_status status = wake_set(self, &self->sets[i], err);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* What was read into staging becomes floats[count]. */
static coh_status unpack(const h5_part *self, const image_set *set,
                         int64_t count, float *floats, coh_err *err)
{
    if (set->way == WAY_HALF) {
        coh_layout_from_half(self->staging, count, floats);
        return COH_OK;
    }
    if (H5Tconvert(set->type, H5T_NATIVE_FLOAT, (size_t)count, self->staging,
                   NULL, H5P_DEFAULT) < 0)
        return coh_hdf5_fail(err, self->name, "cannot convert");
    memcpy(floats, self->staging, (size_t)count * sizeof *floats);
    return COH_OK;
}

/* Array s, samples [first, first + count), into its channels of
 * images[count, C, H, W]; count is 1 where the array is staged. HDF5 is fast
 * only where the two selections have one shape, so memory is described with
 * the array's own axes: [count, H, W] inside [count, C H, W] where arrays are
 * channels. */
static coh_status read_run(h5_part *self, int s, int64_t first, int64_t count,
                           float *images, coh_err *err)
{
    const image_set *set = &self->sets[s];
    const int rank = set->layout.rank;
    const bool is_direct = set->way == WAY_DIRECT;
    const int64_t values = coh_shape_count(self->shape) / self->nsets;
    hsize_t from[COH_AXES_MAX] = { (hsize_t)first }, to[COH_AXES_MAX] = { 0 };
    hsize_t block[COH_AXES_MAX] = { (hsize_t)count }, shape[COH_AXES_MAX];
    coh_status status = COH_OK;

    for (int i = 1; i < rank; i++)
        block[i] = (hsize_t)set->layout.dims[i];
    memcpy(shape, block, sizeof shape);
    if (is_direct) {
        shape[1] *= (hsize_t)self->nsets;
        to[1] = (hsize_t)s * block[1];
    }
    const hid_t memory = H5Screate_simple(rank, shape, NULL);
    if (H5Sselect_hyperslab(memory, H5S_SELECT_SET, to, NULL, block, NULL) <
            0 ||
        H5Sselect_hyperslab(set->space, H5S_SELECT_SET, from, NULL, block,
                            NULL) < 0 ||
        H5Dread(set->data, set->type, memory, set->space, H5P_DEFAULT,
                is_direct ? images : self->staging) < 0)
        status = coh_hdf5_fail(err, self->name, "cannot read");
    (void)H5Sclose(memory);
    if (status == COH_OK && !is_direct)
        status = unpack(self, set, values, images + s * values, err);
    if (status != COH_OK)
        coh_err_context(err, "samples %" PRId64 " to %" PRId64 " of '%s'",
                        first, first + count - 1, set->name);
    return status;
}

/* How many of rows[count] follow each other in the file and in memory. */
static int64_t run_length(const coh_part_row *rows, int64_t count)
{
    int64_t n = 1;

    while (n < count && rows[n].sample == rows[0].sample + n &&
           rows[n].row == rows[0].row + n)
        n++;
    return n;
}

static coh_status read_rows(void *part, const coh_part_row *rows, int64_t count,
                            float *images, coh_err *err)
{
    h5_part *self = part;
    const int64_t size = coh_shape_count(self->shape);
    const quiet was = enter();
    coh_status status = wake(self, err);

    for (int64_t r = 0; status == COH_OK && r < count;) {
        const int64_t n =
            self->staging != NULL ? 1 : run_length(rows + r, count - r);
        float *to = images + rows[r].row * size;
        for (int s = 0; status == COH_OK && s < self->nsets; s++)
            status = read_run(self, s, rows[r].sample, n, to, err);
        for (int64_t i = 0; self->scratch != NULL && i < n; i++)
            coh_layout_to_nchw(self->shape, to + i * size, self->scratch);
        r += n;
    }
    leave(was);
    return status;
}

static void close_part(void *part)
{
    h5_part *self = part;

    rest(self);
    for (int i = 0; i < self->nsets; i++)
        free(self->sets[i].name);
    free(self->sets);
    free(self->scratch);
    free(self->staging);
    free(self->path);
    free(self->within);
    free(self);
}

static const coh_part_ops hdf5_ops = { .read = read_rows,
                                       .rest = rest,
                                       .close = close_part };

/* --- Opening --------------------------------------------------------------- */

/* Choose the chunk cache: see the head of this file. */
static void size_cache(hid_t data, image_set *set)
{
    hsize_t chunk[COH_AXES_MAX] = { 0 };
    const int rank = set->layout.rank;
    const hid_t plist = H5Dget_create_plist(data), type = H5Dget_type(data);
    double bytes = (double)H5Tget_size(type), all, sample, chunks;

    set->cache_bytes = 0;
    set->cache_slots = CACHE_SLOTS_MIN;
    if (H5Pget_layout(plist) == H5D_CHUNKED &&
        H5Pget_chunk(plist, rank, chunk) == rank) {
        for (int i = 0; i < rank; i++)
            bytes *= (double)chunk[i];
        sample = bytes;
        for (int i = 1; i < rank; i++)
            sample *= ceil((double)set->layout.dims[i] / (double)chunk[i]);
        all = sample * ceil((double)set->layout.dims[0] / (double)chunk[0]);
        const double most = fmax(CACHE_BYTES, sample);
        set->cache_bytes = (int64_t)fmin(all, most);
        chunks = (double)set->cache_bytes / bytes;
        set->cache_slots = (int64_t)fmin(fmax(10 * chunks + 1, CACHE_SLOTS_MIN),
                                         CACHE_SLOTS_MAX);
    }
    (void)H5Pclose(plist);
    (void)H5Tclose(type);
}

static coh_status open_set(h5_part *self, const char *name, image_set *set,
                           coh_err *err)
{
    hid_t data = H5I_INVALID_HID;
    set->name = coh_layout_name(self->within, name);
    if (set->name == NULL)
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", self->name);

    const coh_status status =
        coh_hdf5_open_array(self->file, self->name, "data.images", set->name,
                            &data, &set->layout, err);
    if (status != COH_OK)
        return status;
    size_cache(data, set);
    set->type = memory_type(data, &set->way);
    (void)H5Dclose(data);
    return COH_OK;
}

static bool is_same_layout(const coh_layout *a, const coh_layout *b)
{
    return a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof a->dims[0]) == 0;
}

static coh_status open_sets(h5_part *self, const coh_list *images,
                            coh_part *part, coh_err *err)
{
    char *plain[1] = { (char[]){ "data" } };
    char **names = images->count > 0 ? images->items : plain;
    char a[96], b[96];

    for (int i = 0; i < self->nsets; i++) {
        image_set *set = &self->sets[i];
        const coh_status status = open_set(self, names[i], set, err);
        if (status != COH_OK)
            return status;
        if (!is_same_layout(&self->sets[0].layout, &set->layout))
            return coh_fail(
                err, COH_E_DATA,
                "%s: '%s' is %s but '%s' is %s: channels must agree",
                self->name, self->sets[0].name,
                coh_layout_text(&self->sets[0].layout, a, sizeof a), set->name,
                coh_layout_text(&set->layout, b, sizeof b));
        part->buffer_bytes += set->cache_bytes;
    }
    const coh_status status =
        coh_layout_shape(&self->sets[0].layout, self->nsets, self->axes,
                         &part->count, &part->shape, err);
    if (status != COH_OK)
        coh_err_context(err, "%s: dataset '%s'", self->name,
                        self->sets[0].name);
    self->shape = part->shape;
    return status;
}

/* What needs no HDF5. On failure *out is half-built, to be closed. */
static coh_status new_part(const coh_config *config, const char *file,
                           coh_part *part, coh_err *err)
{
    const int named = config->data.images.count;
    h5_part *self = calloc(1, sizeof *self);
    part->name = strdup(file);
    if (self == NULL || part->name == NULL) {
        free(self);
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", file);
    }
    part->self = self;
    part->ops = &hdf5_ops;
    self->name = part->name;
    self->axes = (coh_axes)config->data.axes;
    self->file = H5I_INVALID_HID;
    self->sets = calloc((size_t)named + 1, sizeof *self->sets);
    if (self->sets == NULL)
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", file);
    self->nsets = named > 0 ? named : 1;
    for (int i = 0; i < self->nsets; i++)
        self->sets[i].data = self->sets[i].space = self->sets[i].type =
            H5I_INVALID_HID;
    return coh_layout_split(file, &self->path, &self->within, err);
}

static coh_status load_part(h5_part *self, const coh_config *config,
                            int64_t classes, coh_part *part, coh_err *err)
{
    const quiet was = enter();
    coh_status status = COH_OK;

    self->file = H5Fopen(self->path, H5F_ACC_RDONLY, H5P_DEFAULT);
    if (self->file < 0)
        status = coh_hdf5_fail(err, self->name, "cannot open as HDF5");
    if (status == COH_OK)
        status = open_sets(self, &config->data.images, part, err);
    if (status == COH_OK)
        status = take_vectors(self, config, classes, part, err);
    leave(was);
    return status;
}

/* Memory for turning axes and types, where that is needed. */
static coh_status alloc_buffers(h5_part *self, coh_err *err)
{
    const size_t count = (size_t)coh_shape_count(self->shape) + 1;
    bool is_staged = false;
    const bool is_turned =
        self->axes == COH_AXES_NHWC && self->sets[0].layout.rank == 4;

    for (int i = 0; i < self->nsets; i++)
        is_staged = is_staged || self->sets[i].way != WAY_DIRECT;
    if (is_turned)
        self->scratch = malloc(count * sizeof *self->scratch);
    if (is_staged)
        self->staging = malloc(count * sizeof(double));
    if ((is_turned && self->scratch == NULL) ||
        (is_staged && self->staging == NULL))
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", self->name);
    return COH_OK;
}

coh_status coh_part_open_hdf5(const coh_config *config, const char *file,
                              int64_t classes, coh_part *out, coh_err *err)
{
    coh_part part = { 0 };
    coh_status status = new_part(config, file, &part, err);

    if (status == COH_OK)
        status = load_part(part.self, config, classes, &part, err);
    if (status == COH_OK)
        status = alloc_buffers(part.self, err);
    if (status != COH_OK) {
        coh_part_close(&part);
        return status;
    }
    rest(part.self); /* thousands of files may follow */
    *out = part;
    return COH_OK;
}
