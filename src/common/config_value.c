/* config_value.c - one node of YAML into one field, see config_option.h.
 *
 * Each reader fills its field only when the whole value is good, and says
 * what is wrong, what is allowed, and where useful an example.
 */
#include "common/config_option.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/nearest.h"

/* Where a value is read from, and for which row. */
typedef struct source {
    coh_reader *reader;
    const coh_option *row;
    const char *key;
    char bounds[COH_BOUNDS_MAX];
} source;

/* --- Words -------------------------------------------------------------- */

bool coh_is_null(const coh_yaml_node *node)
{
    static const char *const nulls[] = { "", "~", "null", "Null", "NULL" };

    if (node->kind != COH_YAML_SCALAR || !node->plain)
        return false;
    for (size_t i = 0; i < sizeof nulls / sizeof nulls[0]; i++)
        if (strcmp(node->text, nulls[i]) == 0)
            return true;
    return false;
}

static void list_names(const char *names, char *out, size_t size)
{
    size_t used = 0;

    for (; *names != '\0' && used + 3 < size; names++) {
        out[used++] = *names == '|' ? ',' : *names;
        if (*names == '|')
            out[used++] = ' ';
    }
    out[used] = '\0';
}

void coh_option_bounds(const coh_option *self, char out[COH_BOUNDS_MAX])
{
    const char *gap = *self->unit != '\0' ? " " : "";
    char low[COH_REAL_MAX], high[COH_REAL_MAX];

    out[0] = '\0';
    if (self->type == COH_OPTION_REAL) {
        coh_number_text(self->real_low, low);
        coh_number_text(self->real_high, high);
    } else {
        snprintf(low, sizeof low, "%" PRId64, self->low);
        snprintf(high, sizeof high, "%" PRId64, self->high);
    }

    if (self->type == COH_OPTION_BOOL)
        snprintf(out, COH_BOUNDS_MAX, "true or false");
    else if (self->type == COH_OPTION_ENUM)
        list_names(self->text, out, COH_BOUNDS_MAX);
    else if (self->type == COH_OPTION_INTS)
        snprintf(out, COH_BOUNDS_MAX, "%" PRId64 " integers, each %s to %s",
                 self->value, low, high);
    else if (self->type == COH_OPTION_INT && self->high == INT64_MAX)
        snprintf(out, COH_BOUNDS_MAX, "%s or more%s%s", low, gap, self->unit);
    else if (self->high > 0 || self->type == COH_OPTION_REAL)
        snprintf(out, COH_BOUNDS_MAX, "%s to %s%s%s%s", low, high, gap,
                 self->unit,
                 self->type == COH_OPTION_PADDING ? ", or same" : "");
}

static bool refuse(const source *from, const coh_yaml_node *node,
                   const char *what)
{
    coh_reader_fault(from->reader, node->at, from->key, "%s%s%s", what,
                     from->bounds[0] != '\0' ? "; " : "", from->bounds);
    return false;
}

/* Refuse a list or a mapping where one value is wanted. */
static bool want_scalar(const source *from, const coh_yaml_node *node)
{
    char what[128];
    if (node->kind == COH_YAML_SCALAR)
        return true;

    snprintf(what, sizeof what, "a %s stands where one value is wanted (%s)",
             node->kind == COH_YAML_LIST ? "list" : "mapping",
             coh_option_noun(from->row));
    return refuse(from, node, what);
}

/* --- Numbers ------------------------------------------------------------ */

static bool read_int(const source *from, const coh_yaml_node *node,
                     int64_t *out)
{
    char what[128];
    int64_t value = 0;
    if (!want_scalar(from, node))
        return false;

    const char *wrong = coh_number_int(node->text, &value);
    if (wrong == NULL && value < from->row->low)
        wrong = "is too small";
    if (wrong == NULL && value > from->row->high)
        wrong = "is too large";
    if (wrong == NULL) {
        *out = value;
        return true;
    }
    snprintf(what, sizeof what, "'%s' %s", coh_utf8_clip(node->text).text,
             wrong);
    return refuse(from, node, what);
}

