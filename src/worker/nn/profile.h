/* profile.h - where the time of a training step goes.
 *
 * A part is all that is done for one pass of one layer: its op, and the changes
 * of layout before and after it.
 * Threads: one caller.   MPI: none.
 */
#ifndef COH_WORKER_NN_PROFILE_H
#define COH_WORKER_NN_PROFILE_H

#include "worker/nn/dnn.h"

struct coh_graph;
struct coh_run;

typedef struct coh_step_part {
    int layer; /* in the model */
    coh_pass pass;
    double seconds; /* of the whole part; infinite before the first run */
    double copy_s;  /* its changes of layout alone */
    const char *algorithm; /* oneDNN's name, or that of our own code; borrowed
                              of the net */
    double saving;   /* products of the direct sum for each one that is made */
    char layout[40]; /* of src, and of dst behind > if it differs */
} coh_step_part;

/* How many parts the graph has, in the order they run in; described in parts[]
 * unless that is NULL. */
int coh_profile_parts(const struct coh_graph *graph, coh_step_part *parts);

/* Run forward and backward; the time of it in seconds. A part whose time is
 * less than what stands in parts[] is set. */
double coh_profile_run(const struct coh_graph *graph, const struct coh_run *run,
                       coh_step_part *parts);

/* "forward", "backward_data", "backward_weights". */
const char *coh_pass_name(coh_pass pass);

#endif
