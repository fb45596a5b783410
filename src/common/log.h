/* log.h - what a rank says: a line is time, role letter and index, level, text.
 *
 *     2026-11-30 22:42:22.123 W3 warn   ...
 *
 *   error  the run cannot go on, or lost something    stderr and file, any rank
 *   warn   it goes on, but a user should look         stderr and file, any rank
 *   info   what a user wants to follow; a few lines   file; the chief's also on
 *          an epoch                                   stdout
 *   debug  what a developer wants afterwards          file
 *
 * Files are RUN/log/W3.log, made when the first line is written; before
 * coh_log_open() lines go to the console only. Threads: one caller.
 */
#ifndef COH_COMMON_LOG_H
#define COH_COMMON_LOG_H

#include <stdbool.h>

#include "common/status.h"

typedef struct coh_log coh_log;

typedef enum coh_level {
    COH_LOG_ERROR,
    COH_LOG_WARN,
    COH_LOG_INFO,
    COH_LOG_DEBUG
} coh_level;

/* role 'W' or 'S' and an index; is_chief: its info lines go to stdout. The
 * log is the caller's. Fails with COH_E_NOMEM. */
coh_status coh_log_new(char role, int index, bool is_chief, coh_log **out,
                       coh_err *err);
void coh_log_destroy(coh_log **self);

/* Write to `folder` from now on. A file that cannot be written is said once
 * and then done without. */
void coh_log_open(coh_log *self, const char *folder);

void coh_log_write(coh_log *self, coh_level level, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* A line of progress, on the chief's stdout alone: on a terminal it replaces
 * the one before. */
void coh_log_progress(coh_log *self, const char *text);

#endif