static bool read_real(const source *from, const coh_yaml_node *node,
                      double *out)
{
    char what[128];
    double value = 0.0;
    if (!want_scalar(from, node))
        return false;

    const char *wrong = coh_number_real(node->text, &value);
    if (wrong == NULL && value < from->row->real_low)
        wrong = "is too small";
    if (wrong == NULL && value > from->row->real_high)
        wrong = "is too large";
    if (wrong == NULL) {
        *out = value;
        return true;
    }
    snprintf(what, sizeof what, "'%s' %s", coh_utf8_clip(node->text).text,
             wrong);
    return refuse(from, node, what);
}

static bool read_pair(const source *from, const coh_yaml_node *node,
                      int64_t out[2])
{
    int64_t pair[2];

    if (node->kind == COH_YAML_SCALAR) {
        if (!read_int(from, node, &pair[0]))
            return false;
        pair[1] = pair[0];
    } else {
        if (node->kind != COH_YAML_LIST || node->count != 2)
            return refuse(from, node, "wants one integer, or [height, width]");
        if (!read_int(from, node->items[0], &pair[0]) ||
            !read_int(from, node->items[1], &pair[1]))
            return false;
    }
    out[0] = pair[0];
    out[1] = pair[1];
    return true;
}

static bool read_padding(const source *from, const coh_yaml_node *node,
                         coh_layer_spec *spec)
{
    if (node->kind == COH_YAML_SCALAR && strcmp(node->text, "same") == 0) {
        spec->same = true;
        return true;
    }
    spec->same = false;
    return read_pair(from, node, spec->padding);
}

static bool read_ints(const source *from, const coh_yaml_node *node,
                      coh_ints *out)
{
    coh_ints ints = { .count = (int)from->row->value };
    bool ok = true;

    COH_ASSERT(ints.count <= COH_INTS_MAX);
    if (node->kind != COH_YAML_LIST)
        return refuse(from, node, "wants a list, e.g. [1, 28, 28]");
    if (node->count != ints.count) {
        char what[64];
        snprintf(what, sizeof what, "%d given", node->count);
        return refuse(from, node, what);
    }
    for (int i = 0; i < ints.count; i++)
        ok = read_int(from, node->items[i], &ints.items[i]) && ok;
    if (ok)
        *out = ints;
    return ok;
}

/* --- Words as values ------------------------------------------------------ */

static bool read_bool(const source *from, const coh_yaml_node *node, bool *out)
{
    static const char *const words[] = { "false", "true", "no",
                                         "yes",   "off",  "on" };
    char what[128];
    if (!want_scalar(from, node))
        return false;

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strcasecmp(node->text, words[i]) == 0) {
            *out = i % 2 == 1;
            return true;
        }
    snprintf(what, sizeof what, "'%s' is neither",
             coh_utf8_clip(node->text).text);
    return refuse(from, node, what);
}

/* The name number `i` of "a|b|c" into out; false if there are fewer. */
static bool name_at(const char *names, int i, char out[COH_NAME_MAX])
{
    for (; i > 0; i--) {
        names = strchr(names, '|');
        if (names == NULL)
            return false;
        names++;
    }
    snprintf(out, COH_NAME_MAX, "%.*s", (int)strcspn(names, "|"), names);
    return true;
}

static bool read_enum(const source *from, const coh_yaml_node *node, int *out)
{
    char name[COH_NAME_MAX], nearest[COH_NAME_MAX] = "";
    int best = 1000;
    if (!want_scalar(from, node))
        return false;

    for (int i = 0; name_at(from->row->text, i, name); i++) {
        const int distance = coh_nearest_distance(node->text, name);
        if (strcmp(node->text, name) == 0) {
            *out = i;
            return true;
        }
        if (distance < best) {
            best = distance;
            strcpy(nearest, name);
        }
    }
    const bool is_close = coh_nearest_is_close(node->text, best);
    coh_reader_fault(from->reader, node->at, from->key,
                     "'%s' is none of %s%s%s%s", coh_utf8_clip(node->text).text,
                     from->bounds, is_close ? "; did you mean " : "",
                     is_close ? nearest : "", is_close ? "?" : "");
    return false;
}

static bool read_text(const source *from, const coh_yaml_node *node, char **out)
{
    if (!want_scalar(from, node))
        return false;
    char *copy = strdup(node->text);
    if (copy == NULL) {
        from->reader->no_memory = true;
        return false;
    }
    free(*out);
    *out = copy;
    return true;
}

