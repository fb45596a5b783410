/* config_layers.c - the list model.layers, see layers.h. */
#include "common/config_option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"

enum { LABEL_MAX = 160 };

/* One layer being read: its number from 1, its kind, where that stands. */
typedef struct place {
    int number;
    coh_layer_kind kind;
    coh_yaml_place at;
} place;

/* "model.layers: layer 3, conv2d.filters"; field may be NULL. */
static void make_label(const place *layer, const char *field,
                       char out[LABEL_MAX])
{
    snprintf(out, LABEL_MAX, "model.layers: layer %d, %s%s%s", layer->number,
             coh_layer_rows[layer->kind].name, field == NULL ? "" : ".",
             field == NULL ? "" : field);
}

/* --- The kind ----------------------------------------------------------- */

static bool find_kind(coh_reader *self, const char *name, place *layer)
{
    int best = 1000, nearest = 0;
    char key[LABEL_MAX], all[512] = "";

    for (int i = 0; i < COH_LAYER_KIND_COUNT; i++) {
        const int distance = coh_nearest_distance(name, coh_layer_rows[i].name);
        if (strcmp(name, coh_layer_rows[i].name) == 0) {
            layer->kind = (coh_layer_kind)i;
            return true;
        }
        if (distance < best) {
            best = distance;
            nearest = i;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i == 0 ? "" : ", ",
                 coh_layer_rows[i].name);
    }

    snprintf(key, sizeof key, "model.layers: layer %d", layer->number);
    const coh_clip clip = coh_utf8_clip(name);
    if (coh_nearest_is_close(name, best))
        coh_reader_fault(self, layer->at, key,
                         "'%s' is no layer; did you mean %s?", clip.text,
                         coh_layer_rows[nearest].name);
    else
        coh_reader_fault(self, layer->at, key,
                         "'%s' is no layer; it is one "
                         "of %s",
                         clip.text, all);
    return false;
}

/* Split an item into its kind and its fields, NULL if it has none. */
static bool split_item(coh_reader *self, const coh_yaml_node *item,
                       place *layer, const coh_yaml_node **fields)
{
    char key[LABEL_MAX];

    *fields = NULL;
    layer->at = item->at;
    if (item->kind == COH_YAML_SCALAR && !coh_is_null(item))
        return find_kind(self, item->text, layer);

    snprintf(key, sizeof key, "model.layers: layer %d", layer->number);
    if (item->kind == COH_YAML_MAPPING && item->count > 0) {
        layer->at = item->items[0]->key_at;
        if (item->count == 1) {
            if (!coh_is_null(item->items[0]))
                *fields = item->items[0];
            return find_kind(self, item->items[0]->key, layer);
        }
        coh_reader_fault(self, item->items[1]->key_at, key,
                         "'%s' stands beside '%s'; fields stand below their "
                         "layer, indented deeper, or in braces: conv2d: "
                         "{filters: 32, kernel: 3}",
                         coh_utf8_clip(item->items[1]->key).text,
                         coh_utf8_clip(item->items[0]->key).text);
        return false;
    }
    coh_reader_fault(self, item->at, key,
                     "wants the kind of a layer, e.g. "
                     "relu, or conv2d: {filters: 32, kernel: 3}");
    return false;
}

/* --- The fields ----------------------------------------------------------- */

static const coh_option *find_field(coh_layer_kind kind, const char *key)
{
    for (int i = 0; i < COH_LAYER_FIELD_COUNT; i++)
        if (coh_layer_has(kind, &coh_layer_fields[i]) &&
            strcmp(coh_layer_fields[i].key, key) == 0)
            return &coh_layer_fields[i];
    return NULL;
}

static void refuse_field(coh_reader *self, const place *layer,
                         const coh_yaml_node *node)
{
    const char *nearest = NULL;
    int best = 1000;
    char label[LABEL_MAX], all[256] = "";

    for (int i = 0; i < COH_LAYER_FIELD_COUNT; i++) {
        const coh_option *field = &coh_layer_fields[i];
        if (!coh_layer_has(layer->kind, field))
            continue;
        const int distance = coh_nearest_distance(node->key, field->key);
        if (distance < best) {
            best = distance;
            nearest = field->key;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", used == 0 ? "" : ", ",
                 field->key);
    }
    make_label(layer, coh_utf8_clip(node->key).text, label);
    if (nearest != NULL && coh_nearest_is_close(node->key, best))
        coh_reader_fault(self, node->key_at, label,
                         "unknown field; did you mean %s?", nearest);
    else
        coh_reader_fault(self, node->key_at, label, "unknown field; %s has %s",
                         coh_layer_rows[layer->kind].name, all);
}

static bool is_missing(const coh_layer_spec *spec, const coh_option *field)
{
    const int64_t *value =
        (const int64_t *)((const char *)spec + field->offset);
    return coh_layer_needs(field) && coh_layer_has(spec->kind, field) &&
           *value < field->low;
}

/* Bit i of `refused`: field i was given, if wrongly. */
static bool check_given(coh_reader *self, const place *layer,
                        const coh_layer_spec *spec, uint64_t refused)
{
    char label[LABEL_MAX], bounds[COH_BOUNDS_MAX];
    bool ok = true;

    for (int i = 0; i < COH_LAYER_FIELD_COUNT; i++) {
        const coh_option *field = &coh_layer_fields[i];
        if (!is_missing(spec, field) || (refused >> i & 1) != 0)
            continue;
        make_label(layer, field->key, label);
        coh_option_bounds(field, bounds);
        coh_reader_fault(
            self, layer->at, label, "missing; %s (%s); write %s: {%s: 3}",
            bounds, field->help, coh_layer_rows[layer->kind].name, field->key);
        ok = false;
    }
    return ok;
}

