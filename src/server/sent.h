/* sent.h - the weights that each group was last sent.
 *
 * A rule that compensates (rule.h: DC-ASGD) must know what a gradient was
 * computed from. A group pushes a block after it has the answer to its last push
 * of it, or to a pull, so that is the last answer; as it was before
 * exchange.reply made it narrow. Nothing of it is saved: a group begins with a
 * pull.
 *
 *     new -> { take | of }* -> destroy      NULL keeps nothing, and has nothing
 *
 * Memory   a copy of the server's weights a group.
 * Threads  one caller; what of() returns may be read by others.
 * MPI      none.
 */
#ifndef COH_SERVER_SENT_H
#define COH_SERVER_SENT_H

#include "common/optim/shard.h"

typedef struct coh_sent coh_sent;

/* Floats of a server that owns so many parameters: 0 if the rule has no use for
 * them, or there is no delay, with one group or policy sync. */
int64_t coh_sent_floats(const coh_config *config, const coh_plan *plan,
                        int64_t owned);

/* Both borrowed; the shard is that of `server`. NULL only if memory is short. */
coh_sent *coh_sent_new(const coh_plan *plan, int server, coh_shard *shard);
void coh_sent_destroy(coh_sent **self);

/* The group is sent the block as it is now. */
void coh_sent_take(coh_sent *self, int64_t group, int64_t block);

/* What it was sent: [block], borrowed until it is sent the next. That must have
 * been this version. */
const float *coh_sent_of(const coh_sent *self, int64_t group, int64_t block,
                         int64_t version);

#endif
