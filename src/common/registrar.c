/* registrar.c - see registrar.h. */
#include "common/registrar.h"

#include <inttypes.h>
#include <stdlib.h>

#include "common/pace.h"

/* The group that evaluates: it may keep the best weights it saw. */
enum { EVALUATOR = 0 };

typedef struct member {
    int outstanding; /* grants not reported yet */
    int64_t dealt;   /* sync: pieces it had its share of, maybe nothing */
    bool evaluates;  /* the last of them is an evaluation */
    bool is_ready;   /* has sent its first report */
    bool is_stopped; /* was given STOP */
    bool is_fresh;   /* its next step is to be on the newest weights */
} member;

struct coh_registrar {
    coh_registrar_rules rules;
    coh_progress at;
    coh_pace *pace;    /* owned */
    coh_grant piece;   /* the last one cut; sync: of all groups together */
    int64_t cut;       /* pieces so far, in this job */
    int64_t apart;     /* sync: of them, since groups last exchanged */
    coh_status status; /* COH_OK while the run goes well */
    bool is_cut_short; /* stop() was called */
    bool is_lost;      /* what the groups hold is no longer worth saving */
    int64_t next_evaluate, next_save; /* samples; INT64_MAX: never */
    bool must_evaluate;               /* one is due and not granted yet */
    bool is_saved_last;               /* the save at the end is done */
    bool is_tested;                   /* TEST was granted */
    member groups[];
};

/* The first multiple of `every` after `samples`. */
static int64_t next_multiple(int64_t every, int64_t samples)
{
    return every <= 0 ? INT64_MAX : (samples / every + 1) * every;
}

static void refresh(coh_registrar *self)
{
    for (int g = 0; g < self->rules.groups; g++)
        self->groups[g].is_fresh = true;
}

coh_status coh_registrar_new(const coh_registrar_rules *rules,
                             const coh_progress *from, coh_registrar **out,
                             coh_err *err)
{
    COH_ASSERT(rules->epoch_samples > 0 && rules->step_samples > 0);
    if (from->steps < 0 || from->samples < 0 || from->epoch < 0 ||
        from->position < 0 || from->position >= rules->epoch_samples)
        return coh_fail(err, COH_E_CONFIG,
                        "the run stood at sample %" PRId64 " of an epoch, but "
                        "the training set has %" PRId64 ": resume with the "
                        "data it was trained on",
                        from->position, rules->epoch_samples);
    const bool is_bounded = rules->policy == COH_POLICY_BOUNDED;
    coh_pace *pace =
        coh_pace_new(rules->groups, is_bounded ? rules->bound : -1);
    coh_registrar *self =
        calloc(1, sizeof *self + (size_t)rules->groups * sizeof(member));
    if (self == NULL || pace == NULL) {
        coh_pace_destroy(&pace);
        free(self);
        return coh_fail(err, COH_E_NOMEM, "no memory for %d groups",
                        rules->groups);
    }

    self->rules = *rules;
    self->pace = pace;
    self->at = *from;
    refresh(self);
    self->next_evaluate = next_multiple(rules->evaluate_every, from->samples);
    self->next_save = next_multiple(rules->save_every, from->samples);
    *out = self;
    return COH_OK;
}

void coh_registrar_destroy(coh_registrar **self)
{
    if (*self == NULL)
        return;
    coh_pace_destroy(&(*self)->pace);
    free(*self);
    *self = NULL;
}

void coh_registrar_stop(coh_registrar *self, coh_status status)
{
    if (self->is_cut_short && (self->is_lost || status >= 0))
        return;
    if (status >= 0 && self->is_tested)
        return; /* trained and saved: the test may as well end */
    self->is_cut_short = true;
    self->status = status;
    self->is_lost = status < 0;
    self->must_evaluate = false;
}

static bool is_sync(const coh_registrar *self)
{
    return self->rules.policy == COH_POLICY_SYNC;
}

/* Sync: the groups hold updates that no other has. */
static bool is_apart(const coh_registrar *self)
{
    return self->apart > 0 && !self->is_lost;
}

/* Nothing granted is still under way, and with sync nothing is still to be
 * granted of the last piece: others may wait for that. */
