/* inbox.h - where pushes arrive, are applied and answered.
 *
 * Receives are posted before anything is sent, several for each rank that
 * pushes, and again as soon as an answer is gone: a message is under way while
 * another is worked on, and none finds the server unready. A rank is answered
 * in the order of its pushes.
 *
 * Gradients arrive as exchange.push says, and are float32 from there on;
 * weights are float32, and made narrow for an answer that is to be (narrow.h).
 *
 * Policy async, bounded: a push is applied when it arrives; the answer may hold
 * what others pushed meanwhile, but not with exchange.elastic (local.h).
 * Policy sync: it is held until those of all groups have come (gather.h).
 *
 *     new -> { poll | release }* -> destroy
 *
 * Threads: one caller; OpenMP's for updates.
 * MPI: point to point with the groups' speakers.
 */
#ifndef COH_SERVER_INBOX_H
#define COH_SERVER_INBOX_H

#include "common/optim/shard.h"
#include "common/roles.h"
#include "common/wire.h"

typedef struct coh_inbox coh_inbox;

/* All borrowed; updates are made by so many threads. Posts the receives. Fails
 * with COH_E_NOMEM. */
coh_status coh_inbox_new(const coh_config *config, const coh_plan *plan,
                         const coh_roles *roles, int threads,
                         const coh_schedule *schedule, coh_shard *shard,
                         coh_inbox **out, coh_err *err);
void coh_inbox_destroy(coh_inbox **self);

/* Handle all pushes and pulls that are complete. *any becomes true if there
 * was one, else stays. Fails with COH_E_PEER. */
coh_status coh_inbox_poll(coh_inbox *self, bool *any, coh_err *err);

/* Policy sync: a group has failed and the run ends; whoever waits for its
 * pushes is answered now, and from now on nothing is applied. */
void coh_inbox_release(coh_inbox *self);

/* int64 [groups, COH_STALENESS_BINS]: how many pushed blocks of each group
 * were that many updates old; the last bin holds all older ones. Borrowed. */
int64_t *coh_inbox_staleness(coh_inbox *self);

/* Seconds spent in handling pushes so far. */
double coh_inbox_busy_s(const coh_inbox *self);

/* What became of the values of pushed gradients, and of weights in answers,
 * that were made narrow. */
coh_narrowed coh_inbox_pushed(const coh_inbox *self);
coh_narrowed coh_inbox_answered(const coh_inbox *self);

/* Floats of all pushes that can be under way to `server`. */
int64_t coh_inbox_floats(const coh_config *config, const coh_plan *plan,
                         int server);

#endif
