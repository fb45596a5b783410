/* log.c - see log.h. */
#include "common/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files.h"

enum { LINE_MAX_BYTES = 8192 };

struct coh_log {
    char role;
    int index;
    bool is_chief;
    bool is_terminal;    /* stdout is one */
    bool has_progress;   /* the terminal's line holds a progress text */
    char path[PATH_MAX]; /* of the file; "" while there is none */
    FILE *file;          /* owned; NULL until the first line */
};

coh_status coh_log_new(char role, int index, bool is_chief, coh_log **out,
                       coh_err *err)
{
    coh_log *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a log");

    self->role = role;
    self->index = index;
    self->is_chief = is_chief;
    self->is_terminal = isatty(STDOUT_FILENO) == 1;
    *out = self;
    return COH_OK;
}

void coh_log_destroy(coh_log **self)
{
    if (*self == NULL)
        return;
    if ((*self)->has_progress)
        fputc('\n', stdout);
    if ((*self)->file != NULL)
        (void)fclose((*self)->file); /* each line was flushed */
    free(*self);
    *self = NULL;
}

void coh_log_open(coh_log *self, const char *folder)
{
    coh_err err = COH_ERR_INIT;

    if (coh_path(self->path, &err, "%s/%c%d.log", folder, self->role,
                 self->index) != COH_OK)
        self->path[0] = '\0';
}

static void write_file(coh_log *self, const char *line)
{
    if (self->path[0] == '\0')
        return;
    if (self->file == NULL)
        self->file = fopen(self->path, "a");
    if (self->file != NULL && fputs(line, self->file) >= 0 &&
        fflush(self->file) == 0)
        return;
    fprintf(stderr, "%c%d: cannot write '%s': %s; going on without\n",
            self->role, self->index, self->path, strerror(errno));
    self->path[0] = '\0';
}

void coh_log_write(coh_log *self, coh_level level, const char *fmt, ...)
{
    static const char *const names[] = { "error", "warn", "info", "debug" };
    char now[40], text[LINE_MAX_BYTES - 64], line[LINE_MAX_BYTES];

    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    coh_clock_text(now, sizeof now);
    snprintf(line, sizeof line, "%s %c%d %-5s %s\n", now, self->role,
             self->index, names[level], text);

    if (self->has_progress && level != COH_LOG_DEBUG) {
        fputs("\n", stdout);
        self->has_progress = false;
    }
    if (level <= COH_LOG_WARN)
        fputs(line, stderr);
    else if (level == COH_LOG_INFO && self->is_chief)
        fputs(line, stdout);
    (void)fflush(stdout);
    write_file(self, line);
}

void coh_log_progress(coh_log *self, const char *text)
{
    if (!self->is_chief)
        return;
    if (!self->is_terminal) {
        coh_log_write(self, COH_LOG_INFO, "%s", text);
        return;
    }
    printf("\r\033[K%s", text);
    (void)fflush(stdout);
    self->has_progress = true;
}
