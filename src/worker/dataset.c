/* dataset.c - see dataset.h.
 *
 * A set is its parts (files) one after the other. A read sorts its samples, so
 * that each file is opened once and each chunk unpacked once for a batch.
 */
#include "worker/dataset.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/finite.h"
#include "worker/dataset_normal.h"
#include "worker/dataset_part.h"

/* Bounds on what all parts hold between two reads. */
enum { AWAKE_MAX = 64 };                            /* open files */
static const int64_t buffers_max_bytes = 512 << 20; /* beyond the one in use */

typedef struct slot {
    coh_part part;
    int64_t first; /* its first sample in the set */
    bool is_awake;
    uint64_t used; /* when, by the count of runs read */
} slot;

struct coh_dataset {
    coh_shape input;
    int64_t count, classes;
    int64_t targets; /* T */
    int nslots;
    slot *slots; /* [nslots], owned */
    bool has_log1p, has_loss_weights;
    coh_normal normal;
    coh_part_row *order; /* [order_room], owned: the sorted rows of a read */
    int64_t order_room;
    uint64_t clock;
    int awake;
    int64_t awake_bytes;
};

/* --- Opening --------------------------------------------------------------- */

static coh_status check_shape(const coh_dataset *self, const coh_part *part,
                              coh_err *err)
{
    const coh_shape s = part->shape, want = self->input;
    if (s.c == want.c && s.h == want.h && s.w == want.w)
        return COH_OK;

    const bool is_turned = (s.c == want.h && s.h == want.w && s.w == want.c) ||
                           (s.c == want.w && s.h == want.c && s.w == want.h);
    if (self->nslots > 0)
        return coh_fail(err, COH_E_DATA,
                        "%s holds samples of %" PRId64 "x%" PRId64 "x%" PRId64
                        ", but %s of %" PRId64 "x%" PRId64 "x%" PRId64
                        ": the files of a set must agree",
                        part->name, s.c, s.h, s.w, self->slots[0].part.name,
                        want.c, want.h, want.w);
    return coh_fail(err, COH_E_DATA,
                    "%s holds samples of [%" PRId64 ", %" PRId64 ", %" PRId64
                    "] (channels, height, width), but model.input is [%" PRId64
                    ", %" PRId64 ", %" PRId64 "]: %s",
                    part->name, s.c, s.h, s.w, want.c, want.h, want.w,
                    is_turned ? "set data.axes to the file's order"
                              : "change model.input or the data");
}

static coh_status check_weights(const coh_dataset *self, const coh_part *part,
                                coh_err *err)
{
    for (int64_t i = 0; part->weights != NULL && i < part->count; i++) {
        if (part->weights[i] < 0.0f && self->has_loss_weights)
            return coh_fail(err, COH_E_DATA,
                            "%s: sample %" PRId64 " has the weight %g: the "
                            "loss needs weights >= 0; negative ones may count "
                            "in the metrics (data.weights_for: metrics)",
                            part->name, i, (double)part->weights[i]);
    }
    return COH_OK;
}

/* Take over *part, also when it is refused. */
static coh_status add_part(coh_dataset *self, coh_part *part, coh_err *err)
{
    coh_status status = check_shape(self, part, err);
    if (status == COH_OK)
        status = check_weights(self, part, err);
    if (status == COH_OK && part->count > INT64_MAX - self->count)
        status = coh_fail(err, COH_E_DATA, "%s: too many samples", part->name);
    if (status != COH_OK) {
        coh_part_close(part);
        return status;
    }
    self->slots[self->nslots++] = (slot){ .part = *part, .first = self->count };
    self->count += part->count;
    return COH_OK;
}