/* A layer's name also names its tensors in files, so it is kept plain. */
static bool read_name(const source *from, const coh_yaml_node *node,
                      char out[COH_NAME_MAX])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyz"
                                "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    if (!want_scalar(from, node))
        return false;

    const size_t length = strspn(node->text, plain);
    if (node->text[length] != '\0' || length == 0 || length >= COH_NAME_MAX ||
        node->text[0] == '.') {
        char what[192];
        snprintf(what, sizeof what,
                 "'%s' is no name: 1 to %d letters, digits, _ - . and no . "
                 "in front",
                 coh_utf8_clip(node->text).text, COH_NAME_MAX - 1);
        return refuse(from, node, what);
    }
    strcpy(out, node->text);
    return true;
}

/* Longer lists than COH_FROM_MAX are refused. */
static bool read_names(const source *from, const coh_yaml_node *node,
                       coh_names *out)
{
    coh_names names = { .count = 1 };
    char what[96];

    if (node->kind == COH_YAML_SCALAR) {
        if (!read_name(from, node, names.items[0]))
            return false;
        *out = names;
        return true;
    }
    if (node->kind != COH_YAML_LIST || node->count == 0)
        return refuse(from, node, "wants the name of a layer, or [a, b]");
    if (node->count > COH_FROM_MAX) {
        snprintf(what, sizeof what, "%d names are given, at most %d may be",
                 node->count, COH_FROM_MAX);
        return refuse(from, node, what);
    }
    names.count = node->count;
    for (int i = 0; i < names.count; i++)
        if (!read_name(from, node->items[i], names.items[i]))
            return false;
    *out = names;
    return true;
}

static bool read_list(const source *from, const coh_yaml_node *node, void *base)
{
    const coh_yaml_node *const one[1] = { node };
    const bool is_list = node->kind == COH_YAML_LIST;
    const int count = is_list ? node->count : 1;
    coh_list list = { 0, calloc((size_t)count + 1, sizeof(char *)) };
    bool ok = list.items != NULL;

    from->reader->no_memory |= !ok;
    for (int i = 0; ok && i < count; i++) {
        const coh_yaml_node *item = is_list ? node->items[i] : one[0];
        if (item->kind == COH_YAML_SCALAR && item->text[0] == '\0')
            ok = refuse(from, item, "an empty text; remove it, or write []");
        else
            ok = read_text(from, item, &list.items[i]);
        list.count += ok;
    }
    if (ok) {
        coh_option_clear(from->row, base);
        *(coh_list *)((char *)base + from->row->offset) = list;
        return true;
    }
    for (int i = 0; i < list.count; i++)
        free(list.items[i]);
    free(list.items);
    return false;
}

bool coh_option_read(coh_reader *reader, const coh_option *row,
                     const coh_yaml_node *node, const char *key, void *base)
{
    source from = { .reader = reader, .row = row, .key = key };
    void *field = (char *)base + row->offset;

    if (coh_is_null(node)) {
        const bool ok = coh_option_reset(row, base);
        reader->no_memory |= !ok;
        return ok;
    }
    coh_option_bounds(row, from.bounds);
    switch (row->type) {
    case COH_OPTION_INT:
        return read_int(&from, node, field);
    case COH_OPTION_REAL:
        return read_real(&from, node, field);
    case COH_OPTION_BOOL:
        return read_bool(&from, node, field);
    case COH_OPTION_ENUM:
        return read_enum(&from, node, field);
    case COH_OPTION_TEXT:
        return read_text(&from, node, field);
    case COH_OPTION_LIST:
        return read_list(&from, node, base);
    case COH_OPTION_INTS:
        return read_ints(&from, node, field);
    case COH_OPTION_NAME:
        return read_name(&from, node, field);
    case COH_OPTION_NAMES:
        return read_names(&from, node, field);
    case COH_OPTION_PAIR:
        return read_pair(&from, node, field);
    case COH_OPTION_PADDING:
        return read_padding(&from, node, base);
    case COH_OPTION_TARGETS:
        return coh_targets_read(reader, row, node);
    case COH_OPTION_LAYERS:
        return coh_layers_read(reader, row, node);
    case COH_OPTION_ROOM:
        break;
    }
    COH_ASSERT(!"a room has no value");
    return false;
}
