/* registrar.h - decides what must be decided once: who trains on which samples,
 * when to evaluate, when to save, when to stop. Pure: reports in, grants out.
 *
 * It runs where the run has its head: on server 0, or on rank 0 without
 * servers.
 *
 *     new -> { report | next | saved }* -> destroy
 *
 * Samples  an epoch is one seeded permutation of the training set; a TRAIN
 *          grant leases its next piece, at most step_samples long, so that
 *          every sample is used once an epoch and a fast group does more.
 * Policy   bounded: a step is withheld from a group that would begin it too far
 *          ahead of the slowest (pace.h). sync: a piece is as long as a step of
 *          all groups, and each gets its share of every piece, in the order of
 *          the groups: of the last one of an epoch that may be no samples, but
 *          it takes part, to have the new weights. All wait while one group
 *          evaluates. Where groups exchange every so many pieces only, they all
 *          do in the same ones, the last one of the run among them; a save or an
 *          evaluation waits for the next of those, and a stop makes the next
 *          piece one.
 * Ahead    a group holds up to `ahead` grants, done in the order given, so that
 *          its loader can read ahead; none behind an evaluation.
 * Saving   when a checkpoint is due nobody is granted more; once all grants
 *          are reported, must_save() is true: all weights are whole, nothing
 *          is on its way. saved() goes on.
 * Fresh    the first step of a group, and the first after a save, is on the
 *          newest weights (for exchange.lag): a run that is resumed there does
 *          the same. With sync also the first after an evaluation, which
 *          brings them to one group.
 * The end  all samples granted and reported, a last save, TEST for one group,
 *          then STOP for all, with the status of the run.
 */
#ifndef COH_COMMON_REGISTRAR_H
#define COH_COMMON_REGISTRAR_H

#include <stdbool.h>

#include "common/config.h"
#include "common/status.h"
#include "common/wire.h"

typedef struct coh_registrar coh_registrar;

/* Where the run stands; what a checkpoint keeps of it. */
typedef struct coh_progress {
    int64_t steps;    /* TRAIN grants so far, of all groups; sync: pieces */
    int64_t samples;  /* granted so far: the clock of schedules */
    int64_t epoch;    /* of the next piece */
    int64_t position; /* of the next piece, in its epoch */
} coh_progress;

typedef struct coh_registrar_rules {
    int groups;
    coh_policy_kind policy;
    int64_t bound;          /* policy bounded: the greatest lead, in steps */
    int64_t every;          /* policy sync: pieces to an exchange; 0 is 1 */
    int ahead;              /* grants a group holds at most, >= 1 */
    int64_t epoch_samples;  /* size of the training set, > 0 */
    int64_t step_samples;   /* of a group's step, at most */
    int64_t total_samples;  /* of the run */
    int64_t total_steps;    /* of the run; 0: no limit */
    int64_t evaluate_every; /* samples; 0: never before the end */
    int64_t save_every;     /* samples; 0: only at the end */
    bool test_covers;       /* TEST uses the validation set: an EVALUATE that
                                falls due at the end is left out */
} coh_registrar_rules;

/* Start at `from` (zeros: a new run). Fails with COH_E_NOMEM, or with
 * COH_E_CONFIG if `from` lies outside the training set. */
coh_status coh_registrar_new(const coh_registrar_rules *rules,
                             const coh_progress *from, coh_registrar **out,
                             coh_err *err);
void coh_registrar_destroy(coh_registrar **self);

/* A group did what it was granted, or is ready, or lives. A report with a
 * failed status stops the run with it; with stop set, with COH_STOPPED. */
void coh_registrar_report(coh_registrar *self, const coh_report *report);

/* End the run early: no more grants, a save, and no test. The first wins, but
 * a failure (status < 0) wins over COH_STOPPED; after one nothing is saved.
 * COH_STOPPED during the test changes nothing: all is trained and saved. */
void coh_registrar_stop(coh_registrar *self, coh_status status);

/* What `group` may do next. False: nothing for now, ask again after the next
 * report or save. STOP is given to each group once. */
bool coh_registrar_next(coh_registrar *self, int group, coh_grant *out);

/* True while a checkpoint is to be written, now. */
bool coh_registrar_must_save(const coh_registrar *self);
void coh_registrar_saved(coh_registrar *self);

/* True once every group was given STOP. */
bool coh_registrar_is_done(const coh_registrar *self);

coh_progress coh_registrar_progress(const coh_registrar *self);
coh_status coh_registrar_status(const coh_registrar *self);

/* How many steps a group was ahead of the slowest when it began one, at most:
 * see pace.h. */
int64_t coh_registrar_greatest_lead(const coh_registrar *self);

#endif
