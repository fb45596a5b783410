/* smpi_main.c - `cohort train` under SimGrid: docs/simulation.md. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"

/* Ranks take turns in one thread. */
static const char *const ours[] = { "--set", "data.prefetch=0", "--set",
                                    "compute.threads=1" };
enum { NOURS = sizeof ours / sizeof ours[0] };

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "train") != 0) {
        fprintf(stderr,
                "usage: scripts/simulate -n RANKS %s train CONFIG "
                "[--set key=value]... [--resume auto|DIR]\n",
                argv[0]);
        return coh_status_exit_code(COH_E_CONFIG);
    }
    const int given = argc - 2;
    char **words = malloc(((size_t)given + NOURS) * sizeof *words);
    if (words == NULL)
        return coh_status_exit_code(COH_E_NOMEM);
    memcpy(words, argv + 2, (size_t)given * sizeof *words);
    for (int i = 0; i < NOURS; i++)
        words[given + i] = (char *)ours[i]; /* only read */
    const int code = coh_command_train(given + NOURS, words);
    free(words);
    return code;
}
