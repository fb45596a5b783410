/* args.c - see args.h. */
#include "cli/args.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* argv[*i] is `name` with its value behind '=' or in the next word. */
static bool take_value(int argc, char **argv, int *i, const char *name,
                       const char **value)
{
    const size_t length = strlen(name);
    const char *word = argv[*i];

    if (strncmp(word, name, length) != 0)
        return false;
    if (word[length] == '=') {
        *value = word + length + 1;
        return true;
    }
    if (word[length] != '\0')
        return false;
    *value = *i + 1 < argc ? argv[++*i] : NULL;
    return true;
}

static coh_status take_number(const char *name, const char *value, int *out,
                              coh_err *err)
{
    char *end = NULL;

    errno = 0;
    const long number = strtol(value, &end, 10);
    if (*end != '\0' || errno != 0 || number < 1 || number > INT_MAX)
        return coh_fail(err, COH_E_CONFIG,
                        "%s '%s': must be a number of 1 or more", name, value);
    *out = (int)number;
    return COH_OK;
}

static coh_status take_set(const char *value, coh_args *out, coh_err *err)
{
    if (out->nsets == COH_SETS_MAX)
        return coh_fail(err, COH_E_CONFIG, "more than %d --set: use the file",
                        COH_SETS_MAX);
    if (strchr(value, '=') == NULL)
        return coh_fail(err, COH_E_CONFIG,
                        "--set '%s': write it as --set key=value", value);
    out->sets[out->nsets++] = value;
    return COH_OK;
}

/* One option with a value; *known says whether it was one. */
static coh_status take_option(int argc, char **argv, int *i, int takes,
                              coh_args *out, bool *known, coh_err *err)
{
    static const struct {
        int flag;
        const char *name;
    } options[] = { { COH_ARG_SET, "--set" },
                    { COH_ARG_RESUME, "--resume" },
                    { COH_ARG_RANKS, "--ranks" },
                    { COH_ARG_LARGEST, "--largest" },
                    { COH_ARG_SPLIT, "--split" } };
    const char *value = NULL;
    int flag = 0;

    for (size_t o = 0; o < sizeof options / sizeof options[0] && flag == 0; o++)
        if ((takes & options[o].flag) != 0 &&
            take_value(argc, argv, i, options[o].name, &value))
            flag = options[o].flag;
    *known = flag != 0;
    if (flag == 0)
        return COH_OK;
    if (value == NULL)
        return coh_fail(err, COH_E_CONFIG, "%s needs a value", argv[*i]);
    if (flag == COH_ARG_SET)
        return take_set(value, out, err);
    if (flag == COH_ARG_RANKS)
        return take_number("--ranks", value, &out->ranks, err);
    if (flag == COH_ARG_LARGEST)
        return take_number("--largest", value, &out->largest, err);
    *(flag == COH_ARG_RESUME ? &out->resume : &out->split) = value;
    return COH_OK;
}

/* An option without a value. */
static bool take_flag(const char *word, int takes, coh_args *out)
{
    const struct {
        int flag;
        const char *name;
        bool *is_given;
    } flags[] = { { COH_ARG_JSON, "--json", &out->json },
                  { COH_ARG_YAML, "--yaml", &out->yaml },
                  { COH_ARG_EXCHANGE, "--exchange", &out->exchange } };

    for (size_t f = 0; f < sizeof flags / sizeof flags[0]; f++) {
        if ((takes & flags[f].flag) != 0 && strcmp(word, flags[f].name) == 0)
            return *flags[f].is_given = true;
    }
    return false;
}

coh_status coh_args_parse(int argc, char **argv, int takes, coh_args *out,
                          coh_err *err)
{
    coh_args args = { 0 };

    for (int i = 0; i < argc; i++) {
        bool known = false;
        const coh_status status =
            take_option(argc, argv, &i, takes, &args, &known, err);
        if (status != COH_OK)
            return status;
        if (known)
            continue;
        if (take_flag(argv[i], takes, &args))
            continue;
        if ((takes & (COH_ARG_TARGET | COH_ARG_MAY_TARGET)) != 0 &&
            argv[i][0] != '-' && args.target == NULL)
            args.target = argv[i];
        else
            return coh_fail(err, COH_E_CONFIG, "'%s' is not understood here",
                            argv[i]);
    }
    if ((takes & COH_ARG_TARGET) != 0 && args.target == NULL)
        return coh_fail(err, COH_E_CONFIG, "a file or folder must be named");
    *out = args;
    return COH_OK;
}
