/* registrar.c - see registrar.h. */
#include "common/registrar.h"

#include <inttypes.h>
#include <stdlib.h>

/* The group that evaluates: it may keep the best weights it saw. */
enum { EVALUATOR = 0 };

typedef struct member {
    int outstanding; /* grants not reported yet */
    bool is_ready;   /* has sent its first report */
    bool is_stopped; /* was given STOP */
} member;

struct coh_registrar {
    coh_registrar_rules rules;
    coh_progress at;
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
    coh_registrar *self =
        calloc(1, sizeof *self + (size_t)rules->groups * sizeof(member));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for %d groups",
                        rules->groups);

    self->rules = *rules;
    self->at = *from;
    self->next_evaluate = next_multiple(rules->evaluate_every, from->samples);
    self->next_save = next_multiple(rules->save_every, from->samples);
    *out = self;
    return COH_OK;
}

void coh_registrar_destroy(coh_registrar **self)
{
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

void coh_registrar_report(coh_registrar *self, const coh_report *report)
{
    member *group = &self->groups[report->group];

    if (report->kind == COH_REPORT_READY)
        group->is_ready = true;
    else if (report->kind != COH_REPORT_ALIVE)
        group->outstanding--;
    COH_ASSERT(group->outstanding >= 0);

    if (report->status != COH_OK) {
        group->outstanding = 0; /* it drops what else it was granted */
        coh_registrar_stop(self, (coh_status)report->status);
    } else if (report->stop != 0) {
        coh_registrar_stop(self, COH_STOPPED);
    }
}

/* Nothing granted is still under way. */
static bool is_quiet(const coh_registrar *self)
{
    for (int g = 0; g < self->rules.groups; g++) {
        if (self->groups[g].outstanding > 0)
            return false;
    }
    return true;
}

/* No more samples will be granted. */
static bool is_exhausted(const coh_registrar *self)
{
    return self->is_cut_short ||
           self->at.samples >= self->rules.total_samples ||
           (self->rules.total_steps > 0 &&
            self->at.steps >= self->rules.total_steps);
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
}

/* Lease the next piece of the epoch. */
static void grant_piece(coh_registrar *self, coh_grant *out)
{
    const coh_registrar_rules *rules = &self->rules;
    coh_progress *at = &self->at;
    int64_t count = rules->step_samples;

    if (count > rules->epoch_samples - at->position)
        count = rules->epoch_samples - at->position;
    if (count > rules->total_samples - at->samples)
        count = rules->total_samples - at->samples;

    *out = (coh_grant){ .kind = COH_GRANT_TRAIN,
                        .step = at->steps,
                        .epoch = at->epoch,
                        .first = at->position,
                        .count = count,
                        .clock = at->samples };
    at->steps++;
    at->samples += count;
    at->position += count;
    if (at->position == rules->epoch_samples) {
        at->position = 0;
        at->epoch++;
    }
    if (at->samples >= self->next_evaluate) {
        self->next_evaluate = next_multiple(rules->evaluate_every, at->samples);
        self->must_evaluate = !(rules->test_covers && is_exhausted(self));
    }
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
    member *group = &self->groups[index];

    if (!is_quiet(self) || self->must_evaluate)
        return false;
    if (self->is_tested || self->is_cut_short) {
        *out = (coh_grant){ .kind = COH_GRANT_STOP, .status = self->status };
        group->is_stopped = true;
        return true;
    }
    if (index != EVALUATOR)
        return false;
    self->is_tested = true;
    *out = evaluation(self, COH_GRANT_TEST);
    group->outstanding++;
    return true;
}

bool coh_registrar_next(coh_registrar *self, int index, coh_grant *out)
{
    member *group = &self->groups[index];

    if (!group->is_ready || group->is_stopped ||
        group->outstanding >= self->rules.ahead)
        return false;

    if (is_save_due(self))
        return false;
    if (self->must_evaluate && index == EVALUATOR) {
        self->must_evaluate = false;
        *out = evaluation(self, COH_GRANT_EVALUATE);
    } else if (!is_exhausted(self)) {
        grant_piece(self, out);
    } else {
        return grant_end(self, index, out);
    }
    group->outstanding++;
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
