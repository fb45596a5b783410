/* dataset_files.c - patterns of file names; see dataset_part.h. */
#include "worker/dataset_part.h"

#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Append base + suffix. */
static coh_status add_file(coh_files *files, const char *base,
                           const char *suffix, coh_err *err)
{
    const size_t size = strlen(base) + strlen(suffix) + 1;
    const size_t count = (size_t)files->count + 1;
    char **items = realloc(files->items, count * sizeof *items);
    if (items != NULL)
        files->items = items;
    char *item = items != NULL ? malloc(size) : NULL;
    if (item == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the list of files");

    stpcpy(stpcpy(item, base), suffix);
    files->items[files->count++] = item;
    return COH_OK;
}

/* glob(3) sorts by the locale: every rank must have the same order. */
static coh_status add_matches(coh_files *files, const char *pattern,
                              const char *suffix, const char *key, coh_err *err)
{
    coh_status status = COH_OK;
    glob_t found = { 0 };
    const int rc = glob(pattern, GLOB_NOSORT | GLOB_TILDE, NULL, &found);

    if (rc == GLOB_NOSPACE)
        status = coh_fail(err, COH_E_NOMEM, "no memory for the list of files");
    else if (rc != 0)
        status = coh_fail(err, COH_E_DATA,
                          "%s: no file matches '%s' (from the folder the "
                          "program runs in): mend the name or pattern",
                          key, pattern);
    else
        qsort(found.gl_pathv, found.gl_pathc, sizeof *found.gl_pathv, by_bytes);

    for (size_t i = 0; status == COH_OK && i < found.gl_pathc; i++)
        status = add_file(files, found.gl_pathv[i], suffix, err);
    globfree(&found);
    return status;
}

static coh_status add_pattern(coh_files *files, const char *text,
                              const char *key, coh_err *err)
{
    if (access(text, F_OK) == 0)
        return add_file(files, text, "", err);

    const char *suffix = strstr(text, "::");
    if (suffix == NULL)
        suffix = text + strlen(text);
    char *pattern = strndup(text, (size_t)(suffix - text));
    if (pattern == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the list of files");

    const coh_status status =
        access(pattern, F_OK) == 0
            ? add_file(files, pattern, suffix, err)
            : add_matches(files, pattern, suffix, key, err);
    free(pattern);
    return status;
}

/* Two patterns that overlap would show some samples twice an epoch. */
static coh_status check_once(const coh_files *files, const char *key,
                             coh_err *err)
{
    const size_t count = (size_t)files->count;
    char **sorted = malloc((count + 1) * sizeof *sorted);
    coh_status status = COH_OK;
    if (sorted == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the list of files");

    if (count > 0)
        memcpy(sorted, files->items, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_bytes);
    for (size_t i = 1; status == COH_OK && i < count; i++) {
        if (strcmp(sorted[i - 1], sorted[i]) == 0)
            status = coh_fail(err, COH_E_DATA,
                              "%s: '%s' is named twice: its samples would "
                              "count double",
                              key, sorted[i]);
    }
    free(sorted);
    return status;
}

coh_status coh_files_expand(const coh_list *patterns, const char *key,
                            coh_files *out, coh_err *err)
{
    coh_files files = { 0 };
    coh_status status = COH_OK;

    for (int i = 0; status == COH_OK && i < patterns->count; i++)
        status = add_pattern(&files, patterns->items[i], key, err);
    if (status == COH_OK)
        status = check_once(&files, key, err);
    if (status != COH_OK) {
        coh_files_free(&files);
        return status;
    }
    *out = files;
    return COH_OK;
}

void coh_files_free(coh_files *files)
{
    for (int i = 0; i < files->count; i++)
        free(files->items[i]);
    free(files->items);
    *files = (coh_files){ 0 };
}
