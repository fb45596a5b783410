/* config_write.c - a configuration as YAML, see config.h.
 *
 * Texts are always quoted: no value can then be taken for another type, a
 * comment, or nothing at all.
 */
#include "common/config_option.h"

#include <inttypes.h>
#include <string.h>

#include "common/utf8.h"

static void write_text(const char *text, FILE *out)
{
    size_t left = strlen(text);
    uint32_t point = 0;

    fputc('"', out);
    while (left > 0) {
        int step = coh_utf8_decode(text, left, &point);
        COH_ASSERT(step > 0);
        if (point == '"' || point == '\\')
            fprintf(out, "\\%c", (char)point);
        else if (point == '\n')
            fputs("\\n", out);
        else if (coh_utf8_is_printable(point))
            fwrite(text, 1, (size_t)step, out);
        else
            fprintf(out, "\\U%08" PRIX32, point);
        text += step;
        left -= (size_t)step;
    }
    fputc('"', out);
}

static void write_list(const coh_list *list, FILE *out)
{
    fputc('[', out);
    for (int i = 0; i < list->count; i++) {
        fputs(i == 0 ? "" : ", ", out);
        write_text(list->items[i], out);
    }
    fputc(']', out);
}

static void write_ints(const int64_t *items, int count, FILE *out)
{
    fputc('[', out);
    for (int i = 0; i < count; i++)
        fprintf(out, "%s%" PRId64, i == 0 ? "" : ", ", items[i]);
    fputc(']', out);
}

static void write_enum(const char *names, int value, FILE *out)
{
    for (; value > 0; value--)
        names = strchr(names, '|') + 1;
    fprintf(out, "%.*s", (int)strcspn(names, "|"), names);
}

static void write_names(const coh_names *names, FILE *out)
{
    if (names->count == 0)
        fputc('~', out);
    for (int i = 0; i < names->count; i++) {
        fputs(i == 0 ? "[" : ", ", out);
        write_text(names->items[i], out);
    }
    if (names->count > 0)
        fputc(']', out);
}

static void write_targets(const coh_config *config, FILE *out)
{
    fputc('[', out);
    for (int i = 0; i < config->model.ntargets; i++) {
        const coh_target_spec *target = &config->model.targets[i];
        fputs(i == 0 ? "{name: " : ", {name: ", out);
        write_text(target->name, out);
        fputs(", shape: ", out);
        write_ints(target->shape.items, target->shape.count, out);
        fputc('}', out);
    }
    fputc(']', out);
}

void coh_option_write(const coh_option *self, const void *base, FILE *out)
{
    const void *field = (const char *)base + self->offset;
    char number[COH_REAL_MAX];

    switch (self->type) {
    case COH_OPTION_INT:
        fprintf(out, "%" PRId64, *(const int64_t *)field);
        break;
    case COH_OPTION_REAL:
        coh_number_text(*(const double *)field, number);
        fputs(number, out);
        break;
    case COH_OPTION_BOOL:
        fputs(*(const bool *)field ? "true" : "false", out);
        break;
    case COH_OPTION_ENUM:
        write_enum(self->text, *(const int *)field, out);
        break;
    case COH_OPTION_TEXT:
        write_text(*(char *const *)field, out);
        break;
    case COH_OPTION_NAME:
        if (*(const char *)field == '\0')
            fputc('~', out);
        else
            write_text(field, out);
        break;
    case COH_OPTION_TARGETS:
        write_targets(base, out);
        break;
    case COH_OPTION_LIST:
        write_list(field, out);
        break;
    case COH_OPTION_INTS:
        write_ints(((const coh_ints *)field)->items,
                   ((const coh_ints *)field)->count, out);
        break;
    case COH_OPTION_PADDING:
        if (((const coh_layer_spec *)base)->same)
            fputs("same", out);
        else
            write_ints(field, 2, out);
        break;
    case COH_OPTION_NAMES:
        write_names(field, out);
        break;
    case COH_OPTION_PAIR:
        write_ints(field, 2, out);
        break;
    case COH_OPTION_ROOM:
    case COH_OPTION_LAYERS:
        COH_ASSERT(!"more than one line");
    }
}

static void write_layers(const coh_config *self, FILE *out)
{
    if (self->model.nlayers == 0)
        fputs(" []", out);
    for (int i = 0; i < self->model.nlayers; i++) {
        const coh_layer_spec *layer = &self->model.layers[i];
        const char *comma = "";

        fprintf(out, "\n    - %s: {", coh_layer_rows[layer->kind].name);
        for (int j = 0; j < COH_LAYER_FIELD_COUNT; j++) {
            const coh_option *field = &coh_layer_fields[j];
            if (!coh_layer_has(layer->kind, field))
                continue;
            fprintf(out, "%s%s: ", comma, field->key);
            coh_option_write(field, layer, out);
            comma = ", ";
        }
        fputc('}', out);
    }
    fputc('\n', out);
}

void coh_config_write(const coh_config *self, FILE *out)
{
    for (int i = 0; i < COH_OPTION_COUNT; i++) {
        const coh_option *row = &coh_options[i];
        const char *word = coh_option_word(row->key);

        fprintf(out, "%s%s:", word == row->key ? "" : "  ", word);
        if (row->type == COH_OPTION_ROOM) {
            fputc('\n', out);
        } else if (row->type == COH_OPTION_LAYERS) {
            write_layers(self, out);
        } else {
            fputc(' ', out);
            coh_option_write(row, self, out);
            fputc('\n', out);
        }
    }
}
