/* command.c - see command.h. */
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "common/config.h"

int coh_command_end(const char *command, coh_status status, const coh_err *err)
{
    if (status == COH_OK)
        return 0;
    fflush(stdout);
    fprintf(stderr, "cohort %s: %s: %s%s\n", command, coh_status_name(status),
            strchr(err->text, '\n') != NULL ? "\n" : "", err->text);
    return coh_status_exit_code(status);
}

int coh_command_help_config(int argc, char **argv)
{
    coh_err err = COH_ERR_INIT;
    coh_args args;

    const coh_status status =
        coh_args_parse(argc, argv, COH_ARG_YAML, &args, &err);
    if (status != COH_OK)
        return coh_command_end("help config", status, &err);
    if (args.yaml)
        coh_config_reference(stdout);
    else
        coh_config_help(stdout);
    return 0;
}
