/* json.h - writes JSON to a stream: commas, escapes, numbers that are none.
 *
 * Keys are NULL inside a list. A number that is not finite is written as null.
 */
#ifndef COH_COMMON_JSON_H
#define COH_COMMON_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct coh_json {
    FILE *out;     /* borrowed */
    bool is_first; /* nothing stands yet in the open object or list */
    bool is_line;  /* all on one line */
    int depth;
} coh_json;

/* is_line: one object a line, for metrics.jsonl. */
void coh_json_init(coh_json *self, FILE *out, bool is_line);

/* open '{' or '['; close the same kind. The outermost ends with a newline. */
void coh_json_open(coh_json *self, const char *key, char bracket);
void coh_json_close(coh_json *self, char bracket);

void coh_json_int(coh_json *self, const char *key, int64_t value);

/* values[count] as a list on one line. */
void coh_json_ints(coh_json *self, const char *key, const int64_t *values,
                   int64_t count);
void coh_json_real(coh_json *self, const char *key, double value);
void coh_json_text(coh_json *self, const char *key, const char *value);

#endif
