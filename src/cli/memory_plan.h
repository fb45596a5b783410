/* memory_plan.h - the memory that a worker and a server will have in use at
 * most, before anything runs: the sum of what each allocates, and what a
 * process is by itself.
 *
 * The network's part is not estimated: it is built as a worker would, without
 * memory for its values. What the program is (its code, libraries, threads,
 * the primitives of the network) is measured in this process meanwhile. Files
 * of data are opened if they are there.
 *
 * Threads: one caller; the OpenMP threads start.   MPI: none.
 */
#ifndef COH_CLI_MEMORY_PLAN_H
#define COH_CLI_MEMORY_PLAN_H

#include "common/model.h"
#include "common/plan.h"

/* Bytes. Name in text, field, what it is. */
#define COH_MEMORY_PARTS(X)                                                 \
    X("parameters", parameters, "")                                         \
    X("gradient", gradient, "")                                             \
    X("optimizer", optimizer, "its state")                                  \
    X("values", values, "of the network's layers, and work space")          \
    X("images", images, "batches read ahead, scores of an evaluation")      \
    X("data", data, "files and labels in memory, caches")                   \
    X("exchange", exchange, "blocks under way, or a copy of parameters")    \
    X("measuring", measuring, "the passes, once; before the rest is there") \
    X("program", program, "code, libraries, threads, MPI")

typedef struct coh_memory_parts {
#define X(name, field, help) int64_t field;
    COH_MEMORY_PARTS(X)
#undef X
} coh_memory_parts;

typedef struct coh_memory_plan {
    coh_memory_parts worker, server; /* server: zeros without servers */
    int64_t training, evaluation;    /* bytes of values that each needs */
    const char *passes; /* the ways of the network's passes: "direct",
                           "winograd", "measured", or "unmeasured": then the
                           values are the larger of those two */
    bool has_data;      /* false: the files are not there, data is 0, */
    char why[512];      /* and why */
} coh_memory_plan;

int64_t coh_memory_sum(const coh_memory_parts *parts);

/* What each allocates by itself: all but values, data and program. Pure.
 * evaluated: samples of the largest set to evaluate. */
void coh_memory_count(const coh_config *config, const coh_model *model,
                      const coh_plan *plan, int64_t evaluated,
                      coh_memory_plan *out);

/* All of it. Fails as coh_net_new() does. */
coh_status coh_memory_predict(const coh_config *config, const coh_model *model,
                              const coh_plan *plan, coh_memory_plan *out,
                              coh_err *err);

#endif
