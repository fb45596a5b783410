/* json.c - see json.h. */
#include "common/json.h"

#include <inttypes.h>
#include <math.h>

void coh_json_init(coh_json *self, FILE *out, bool is_line)
{
    *self = (coh_json){ .out = out, .is_first = true, .is_line = is_line };
}

static void write_text(FILE *out, const char *text)
{
    fputc('"', out);
    for (const unsigned char *c = (const unsigned char *)text; *c != 0; c++) {
        if (*c == '"' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\u%04x", *c);
        else
            fputc(*c, out);
    }
    fputc('"', out);
}

static void indent(coh_json *self)
{
    if (self->is_line || self->depth == 0)
        return;
    fputc('\n', self->out);
    for (int i = 0; i < self->depth; i++)
        fputs("  ", self->out);
}

/* The comma, the line and the key before a value. */
static void begin_value(coh_json *self, const char *key)
{
    if (!self->is_first)
        fputs(self->is_line ? ", " : ",", self->out);
    indent(self);
    self->is_first = false;
    if (key != NULL) {
        write_text(self->out, key);
        fputs(": ", self->out);
    }
}

void coh_json_open(coh_json *self, const char *key, char bracket)
{
    begin_value(self, key);
    fputc(bracket, self->out);
    self->depth++;
    self->is_first = true;
}

void coh_json_close(coh_json *self, char bracket)
{
    const bool is_empty = self->is_first;

    self->depth--;
    if (!is_empty && self->depth == 0 && !self->is_line)
        fputc('\n', self->out);
    else if (!is_empty)
        indent(self);
    fputc(bracket == '{' ? '}' : ']', self->out);
    self->is_first = false;
    if (self->depth == 0)
        fputc('\n', self->out);
}

void coh_json_int(coh_json *self, const char *key, int64_t value)
{
    begin_value(self, key);
    fprintf(self->out, "%" PRId64, value);
}

void coh_json_ints(coh_json *self, const char *key, const int64_t *values,
                   int64_t count)
{
    begin_value(self, key);
    fputc('[', self->out);
    for (int64_t i = 0; i < count; i++)
        fprintf(self->out, "%s%" PRId64, i > 0 ? ", " : "", values[i]);
    fputc(']', self->out);
}

void coh_json_real(coh_json *self, const char *key, double value)
{
    begin_value(self, key);
    if (isfinite(value))
        fprintf(self->out, "%.9g", value);
    else
        fputs("null", self->out);
}

void coh_json_text(coh_json *self, const char *key, const char *value)
{
    begin_value(self, key);
    write_text(self->out, value);
}
