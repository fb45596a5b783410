/* pace.c - see pace.h. */
#include "common/pace.h"

#include <stdlib.h>

#include "common/status.h"

/* Both count from the same start; what lies between is granted ahead. */
typedef struct runner {
    int64_t done, granted;
    bool takes_part;
} runner;

struct coh_pace {
    int groups;
    int64_t bound, greatest_lead;
    runner runners[];
};

coh_pace *coh_pace_new(int groups, int64_t bound)
{
    coh_pace *self = calloc(1, sizeof *self + (size_t)groups * sizeof(runner));

    if (self == NULL)
        return NULL;
    self->groups = groups;
    self->bound = bound;
    return self;
}

void coh_pace_destroy(coh_pace **self)
{
    free(*self);
    *self = NULL;
}

/* Steps done by the slowest that takes part; INT64_MAX if nobody does. */
static int64_t slowest(const coh_pace *self, bool only_busy)
{
    int64_t least = INT64_MAX;

    for (int g = 0; g < self->groups; g++) {
        const runner *it = &self->runners[g];
        if (it->takes_part && it->done < least &&
            (!only_busy || it->granted > it->done))
            least = it->done;
    }
    return least;
}

void coh_pace_join(coh_pace *self, int group)
{
    runner *it = &self->runners[group];
    const int64_t least = slowest(self, false);

    if (it->takes_part)
        return;
    if (least != INT64_MAX && least > it->done)
        it->done = it->granted = least;
    it->takes_part = true;
}

void coh_pace_leave(coh_pace *self, int group)
{
    runner *it = &self->runners[group];

    it->takes_part = false;
    it->granted = it->done;
}

bool coh_pace_may_grant(const coh_pace *self, int group)
{
    return self->bound < 0 ||
           self->runners[group].granted - slowest(self, false) <= self->bound;
}

static void begin(coh_pace *self, const runner *it, bool may_go_on)
{
    const int64_t lead = it->done - slowest(self, !may_go_on);

    if (lead > self->greatest_lead)
        self->greatest_lead = lead;
}

void coh_pace_grant(coh_pace *self, int group)
{
    runner *it = &self->runners[group];

    if (!it->takes_part)
        return;
    it->granted++;
    if (it->granted == it->done + 1)
        begin(self, it, true);
}

void coh_pace_done(coh_pace *self, int group, bool may_go_on)
{
    runner *it = &self->runners[group];

    if (!it->takes_part)
        return;
    COH_ASSERT(it->granted > it->done);
    it->done++;
    if (it->granted > it->done)
        begin(self, it, may_go_on);
}

int64_t coh_pace_greatest_lead(const coh_pace *self)
{
    return self->greatest_lead;
}
