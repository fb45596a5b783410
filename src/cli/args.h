/* args.h - the words of a command line, checked. */
#ifndef COH_CLI_ARGS_H
#define COH_CLI_ARGS_H

#include <stdbool.h>

#include "common/status.h"

enum { COH_SETS_MAX = 256 };

typedef struct coh_args {
    const char *target; /* CONFIG, RUN, ...: the one plain word, or NULL */
    const char *resume; /* --resume */
    const char *split;  /* --split */
    const char *sets[COH_SETS_MAX];
    int nsets;
    int ranks;   /* --ranks; 0: not given */
    int largest; /* --largest, MiB; 0: not given */
    bool json, yaml, exchange;
} coh_args;

/* Options that a command takes. */
enum {
    COH_ARG_SET = 1,     /* --set key=value, as often as wanted */
    COH_ARG_RESUME = 2,  /* --resume auto|DIR */
    COH_ARG_RANKS = 4,   /* --ranks N */
    COH_ARG_JSON = 8,    /* --json */
    COH_ARG_SPLIT = 16,  /* --split train|validation|test */
    COH_ARG_YAML = 32,   /* --yaml */
    COH_ARG_TARGET = 64, /* a plain word must be given */
    COH_ARG_MAY_TARGET = 128,
    COH_ARG_EXCHANGE = 256, /* --exchange */
    COH_ARG_LARGEST = 512   /* --largest MIB */
};

/* argv[argc] are the words behind the command's name. Texts are borrowed.
 * Fails with COH_E_CONFIG: the word, and what the command takes. */
coh_status coh_args_parse(int argc, char **argv, int takes, coh_args *out,
                          coh_err *err);

#endif
