/* updates.h - the updates that are due, made together by several threads.
 *
 * Each thread takes a block at a time; they are of different blocks, and so
 * touch different parts of the shard. A single one has its sum shared out.
 *
 *     new -> { add* -> run }* -> destroy
 *
 * No MPI.   Threads: one caller; run() uses OpenMP's.
 */
#ifndef COH_SERVER_UPDATES_H
#define COH_SERVER_UPDATES_H

#include "common/optim/shard.h"
#include "server/gather.h"

/* By one push with its gradient, or by all of `items`. Borrowed until run(). */
typedef struct coh_update {
    const coh_push *push; /* items: any of them */
    const float *gradient;
    const coh_gathered *items; /* [groups], or NULL */
    int64_t staleness;         /* of the push: the rate may depend on it */
    const float *seen; /* [block] what the gradient was computed from, if the
                          rule wants that; or NULL */
} coh_update;

typedef struct coh_updates coh_updates;

/* plan, schedule and shard are borrowed. NULL only if memory is short. */
coh_updates *coh_updates_new(const coh_plan *plan, const coh_schedule *schedule,
                             coh_shard *shard, int threads);
void coh_updates_destroy(coh_updates **self);

/* One more that is due; if there is one of this block already, or no room, the
 * others are made first. */
void coh_updates_add(coh_updates *self, coh_update update);

/* Whether an update of this block is still to be made. */
bool coh_updates_has(const coh_updates *self, int64_t block);

/* Make all that are due. */
void coh_updates_run(coh_updates *self);

#endif
