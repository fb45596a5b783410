/* config_option.c - the tables of options.h and layers.h, see there. */
#include "common/config_option.h"

#include <stdlib.h>
#include <string.h>

#define INT(k, f, d, l, h, u, s)         \
    { .type = COH_OPTION_INT,            \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .value = d,                        \
      .low = l,                          \
      .high = h,                         \
      .unit = u,                         \
      .help = s },
#define REAL(k, f, d, l, h, u, s)        \
    { .type = COH_OPTION_REAL,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .real = d,                         \
      .real_low = l,                     \
      .real_high = h,                    \
      .unit = u,                         \
      .help = s },
#define BOOL(k, f, d, s)                 \
    { .type = COH_OPTION_BOOL,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .value = d,                        \
      .unit = "",                        \
      .help = s },
#define TEXT(k, f, d, s)                 \
    { .type = COH_OPTION_TEXT,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .text = d,                         \
      .unit = "",                        \
      .help = s },
#define LIST(k, f, d, s)                 \
    { .type = COH_OPTION_LIST,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .text = d,                         \
      .unit = "",                        \
      .help = s },
#define INTS(k, f, n, l, h, s)           \
    { .type = COH_OPTION_INTS,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .value = n,                        \
      .low = l,                          \
      .high = h,                         \
      .unit = "",                        \
      .help = s },
#define ENUM(k, f, d, n, s)              \
    { .type = COH_OPTION_ENUM,           \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .value = d,                        \
      .text = n,                         \
      .unit = "",                        \
      .help = s },
#define ROOM(k, s) { .type = COH_OPTION_ROOM, .key = k, .unit = "", .help = s },

#define LAYERS(t, k, f, s)               \
    { .type = COH_OPTION_##t,            \
      .key = k,                          \
      .offset = offsetof(coh_config, f), \
      .unit = "",                        \
      .help = s },

/* clang-format off */
const coh_option coh_options[COH_OPTION_COUNT] = {
    COH_OPTIONS(INT, REAL, BOOL, TEXT, LIST, INTS, ENUM, ROOM)
    LAYERS(TARGETS, "model.targets", model.targets,
           "what losses compare with, besides the label: [{name: box, shape: "
           "[4, 24, 24]}]")
    LAYERS(LAYERS, "model.layers", model.layers,
           "the layers; each stands behind those it takes from, the last is a "
           "loss")
};
/* clang-format on */

#undef INT
#undef REAL
#undef BOOL
#undef TEXT

#define INT(k, f, c, d, l, h, s)             \
    { .type = COH_OPTION_INT,                \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .value = d,                            \
      .low = l,                              \
      .high = h,                             \
      .unit = "",                            \
      .help = s },
#define PAIR(k, f, c, d, l, h, s)            \
    { .type = COH_OPTION_PAIR,               \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .value = d,                            \
      .low = l,                              \
      .high = h,                             \
      .unit = "",                            \
      .help = s },
#define REAL(k, f, c, d, l, h, s)            \
    { .type = COH_OPTION_REAL,               \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .real = d,                             \
      .real_low = l,                         \
      .real_high = h,                        \
      .unit = "",                            \
      .help = s },
#define BOOL(k, f, c, d, s)                  \
    { .type = COH_OPTION_BOOL,               \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .value = d,                            \
      .unit = "",                            \
      .help = s },
#define TEXT(k, f, c, s)                     \
    { .type = COH_OPTION_NAME,               \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .unit = "",                            \
      .help = s },
#define PADDING(k, f, c, s)                  \
    { .type = COH_OPTION_PADDING,            \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .high = 100000,                        \
      .unit = "",                            \
      .help = s },

#define NAMES(k, f, c, s)                    \
    { .type = COH_OPTION_NAMES,              \
      .key = k,                              \
      .offset = offsetof(coh_layer_spec, f), \
      .letters = c,                          \
      .unit = "",                            \
      .help = s },

#define X(name, id, letter, help) { name, letter, help },

