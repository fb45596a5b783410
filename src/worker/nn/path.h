/* path.h - the fastest way through a network, changes of layout included.
 *
 * Every value between two layers, and its gradient on the way back, has one of
 * three formats. A layer with ways wants its own on either side of each
 * pass; what arrives otherwise is copied. All other layers take what comes.
 * The least sum of all measured times is found by dynamic programming over the
 * formats (forward, backward) at each border of two layers.
 * Pure.   Threads: any.   MPI: none.
 */
#ifndef COH_WORKER_NN_PATH_H
#define COH_WORKER_NN_PATH_H

#include "worker/nn/choice.h"

/* coh_format of dnn.h, without ANY. */
enum { COH_PATH_PLAIN, COH_PATH_LAST, COH_PATH_BLOCKED, COH_PATH_FORMATS };
enum { COH_PATH_ANY = -1 }; /* takes what comes, and hands it back so */

typedef struct coh_path_way {
    bool exists;
    double seconds;
    int src, dst; /* formats of input and output, or of their gradients; src
                     may be COH_PATH_ANY */
} coh_path_way;

typedef struct coh_path_layer {
    bool has_ways;
    bool flattens; /* without: makes its input plain */
    bool has_data; /* an input gradient is wanted */
    coh_path_way ways[COH_CHOSEN_COUNT][COH_WAY_COUNT]; /* with ways */
    double follow[COH_PATH_FORMATS]; /* without: forward + backward, seconds */
    double src_bytes, dst_bytes;     /* of one value at the borders */
} coh_path_layer;

/* Seconds a byte to copy from one format to another; 0 on the diagonal. */
typedef double coh_path_copy[COH_PATH_FORMATS][COH_PATH_FORMATS];

/* Set the ways of layers[count] in `choices`. The network's input is plain, and
 * so is the gradient that the last layer begins with. Each pass that is wanted
 * must have a way. Returns the seconds of the path; fails with COH_E_NOMEM. */
coh_status coh_path_find(const coh_path_layer *layers, int count,
                         const coh_path_copy copy, bool training,
                         coh_choices *choices, double *seconds, coh_err *err);

#endif
