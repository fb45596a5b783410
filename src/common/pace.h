/* pace.h - how far each group is, and who must wait for whom.
 *
 * Pure: plain numbers, no clock, no MPI. The registrar asks it before it
 * grants a step, and tells it what was granted and done.
 *
 *     new -> { join | leave | grant | done }* -> destroy
 *
 * Lead   a group that begins its step n while the slowest group that takes
 *        part is at its step m leads by n - m. A bound s holds the lead: a
 *        step is granted only when it can begin with a lead of at most s,
 *        however many steps are granted ahead. The slowest is never held.
 * Part   a group takes part from join to leave. One that is not ready yet,
 *        evaluates or is lost does not, and holds nobody up. Whoever joins is
 *        put level with the slowest: the time away is not made up for.
 */
#ifndef COH_COMMON_PACE_H
#define COH_COMMON_PACE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct coh_pace coh_pace;

/* bound < 0: none. No group takes part yet. NULL only if memory is short. */
coh_pace *coh_pace_new(int groups, int64_t bound);
void coh_pace_destroy(coh_pace **self);

/* Joining twice, or leaving, is once. A group that leaves drops what it was
 * granted and has not done. */
void coh_pace_join(coh_pace *self, int group);
void coh_pace_leave(coh_pace *self, int group);

/* Whether one step more may be granted to a group that takes part. What is
 * granted to and done by one that does not is not counted. */
bool coh_pace_may_grant(const coh_pace *self, int group);
void coh_pace_grant(coh_pace *self, int group);

/* The oldest granted step is done; the next, if it was granted, begins. While
 * nobody `may_go_on` (the run ends, or saves) the lead is over those only that
 * still have something granted. */
void coh_pace_done(coh_pace *self, int group, bool may_go_on);

/* Of all steps that began so far. */
int64_t coh_pace_greatest_lead(const coh_pace *self);

#endif