static bool read_fields(coh_reader *self, const place *layer,
                        const coh_yaml_node *fields, coh_layer_spec *spec)
{
    char label[LABEL_MAX];
    _Static_assert(COH_LAYER_FIELD_COUNT <= 64, "a bit for each field");
    uint64_t refused = 0;
    bool ok = true;

    if (fields != NULL && fields->kind != COH_YAML_MAPPING) {
        make_label(layer, NULL, label);
        coh_reader_fault(self, fields->at, label,
                         "wants its fields as a "
                         "mapping, e.g. conv2d: {filters: 32, kernel: 3}");
        return false;
    }
    for (int i = 0; fields != NULL && i < fields->count; i++) {
        const coh_yaml_node *node = fields->items[i];
        const coh_option *field = find_field(layer->kind, node->key);
        if (field == NULL) {
            refuse_field(self, layer, node);
            ok = false;
            continue;
        }
        make_label(layer, field->key, label);
        if (!coh_option_read(self, field, node, label, spec)) {
            refused |= UINT64_C(1) << (field - coh_layer_fields);
            ok = false;
        }
    }
    return check_given(self, layer, spec, refused) && ok;
}

/* Defaults of all fields; where a field has several rows the kind's own, else
 * the first. */
static void reset_spec(coh_layer_kind kind, coh_layer_spec *spec)
{
    for (int i = COH_LAYER_FIELD_COUNT - 1; i >= 0; i--)
        (void)coh_option_reset(&coh_layer_fields[i], spec);
    for (int i = 0; i < COH_LAYER_FIELD_COUNT; i++)
        if (coh_layer_has(kind, &coh_layer_fields[i]))
            (void)coh_option_reset(&coh_layer_fields[i], spec);
    spec->kind = kind;
}

/* The name of the images cannot be a layer's. */
static bool check_reserved(coh_reader *self, const place *layer,
                           const coh_layer_spec *spec)
{
    char label[LABEL_MAX];

    if (strcmp(spec->name, "input") != 0)
        return true;
    make_label(layer, "name", label);
    coh_reader_fault(self, layer->at, label,
                     "'input' names the images; give the layer another name");
    return false;
}

static bool read_layer(coh_reader *self, const coh_yaml_node *item, int number,
                       coh_layer_spec *spec)
{
    place layer = { .number = number };
    const coh_yaml_node *fields;
    if (!split_item(self, item, &layer, &fields))
        return false;

    reset_spec(layer.kind, spec);
    spec->line = layer.at.line;
    if (!read_fields(self, &layer, fields, spec))
        return false;
    for (int axis = 0; axis < 2; axis++)
        if (spec->stride[axis] == 0)
            spec->stride[axis] = spec->kernel[axis];
    return check_reserved(self, &layer, spec);
}

/* --- The list ------------------------------------------------------------- */

/* A layer without a name is called after its kind and which of that kind it
 * is. */
static void name_layers(coh_layer_spec *layers, int count)
{
    int seen[COH_LAYER_KIND_COUNT] = { 0 };

    for (int i = 0; i < count; i++) {
        const int number = ++seen[layers[i].kind];
        if (layers[i].name[0] == '\0')
            snprintf(layers[i].name, COH_NAME_MAX, "%s%d",
                     coh_layer_rows[layers[i].kind].name, number);
    }
}

static int compare_names(const void *a, const void *b)
{
    const coh_layer_spec *const *x = a, *const *y = b;
    const int order = strcmp((*x)->name, (*y)->name);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

/* Sorted, so that a list of thousands takes no time. */
static bool check_names(coh_reader *self, const coh_yaml_node *node,
                        const coh_layer_spec *layers, int count)
{
    bool ok = true;
    const coh_layer_spec **sorted = calloc((size_t)count + 1, sizeof *sorted);
    if (sorted == NULL) {
        self->no_memory = true;
        return false;
    }
    for (int i = 0; i < count; i++)
        sorted[i] = &layers[i];
    qsort(sorted, (size_t)count, sizeof(const coh_layer_spec *), compare_names);

    for (int i = 1; i < count; i++)
        if (strcmp(sorted[i]->name, sorted[i - 1]->name) == 0) {
            const coh_yaml_node *item = node->items[sorted[i] - layers];
            coh_reader_fault(self, item->at, "model.layers",
                             "layers %d (line %d) and %d (line %d) are both "
                             "called %s; give one another name",
                             (int)(sorted[i - 1] - layers) + 1,
                             sorted[i - 1]->line, (int)(sorted[i] - layers) + 1,
                             sorted[i]->line, sorted[i]->name);
            ok = false;
        }
    free(sorted);
    return ok;
}

bool coh_layers_read(coh_reader *reader, const coh_option *row,
                     const coh_yaml_node *node)
{
    coh_config *config = reader->config;
    bool ok = true;

    if (node->kind != COH_YAML_LIST) {
        coh_reader_fault(reader, node->at, row->key,
                         "wants a list of layers, "
                         "one a line behind a dash, e.g. - relu");
        return false;
    }
    coh_layer_spec *layers = calloc((size_t)node->count + 1, sizeof *layers);
    if (layers == NULL) {
        reader->no_memory = true;
        return false;
    }
    for (int i = 0; i < node->count && !coh_reader_is_full(reader); i++)
        ok = read_layer(reader, node->items[i], i + 1, &layers[i]) && ok;
    if (ok) { /* numbers in names are right only when all kinds are known */
        name_layers(layers, node->count);
        ok = check_names(reader, node, layers, node->count);
    }
    if (!ok) {
        free(layers);
        return false;
    }
    coh_option_clear(row, config);
    config->model.layers = layers;
    config->model.nlayers = node->count;
    return true;
}
