/* main.c - cohort's table of subcommands. */
#include <stdio.h>
#include <string.h>

#include <mpi.h>

#include "cli/command.h"
#include "worker/nn/dnn.h"

typedef struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *usage; /* what stands behind the name */
    const char *what;  /* one line */
    const char *more;  /* the rest of its help */
} command;

static const command commands[] = {
    { "train", coh_command_train,
      "CONFIG [--set key=value]... [--resume auto|DIR]",
      "train the network that CONFIG describes",
      "Start it under MPI with servers + groups x group_size ranks:\n"
      "    srun -n 3 cohort train config/demo.yaml\n"
      "    mpiexec -n 3 cohort train config/demo.yaml\n"
      "Everything goes to the run folder run.out/run.name. --set changes one\n"
      "key of the file. --resume auto goes on from the run's newest "
      "checkpoint,\n"
      "or begins if there is none; --resume DIR from another run's.\n" },
    { "plan", coh_command_plan,
      "CONFIG [--set key=value]... [--ranks N] [--json]",
      "say what would run: layers, roles, memory, flop",
      "Needs no MPI launch and no data. --ranks N checks a launch of N "
      "ranks.\n" },
    { "eval", coh_command_eval,
      "RUN|CHECKPOINT [--split train|validation|test] [--set key=value]... "
      "[--json]",
      "measure a checkpoint on a data set",
      "RUN is a run folder (its newest checkpoint) or a checkpoint's folder.\n"
      "Runs on one rank, or shares the samples out over all under MPI.\n"
      "The network and the data are those of the run; --set changes them.\n" },
    { "bench", coh_command_bench,
      "CONFIG [--set key=value]... [--json] [--exchange [--largest MIB]]",
      "measure how fast this node trains the network, or ranks exchange it",
      "The machine's peak, then each layer and pass: time, GFLOP/s, share of\n"
      "the peak, algorithm, layout; the whole step, the update of the weights,"
      "\nthe making of a batch. One process on made-up data: needs no MPI "
      "launch.\n\n"
      "--exchange measures something else, on two ranks or more: how fast\n"
      "gradients go to the servers and weights come back, from 4 to 512 MiB,\n"
      "without computing; then what computing does not hide of it in a step\n"
      "of the network. Start it as a training:\n"
      "    mpiexec -n 2 cohort bench config/hep.yaml --exchange\n"
      "One worker without servers is measured with one. --largest leaves out\n"
      "sizes above so many MiB. docs/numbers.md defines every number.\n" },
};
enum { NCOMMANDS = sizeof commands / sizeof commands[0] };

static const command *find(const char *name)
{
    for (int i = 0; i < NCOMMANDS; i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_usage(FILE *out)
{
    fputs("cohort: hybrid synchronous/asynchronous training for clusters\n\n",
          out);
    for (int i = 0; i < NCOMMANDS; i++)
        fprintf(out, "  cohort %-6s %s\n  %13s %s\n", commands[i].name,
                commands[i].usage, "", commands[i].what);
    fputs("  cohort help   [COMMAND | config [--yaml]]\n"
          "                more about a command, or about all keys of CONFIG\n"
          "  cohort --version\n\n"
          "exit codes: 0 done, 1 failed, 2 usage or config, 3 data, 4 launch "
          "does not fit\nthe config, 5 stopped by a signal or time limit and "
          "saved, 6 a peer was lost,\n7 diverged\n",
          out);
}

static int print_version(void)
{
    char mpi[MPI_MAX_LIBRARY_VERSION_STRING] = "", dnn[32];
    int length = 0;

    MPI_Get_library_version(mpi, &length);
    mpi[strcspn(mpi, "\n")] = '\0';
    for (char *c = mpi; *c != '\0'; c++)
        *c = *c == '\t' ? ' ' : *c;
    coh_dnn_version(dnn, sizeof dnn);
    printf("cohort %s\n  MPI     %s\n  oneDNN  %s\n", COH_VERSION, mpi, dnn);
    return 0;
}

static int help(int argc, char **argv)
{
    if (argc == 0) {
        print_usage(stdout);
        return 0;
    }
    if (strcmp(argv[0], "config") == 0)
        return coh_command_help_config(argc - 1, argv + 1);

    const command *it = find(argv[0]);
    if (it == NULL) {
        fprintf(stderr, "cohort: no command '%s'; see cohort help\n", argv[0]);
        return coh_status_exit_code(COH_E_CONFIG);
    }
    printf("cohort %s %s\n\n%s\n", it->name, it->usage, it->more);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return coh_status_exit_code(COH_E_CONFIG);
    }
    const char *name = argv[1];
    if (strcmp(name, "--version") == 0)
        return print_version();
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 ||
        strcmp(name, "-h") == 0)
        return help(argc - 2, argv + 2);

    const command *it = find(name);
    if (it == NULL) {
        fprintf(stderr, "cohort: no command '%s'; see cohort help\n", name);
        return coh_status_exit_code(COH_E_CONFIG);
    }
    if (argc > 2 && strcmp(argv[2], "--help") == 0)
        return help(1, argv + 1);
    return it->run(argc - 2, argv + 2);
}
