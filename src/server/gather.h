/* gather.h - policy sync: the pushes of a block wait here for each other.
 *
 * A block is updated once a step, by the gradients of all groups together.
 * Each is kept apart until the last has come, and they are added up in the
 * order of the groups: so the sum does not depend on who was first.
 *
 *     new -> add* -> destroy
 *
 * Pure: no MPI.   Threads: one caller; the sum is taken by OpenMP's threads.
 */
#ifndef COH_SERVER_GATHER_H
#define COH_SERVER_GATHER_H

#include <stdint.h>

#include "common/wire.h"

/* A push, borrowed from its add() until the update it is part of. */
typedef struct coh_gathered {
    const coh_push *push;
    float *gradient; /* [count] a sum over push->weight samples */
    void *user;
} coh_gathered;

typedef struct coh_gather coh_gather;

/* For blocks 0 .. nblocks - 1, as the caller counts them. NULL only if memory
 * is short. */
coh_gather *coh_gather_new(int64_t nblocks, int groups);
void coh_gather_destroy(coh_gather **self);

/* One group's push for block `index`. NULL while others, push->groups in all,
 * are missing; else the pushes [groups], in their order, borrowed until the
 * next add to this block: those with no push were not waited for. A group
 * pushes a block once a step, and no next step before this one is whole. */
const coh_gathered *coh_gather_add(coh_gather *self, int64_t index,
                                   coh_gathered item);

/* The sum of what was gathered, into the gradient of one of items[groups]; NULL
 * if none has a weight. *weight: the sum of weights. */
float *coh_gather_sum(const coh_gathered *items, int groups, int64_t count,
                      int threads, double *weight);

#endif
