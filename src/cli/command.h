/* command.h - the subcommands. Each is one file of this room; main.c has their
 * table. argv[argc] are the words behind the command's name. Returns the exit
 * code of docs/numbers.md.
 */
#ifndef COH_CLI_COMMAND_H
#define COH_CLI_COMMAND_H

#include "common/status.h"

int coh_command_train(int argc, char **argv);
int coh_command_eval(int argc, char **argv);
int coh_command_plan(int argc, char **argv);
int coh_command_bench(int argc, char **argv);

/* `help config` lives with the options; the rest is main.c's. */
int coh_command_help_config(int argc, char **argv);

/* Print a failure, once, and give its exit code. For `help` see usage. */
int coh_command_end(const char *command, coh_status status, const coh_err *err);

#endif
