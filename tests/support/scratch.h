/* scratch.h - a folder of a test's own, gone afterwards.
 *
 * setup: scratch_make(); teardown: scratch_remove(); in between
 * scratch_path("a/b") is a path inside, good until four calls later.
 */
#ifndef COH_TESTS_SCRATCH_H
#define COH_TESTS_SCRATCH_H

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/files.h"
#include "support/check_run.h"

enum { SCRATCH_TEXTS = 4 };
static char scratch_folder[64];

static inline void scratch_make(void)
{
    strcpy(scratch_folder, "/tmp/coh_test_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(scratch_folder));
}

static inline void scratch_remove(void)
{
    coh_err err = COH_ERR_INIT;
    ck_assert_int_eq(coh_path_remove(scratch_folder, &err), COH_OK);
}

static inline const char *scratch_path(const char *name)
{
    static char texts[SCRATCH_TEXTS][PATH_MAX];
    static int next;
    char *text = texts[next++ % SCRATCH_TEXTS];

    snprintf(text, PATH_MAX, "%s/%s", scratch_folder, name);
    return text;
}

/* Make a file with this text. */
static inline void scratch_write(const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(name), "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* What a file holds; the caller frees it. NULL if it is not there. */
static inline char *scratch_read(const char *name)
{
    FILE *file = fopen(scratch_path(name), "r");
    char *text = NULL;
    size_t size = 0;

    if (file == NULL)
        return NULL;
    const ssize_t length = getdelim(&text, &size, '\0', file);
    ck_assert(length >= 0 || feof(file));
    if (length < 0)
        text[0] = '\0';
    fclose(file);
    return text;
}

#endif