static coh_status add_files(coh_dataset *self, const coh_config *config,
                            const coh_files *files, const coh_files *labels,
                            coh_err *err)
{
    self->slots = calloc((size_t)files->count + 1, sizeof *self->slots);
    if (self->slots == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the data set");

    for (int i = 0; i < files->count; i++) {
        coh_part part = { 0 };
        coh_status status =
            config->data.kind == COH_DATA_IDX
                ? coh_part_open_idx(files->items[i], labels->items[i],
                                    self->classes, &part, err)
                : coh_part_open_hdf5(config, files->items[i], self->classes,
                                     &part, err);
        if (status == COH_OK)
            status = add_part(self, &part, err);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* What config calls a split. */
typedef struct names {
    const coh_list *files, *labels;
    const char *key, *labels_key;
} names;

static names names_of(const coh_config *config, coh_split split)
{
    if (split == COH_SPLIT_TRAIN)
        return (names){ &config->data.train, &config->data.train_labels,
                        "data.train", "data.train_labels" };
    if (split == COH_SPLIT_VALIDATION && config->data.validation.count > 0)
        return (names){ &config->data.validation,
                        &config->data.validation_labels, "data.validation",
                        "data.validation_labels" };
    return (names){ &config->data.test, &config->data.test_labels, "data.test",
                    "data.test_labels" };
}

static coh_status open_files(coh_dataset *self, const coh_config *config,
                             coh_split split, coh_err *err)
{
    const names name = names_of(config, split);
    const bool is_idx = config->data.kind == COH_DATA_IDX;
    coh_files files = { 0 }, labels = { 0 };
    coh_status status = coh_files_expand(name.files, name.key, &files, err);

    if (status == COH_OK && is_idx)
        status = coh_files_expand(name.labels, name.labels_key, &labels, err);
    if (status == COH_OK && is_idx && files.count != labels.count)
        status = coh_fail(err, COH_E_DATA,
                          "%s names %d files but %s %d: each file of images "
                          "needs its file of labels, in the same order",
                          name.key, files.count, name.labels_key, labels.count);
    if (status == COH_OK)
        status = add_files(self, config, &files, &labels, err);
    coh_files_free(&files);
    coh_files_free(&labels);
    return status;
}

static coh_status open_synthetic(coh_dataset *self, const coh_config *config,
                                 coh_split split, coh_err *err)
{
    coh_part part = { 0 };
    self->slots = calloc(1, sizeof *self->slots);
    if (self->slots == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the data set");

    const coh_status status = coh_part_open_synthetic(
        config, split, self->input, self->classes, &part, err);
    return status == COH_OK ? add_part(self, &part, err) : status;
}

coh_status coh_dataset_open(const coh_config *config, coh_split split,
                            coh_shape input, int64_t classes, coh_dataset **out,
                            coh_err *err)
{
    COH_ASSERT(coh_shape_count(input) > 0);
    COH_ASSERT(classes > 0 && classes <= INT32_MAX);
    coh_dataset *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the data set");

    self->input = input;
    self->classes = classes;
    self->has_log1p = config->data.log1p;
    self->has_loss_weights = config->data.weights_for == COH_WEIGHTS_FOR_LOSS;
    const coh_status status = config->data.kind == COH_DATA_SYNTHETIC
                                  ? open_synthetic(self, config, split, err)
                                  : open_files(self, config, split, err);
    if (status != COH_OK) {
        coh_dataset_close(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

void coh_dataset_close(coh_dataset **self)
{
    coh_dataset *set = *self;
    if (set == NULL)
        return;

    for (int i = 0; i < set->nslots; i++)
        coh_part_close(&set->slots[i].part);
    free(set->slots);
    free(set->order);
    free(set);
    *self = NULL;
}

coh_status coh_dataset_aim(coh_dataset *self, const coh_model *model,
                           coh_err *err)
{
    for (int i = 0; i < self->nslots && model->ntargets > 0; i++) {
        const coh_part *part = &self->slots[i].part;
        if (part->ops->aim == NULL)
            return coh_fail(err, COH_E_CONFIG,
                            "%s: only labels are read from files, not targets, "
                            "but the network has the target %s: use "
                            "data.kind: synthetic, or losses on label and "
                            "input alone",
                            part->name, model->targets[0].name);
        part->ops->aim(part->self, model);
    }
    self->targets = model->target_count;
    return COH_OK;
}

coh_status coh_dataset_open_for(const coh_config *config, coh_split split,
                                const coh_model *model, coh_dataset **out,
                                coh_err *err)
{
    const int64_t classes = model->classes > 0 ? model->classes : INT32_MAX;
    coh_status status =
        coh_dataset_open(config, split, model->input, classes, out, err);

    if (status == COH_OK)
        status = coh_dataset_aim(*out, model, err);
    if (status != COH_OK)
        coh_dataset_close(out);
    return status;
}

int64_t coh_dataset_targets(const coh_dataset *self)
{
    return self->targets;
}

int64_t coh_dataset_count(const coh_dataset *self)
{
    return self->count;
}

int64_t coh_dataset_cache_bytes(const coh_dataset *self)
{
    int64_t sum = 0, largest = 0;

    for (int i = 0; i < self->nslots; i++) {
        const int64_t bytes = self->slots[i].part.buffer_bytes;
        sum += bytes;
        largest = bytes > largest ? bytes : largest;
    }
    return sum < buffers_max_bytes + largest ? sum
                                             : buffers_max_bytes + largest;
}

coh_shape coh_dataset_input(const coh_dataset *self)
{
    return self->input;
}

const coh_normal *coh_dataset_normal(const coh_dataset *self)
{
    return &self->normal;
}

void coh_dataset_normalize(coh_dataset *self, const coh_normal *normal)
{
    COH_ASSERT(normal->channels == 0 || normal->channels == 1 ||
               normal->channels == self->input.c);
    self->normal = *normal;
}

/* --- Reading --------------------------------------------------------------- */

static int by_sample(const void *a, const void *b)
{
    const coh_part_row *left = a, *right = b;

    if (left->sample != right->sample)
        return left->sample < right->sample ? -1 : 1;
    return (left->row > right->row) - (left->row < right->row);
}

/* The part that holds `sample`: empty parts hold none. */
static slot *find_slot(const coh_dataset *self, int64_t sample)
{
    int low = 0, high = self->nslots; /* slots[low].first <= sample */

    while (high - low > 1) {
        const int middle = low + (high - low) / 2;
        if (self->slots[middle].first <= sample)
            low = middle;
        else
            high = middle;
    }
    return &self->slots[low];
}

static void put_to_rest(coh_dataset *self, slot *at)
{
    at->part.ops->rest(at->part.self);
    at->is_awake = false;
    self->awake--;
    self->awake_bytes -= at->part.buffer_bytes;
}

static slot *least_used(const coh_dataset *self)
{
    slot *least = NULL;

    for (int i = 0; i < self->nslots; i++) {
        slot *at = &self->slots[i];
        if (at->is_awake && (least == NULL || at->used < least->used))
            least = at;
    }
    return least;
}

/* Make room for one more open file. */
static void wake(coh_dataset *self, slot *at)
{
    at->used = ++self->clock;
    if (at->is_awake || at->part.ops->rest == NULL)
        return;
    while (self->awake >= AWAKE_MAX ||
           (self->awake > 0 && self->awake_bytes > buffers_max_bytes))
        put_to_rest(self, least_used(self));
    at->is_awake = true;
    self->awake++;
    self->awake_bytes += at->part.buffer_bytes;
}

/* Returns false if a value has no logarithm. */
static bool take_log1p(float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (x[i] <= -1.0f)
            return false;
        if (x[i] != 0.0f)
            x[i] = log1pf(x[i]);
    }
    return true;
}

static coh_status finish_image(const coh_dataset *self, const coh_part *part,
                               int64_t sample, float *image, coh_err *err)
{
    const int64_t size = coh_shape_count(self->input);

    if (!coh_is_finite(image, size))
        return coh_fail(err, COH_E_DATA,
                        "%s: the image of sample %" PRId64 " holds a value "
                        "that is not a finite float32 (NaN or infinite): mend "
                        "or leave out the sample",
                        part->name, sample);
    if (self->has_log1p && !take_log1p(image, size))
        return coh_fail(err, COH_E_DATA,
                        "%s: the image of sample %" PRId64 " holds a value "
                        "<= -1, which has no log(1 + x): set data.log1p: false",
                        part->name, sample);
    coh_normal_apply(&self->normal, self->input, image);
    if (self->normal.channels > 0 && !coh_is_finite(image, size))
        return coh_fail(err, COH_E_DATA,
                        "%s: the image of sample %" PRId64 " holds a value "
                        "that data.normalize makes larger than any float32: "
                        "mend or leave out the sample",
                        part->name, sample);
    return COH_OK;
}

/* order[count] lies in one part; samples count from its start. */
static coh_status read_part(coh_dataset *self, slot *at,
                            const coh_part_row *order, int64_t count,
                            coh_batch *batch, coh_err *err)
{
    const coh_part *part = &at->part;
    wake(self, at);
    coh_status status =
        part->ops->read(part->self, order, count, batch->images, err);

    for (int64_t i = 0; status == COH_OK && i < count; i++) {
        const int64_t sample = order[i].sample, row = order[i].row;
        const float weight = part->weights != NULL ? part->weights[sample] : 1;
        batch->labels[row] = part->labels != NULL
                                 ? part->labels[sample]
                                 : part->ops->label(part->self, sample);
        batch->is_labelled[row] =
            part->ops->targets == NULL ||
            part->ops->targets(part->self, sample,
                               batch->targets + row * self->targets);
        batch->metric_weights[row] = weight;
        batch->loss_weights[row] = self->has_loss_weights ? weight : 1;
        status = finish_image(
            self, part, sample,
            batch->images + row * coh_shape_count(self->input), err);
    }
    return status;
}

static void pad(const coh_dataset *self, int64_t count, coh_batch *batch)
{
    const int64_t size = coh_shape_count(self->input);

    memset(batch->images + count * size, 0,
           (size_t)((batch->capacity - count) * size) * sizeof *batch->images);
    memset(batch->targets + count * self->targets, 0,
           (size_t)((batch->capacity - count) * self->targets) *
               sizeof *batch->targets);
    for (int64_t i = count; i < batch->capacity; i++) {
        batch->samples[i] = -1;
        batch->is_labelled[i] = false;
        batch->labels[i] = 0;
        batch->loss_weights[i] = 0;
        batch->metric_weights[i] = 0;
    }
    batch->count = count;
}

static coh_status make_order(coh_dataset *self, const int64_t *samples,
                             int64_t count, coh_err *err)
{
    if (count > self->order_room) {
        coh_part_row *order =
            realloc(self->order, (size_t)count * sizeof *order);
        if (order == NULL)
            return coh_fail(err, COH_E_NOMEM, "no memory to read a batch");
        self->order = order;
        self->order_room = count;
    }
    for (int64_t i = 0; i < count; i++) {
        COH_ASSERT(samples[i] >= 0 && samples[i] < self->count);
        self->order[i] = (coh_part_row){ samples[i], i };
    }
    if (count > 0)
        qsort(self->order, (size_t)count, sizeof *self->order, by_sample);
    return COH_OK;
}

coh_status coh_dataset_read(coh_dataset *self, const int64_t *samples,
                            int64_t count, coh_batch *batch, coh_err *err)
{
    COH_ASSERT(count >= 0 && count <= batch->capacity);
    COH_ASSERT(batch->target_count == self->targets);
    coh_status status = make_order(self, samples, count, err);

    for (int64_t i = 0; status == COH_OK && i < count;) {
        slot *at = find_slot(self, self->order[i].sample);
        const int64_t end = at->first + at->part.count;
        int64_t n = 0;
        for (; i + n < count && self->order[i + n].sample < end; n++)
            self->order[i + n].sample -= at->first;
        status = read_part(self, at, self->order + i, n, batch, err);
        i += n;
    }
    if (status != COH_OK)
        return status;
    if (count > 0)
        memcpy(batch->samples, samples, (size_t)count * sizeof *samples);
    pad(self, count, batch);
    return COH_OK;
}
