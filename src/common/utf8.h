/* utf8.h - the characters of a UTF-8 text. */
#ifndef COH_COMMON_UTF8_H
#define COH_COMMON_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of the character that text[length] begins with, and its code point in
 * *out; 0 if there is none (RFC 3629: no overlong form, no surrogate). */
int coh_utf8_decode(const char *text, size_t length, uint32_t *out);

/* May the character be printed: no control, separator of lines, or mark of
 * byte order? */
bool coh_utf8_is_printable(uint32_t point);

/* A piece of someone's text to print in a message: at most 60 bytes, all of
 * them printable, so that it stays on its line; "..." stands for the rest. */
typedef struct coh_clip {
    char text[64];
} coh_clip;
coh_clip coh_utf8_clip(const char *text);

#endif
