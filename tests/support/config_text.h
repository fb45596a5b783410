/* config_text.h - configurations from texts, for tests. */
#ifndef COH_TESTS_CONFIG_TEXT_H
#define COH_TESTS_CONFIG_TEXT_H

#include <string.h>

#include "common/config.h"
#include "support/check_run.h"

/* What a configuration must say at least, in two pieces. */
#define DATA "data: {kind: synthetic}\n"
#define MODEL                                                   \
    "model: {input: [1, 28, 28], layers: [dense: {units: 10}, " \
    "softmax_cross_entropy]}\n"

/* Load a good text, or fail the test with the message. */
static inline coh_config *config_of_sets(const char *text,
                                         const char *const *sets, int nsets)
{
    coh_err err = COH_ERR_INIT;
    coh_config *config = NULL;
    const coh_status status = coh_config_parse(
        "dir/job.yaml", text, strlen(text), sets, nsets, &config, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    ck_assert_str_eq(err.text, "");
    return config;
}

static inline coh_config *config_of(const char *text)
{
    return config_of_sets(text, NULL, 0);
}

/* Load a bad text and return the message in *err. */
static inline void refuse_sets(const char *text, const char *const *sets,
                               int nsets, coh_err *err)
{
    coh_config *config = NULL;

    *err = COH_ERR_INIT;
    ck_assert_int_eq(coh_config_parse("job.yaml", text, strlen(text), sets,
                                      nsets, &config, err),
                     COH_E_CONFIG);
    ck_assert_ptr_null(config);
    ck_assert_int_eq(err->status, COH_E_CONFIG);
}

/* A message must hold this. */
static inline void must_say(const coh_err *err, const char *part)
{
    ck_assert_msg(strstr(err->text, part) != NULL, "no '%s' in:\n%s", part,
                  err->text);
}

static inline int lines_of(const coh_err *err)
{
    int lines = err->text[0] != '\0';
    for (const char *at = err->text; *at != '\0'; at++)
        lines += *at == '\n';
    return lines;
}

#endif