/* clang-format off */
const coh_option coh_layer_fields[COH_LAYER_FIELD_COUNT] = {
    COH_LAYER_FIELDS(INT, PAIR, REAL, BOOL, TEXT, PADDING, NAMES)
};
const coh_layer_row coh_layer_rows[COH_LAYER_KIND_COUNT] = {
    COH_LAYER_KINDS(X)
};
/* clang-format on */

bool coh_layer_has(coh_layer_kind kind, const coh_option *field)
{
    return strchr(field->letters, coh_layer_rows[kind].letter[0]) != NULL;
}

bool coh_layer_needs(const coh_option *field)
{
    return (field->type == COH_OPTION_INT || field->type == COH_OPTION_PAIR) &&
           field->value < field->low;
}

void coh_option_clear(const coh_option *self, void *base)
{
    void *field = (char *)base + self->offset;

    if (self->type == COH_OPTION_TEXT) {
        free(*(char **)field);
        *(char **)field = NULL;
    } else if (self->type == COH_OPTION_LIST) {
        coh_list *list = field;
        for (int i = 0; i < list->count; i++)
            free(list->items[i]);
        free(list->items);
        *list = (coh_list){ 0, NULL };
    } else if (self->type == COH_OPTION_TARGETS) {
        coh_config *config = base;
        free(config->model.targets);
        config->model.targets = NULL;
        config->model.ntargets = 0;
    } else if (self->type == COH_OPTION_LAYERS) {
        coh_config *config = base;
        free(config->model.layers);
        config->model.layers = NULL;
        config->model.nlayers = 0;
    }
}

/* A list of one text; of none for "". */
static bool reset_list(coh_list *list, const char *text)
{
    if (*text == '\0')
        return true;
    list->items = calloc(1, sizeof *list->items);
    if (list->items == NULL)
        return false;
    list->count = 1;
    list->items[0] = strdup(text);
    return list->items[0] != NULL;
}

bool coh_option_reset(const coh_option *self, void *base)
{
    void *field = (char *)base + self->offset;

    coh_option_clear(self, base);
    switch (self->type) {
    case COH_OPTION_INT:
        *(int64_t *)field = self->value;
        return true;
    case COH_OPTION_REAL:
        *(double *)field = self->real;
        return true;
    case COH_OPTION_BOOL:
        *(bool *)field = self->value != 0;
        return true;
    case COH_OPTION_ENUM:
        *(int *)field = (int)self->value;
        return true;
    case COH_OPTION_TEXT:
        return (*(char **)field = strdup(self->text)) != NULL;
    case COH_OPTION_LIST:
        return reset_list(field, self->text);
    case COH_OPTION_INTS:
        *(coh_ints *)field = (coh_ints){ 0, { 0 } };
        return true;
    case COH_OPTION_NAME:
        *(char *)field = '\0';
        return true;
    case COH_OPTION_NAMES:
        ((coh_names *)field)->count = 0;
        return true;
    case COH_OPTION_PAIR:
        ((int64_t *)field)[0] = ((int64_t *)field)[1] = self->value;
        return true;
    case COH_OPTION_PADDING:
        ((int64_t *)field)[0] = ((int64_t *)field)[1] = 0;
        ((coh_layer_spec *)base)->same = false;
        return true;
    case COH_OPTION_ROOM:
    case COH_OPTION_TARGETS:
    case COH_OPTION_LAYERS:
        return true;
    }
    return true;
}

const char *coh_option_noun(const coh_option *self)
{
    static const char *const nouns[] = {
        [COH_OPTION_INT] = "integer",
        [COH_OPTION_REAL] = "number",
        [COH_OPTION_BOOL] = "true or false",
        [COH_OPTION_ENUM] = "name",
        [COH_OPTION_TEXT] = "text",
        [COH_OPTION_LIST] = "list of texts",
        [COH_OPTION_INTS] = "list of integers",
        [COH_OPTION_ROOM] = "mapping",
        [COH_OPTION_TARGETS] = "list of targets",
        [COH_OPTION_LAYERS] = "list of layers",
        [COH_OPTION_NAME] = "name",
        [COH_OPTION_PAIR] = "integer or [height, width]",
        [COH_OPTION_PADDING] = "integer or [height, width]",
        [COH_OPTION_NAMES] = "name or list of names",
    };
    return nouns[self->type];
}