static bool is_quiet(const coh_registrar *self)
{
    if (is_apart(self))
        return false;
    for (int g = 0; g < self->rules.groups; g++) {
        const member *group = &self->groups[g];
        if (group->outstanding > 0 ||
            (is_sync(self) && group->dealt < self->cut && !self->is_lost))
            return false;
    }
    return true;
}

/* All samples and steps of the run are granted. */
static bool is_complete(const coh_registrar *self)
{
    return self->at.samples >= self->rules.total_samples ||
           (self->rules.total_steps > 0 &&
            self->at.steps >= self->rules.total_steps);
}

/* No more samples will be granted, but to end what groups do apart. */
static bool is_exhausted(const coh_registrar *self)
{
    return self->is_cut_short || is_complete(self);
}

static bool is_save_due(const coh_registrar *self)
{
    if (self->is_lost)
        return false;
    return is_exhausted(self) ? !self->is_saved_last
                              : self->at.samples >= self->next_save;
}

bool coh_registrar_must_save(const coh_registrar *self)
{
    return is_save_due(self) && is_quiet(self);
}

void coh_registrar_saved(coh_registrar *self)
{
    self->next_save = next_multiple(self->rules.save_every, self->at.samples);
    self->is_saved_last = is_exhausted(self);
    refresh(self);
}

/* With sync all begin a step together: there is no lead to watch. */
static void join(coh_registrar *self, int index)
{
    if (!is_sync(self))
        coh_pace_join(self->pace, index);
}

/* A grant is done: what does the group do next? */
static void go_on(coh_registrar *self, int index, bool was_training)
{
    member *group = &self->groups[index];

    group->outstanding--;
    COH_ASSERT(group->outstanding >= 0);
    if (was_training) {
        const bool may_go_on = !is_exhausted(self) && !is_save_due(self);
        coh_pace_done(self->pace, index, may_go_on);
        if (group->evaluates && group->outstanding == 1)
            coh_pace_leave(self->pace, index);
    } else {
        group->evaluates = false;
        join(self, index);
        if (is_sync(self))
            refresh(self); /* all stay together: it has them already */
    }
}

void coh_registrar_report(coh_registrar *self, const coh_report *report)
{
    const int index = (int)report->group;
    member *group = &self->groups[index];

    if (report->kind == COH_REPORT_READY) {
        group->is_ready = true;
        join(self, index);
    } else if (report->kind != COH_REPORT_ALIVE) {
        go_on(self, index, report->kind == COH_GRANT_TRAIN);
    }

    if (report->status != COH_OK) {
        group->outstanding = 0; /* it drops what else it was granted */
        group->evaluates = false;
        coh_pace_leave(self->pace, index);
        coh_registrar_stop(self, (coh_status)report->status);
    } else if (report->stop != 0) {
        coh_registrar_stop(self, COH_STOPPED);
    }
}

/* Cut the next piece from the epoch, at most `most` samples long. */
static void cut_piece(coh_registrar *self, int64_t most)
{
    const coh_registrar_rules *rules = &self->rules;
    coh_progress *at = &self->at;
    int64_t count = most;

    if (count > rules->epoch_samples - at->position)
        count = rules->epoch_samples - at->position;
    if (count > rules->total_samples - at->samples)
        count = rules->total_samples - at->samples;

    self->piece = (coh_grant){ .kind = COH_GRANT_TRAIN,
                               .step = at->steps,
                               .epoch = at->epoch,
                               .first = at->position,
                               .count = count,
                               .clock = at->samples,
                               .groups = 1 };
    self->cut++;
    at->steps++;
    at->samples += count;
    at->position += count;
    if (at->position == rules->epoch_samples) {
        at->position = 0;
        at->epoch++;
    }
    if (at->samples >= self->next_evaluate) {
        self->next_evaluate = next_multiple(rules->evaluate_every, at->samples);
        self->must_evaluate =
            !self->is_cut_short && !(rules->test_covers && is_complete(self));
    }
}

/* Lease the next piece of the epoch to one group. */
static bool grant_piece(coh_registrar *self, int index, coh_grant *out)
{
    if (!coh_pace_may_grant(self->pace, index))
        return false;
    cut_piece(self, self->rules.step_samples);
    *out = self->piece;
    return true;
}

