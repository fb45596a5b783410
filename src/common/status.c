/* status.c - see status.h. */
#include "common/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char cut_mark[] = "\n(more was cut)";

coh_status coh_fail(coh_err *err, coh_status status, const char *fmt, ...)
{
    if (err == NULL)
        return status;

    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);
    err->status = status;
    return status;
}

/* Add `more` to the string in text[size]; what does not fit is cut. */
static void append(char *text, size_t size, const char *more)
{
    size_t used = strlen(text);

    while (used + 1 < size && *more != '\0')
        text[used++] = *more++;
    text[used] = '\0';
    if (*more != '\0')
        memcpy(text + size - sizeof cut_mark, cut_mark, sizeof cut_mark);
}

coh_status coh_err_add(coh_err *err, coh_status status, const char *fmt, ...)
{
    char line[1024];

    if (err == NULL)
        return status;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);

    if (err->text[0] != '\0')
        append(err->text, sizeof err->text, "\n");
    append(err->text, sizeof err->text, line);
    err->status = status;
    return status;
}

void coh_err_context(coh_err *err, const char *fmt, ...)
{
    if (err == NULL)
        return;

    const coh_err was = *err;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, ap);
    va_end(ap);

    append(err->text, sizeof err->text, ": ");
    append(err->text, sizeof err->text, was.text);
}

const char *coh_status_name(coh_status status)
{
    switch (status) {
#define X(name, value, exit_code, text) \
    case COH_##name:                    \
        return text;
        COH_STATUS_MAP(X)
#undef X
    }
    return "unknown status";
}

int coh_status_exit_code(coh_status status)
{
    switch (status) {
#define X(name, value, exit_code, text) \
    case COH_##name:                    \
        return exit_code;
        COH_STATUS_MAP(X)
#undef X
    }
    return 1;
}
