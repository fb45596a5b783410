/* lead.h - a group's line to the chief, and the grants it was given.
 *
 * The root speaks with the chief: on server 0 by messages, or, without
 * servers, beside it in the same process. It spreads what it is granted to its
 * group, so that every member knows the next pieces and can read them ahead.
 *
 *     new -> { take | report | alive }* -> destroy
 *
 * Collectivity: take() is collective over the group; report() and alive() do
 * nothing on members that are not the root.
 */
#ifndef COH_WORKER_LEAD_H
#define COH_WORKER_LEAD_H

#include "common/chief.h"
#include "common/roles.h"

typedef struct coh_lead coh_lead;

/* Told of every grant as soon as the group knows it, in order. */
typedef coh_status (*coh_lead_heard)(void *user, const coh_grant *grant,
                                     coh_err *err);

/* What the lead of a run without servers needs besides: the chief (rank 0's,
 * NULL elsewhere) and the shard that a checkpoint writes, or NULL: nothing. */
typedef struct coh_lead_local {
    coh_chief *chief;
    coh_shard *shard;
} coh_lead_local;

/* All borrowed. Fails with COH_E_NOMEM. */
coh_status coh_lead_new(const coh_config *config, const coh_plan *plan,
                        const coh_roles *roles, coh_lead_local local,
                        coh_lead_heard heard, void *user, coh_lead **out,
                        coh_err *err);
void coh_lead_destroy(coh_lead **self);

/* Has the whole group heard already that its next grant is a step? The same on
 * all members between two calls of take(). */
bool coh_lead_trains_next(const coh_lead *self);

/* Collective over the group. The next grant to do; never WAIT. A step behind
 * which none is known yet is one to exchange in: the chief may be about to save
 * or evaluate.
 * Fails with COH_E_PEER, or as `heard` fails. */
coh_status coh_lead_take(coh_lead *self, coh_grant *out, coh_err *err);

/* Tell the chief. Fails with COH_E_PEER. */
coh_status coh_lead_report(coh_lead *self, const coh_report *report,
                           coh_err *err);

/* In the middle of something long, now and then. Fails with COH_E_PEER. */
coh_status coh_lead_alive(coh_lead *self, coh_err *err);

#endif
