/* desk.h - the chief's desk on server 0: reports come in, grants go out.
 *
 * It also watches that nobody falls silent, and tells groups that must wait
 * that the chief lives.
 *
 *     new -> { poll | grant }* -> destroy
 *
 * Threads: one caller.   MPI: point to point with the groups' roots.
 */
#ifndef COH_SERVER_DESK_H
#define COH_SERVER_DESK_H

#include "common/chief.h"
#include "common/roles.h"

typedef struct coh_desk coh_desk;

/* All borrowed. Posts the receives. Fails with COH_E_NOMEM. */
coh_status coh_desk_new(const coh_config *config, const coh_plan *plan,
                        const coh_roles *roles, coh_chief *chief,
                        coh_desk **out, coh_err *err);
void coh_desk_destroy(coh_desk **self);

/* Hand all reports that came to the chief; *any becomes true if there was one.
 * Fails with COH_E_PEER: a group that has something to do is silent. */
coh_status coh_desk_poll(coh_desk *self, bool *any, coh_err *err);

/* Send every group what the chief grants it. Fails with COH_E_PEER. */
coh_status coh_desk_grant(coh_desk *self, coh_err *err);

#endif