/* Sync: whether all groups can go on to another piece. An evaluation is of
 * the weights after the last one, so nobody changes them. */
static bool may_cut(const coh_registrar *self)
{
    for (int g = 0; g < self->rules.groups; g++) {
        const member *group = &self->groups[g];
        if (!group->is_ready || group->evaluates || group->dealt < self->cut)
            return false;
    }
    return !self->must_evaluate || is_apart(self);
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Sync: the share of `index` in the last piece, which it did not have yet. */
static void deal_share(coh_registrar *self, int index, coh_grant *out)
{
    const int64_t most = self->rules.step_samples;
    const int64_t before = least(index * most, self->piece.count);

    self->groups[index].dealt = self->cut;
    *out = self->piece;
    out->first += before;
    out->count = least(self->piece.count - before, most);
    out->groups = self->rules.groups;
}

/* A training step for a group that may have one. */
static bool grant_step(coh_registrar *self, int index, coh_grant *out)
{
    if (!is_sync(self))
        return grant_piece(self, index, out);
    if (!may_cut(self))
        return false;
    cut_piece(self, self->rules.groups * self->rules.step_samples);
    self->apart++;
    self->piece.exchange =
        self->apart >= self->rules.every || is_exhausted(self);
    if (self->piece.exchange)
        self->apart = 0;
    deal_share(self, index, out);
    return true;
}

static coh_grant evaluation(const coh_registrar *self, coh_grant_kind kind)
{
    return (coh_grant){ .kind = kind,
                        .step = self->at.steps,
                        .clock = self->at.samples };
}

/* The end of the run, saved already: a test, then everybody stops. */
static bool grant_end(coh_registrar *self, int index, coh_grant *out)
{
    if (!is_quiet(self) || self->must_evaluate)
        return false;
    if (self->is_tested || self->is_cut_short) {
        *out = (coh_grant){ .kind = COH_GRANT_STOP, .status = self->status };
        return true;
    }
    if (index != EVALUATOR)
        return false;
    self->is_tested = true;
    *out = evaluation(self, COH_GRANT_TEST);
    return true;
}

/* What `index` may do next, if anything. */
static bool choose(coh_registrar *self, int index, coh_grant *out)
{
    /* Its part of a piece that others have begun on comes first. */
    if (is_sync(self) && self->groups[index].dealt < self->cut &&
        !self->is_lost) {
        deal_share(self, index, out);
        return true;
    }
    if (is_apart(self))
        return grant_step(self, index, out);
    if (is_save_due(self))
        return false;
    if (self->must_evaluate && index == EVALUATOR) {
        self->must_evaluate = false;
        *out = evaluation(self, COH_GRANT_EVALUATE);
        return true;
    }
    return is_exhausted(self) ? grant_end(self, index, out)
                              : grant_step(self, index, out);
}

bool coh_registrar_next(coh_registrar *self, int index, coh_grant *out)
{
    member *group = &self->groups[index];

    if (!group->is_ready || group->is_stopped || group->evaluates ||
        group->outstanding >= self->rules.ahead || !choose(self, index, out))
        return false;

    if (out->kind == COH_GRANT_STOP) {
        group->is_stopped = true;
        return true;
    }
    group->outstanding++;
    if (out->kind == COH_GRANT_TRAIN) {
        out->fresh = group->is_fresh;
        group->is_fresh = false;
        coh_pace_grant(self->pace, index);
    } else {
        group->evaluates = true;
        if (group->outstanding == 1)
            coh_pace_leave(self->pace, index);
    }
    return true;
}

bool coh_registrar_is_done(const coh_registrar *self)
{
    for (int g = 0; g < self->rules.groups; g++) {
        if (!self->groups[g].is_stopped)
            return false;
    }
    return true;
}

coh_progress coh_registrar_progress(const coh_registrar *self)
{
    return self->at;
}

coh_status coh_registrar_status(const coh_registrar *self)
{
    return self->status;
}

int64_t coh_registrar_greatest_lead(const coh_registrar *self)
{
    return coh_pace_greatest_lead(self->pace);
}
