/* merge.c - see merge.h. */
#include "common/merge.h"

#include "common/status.h"

void coh_merge_expect(coh_merge *self, int64_t step, int64_t groups)
{
    const int64_t i = step % COH_MERGE_STEPS;
    const bool is_free = self->steps[i].groups == self->steps[i].reported;

    if (!is_free && self->steps[i].sum.step == step)
        return;
    COH_ASSERT(is_free);
    self->steps[i].groups = groups;
    self->steps[i].reported = 0;
    self->steps[i].sum = (coh_report){ .kind = COH_GRANT_TRAIN, .step = step };
}

static void add(coh_report *sum, const coh_report *r, double share)
{
    sum->samples += r->samples;
    sum->loss += r->loss;
    sum->weight += r->weight;
    for (int i = 0; i < COH_LOSSES_MAX; i++)
        sum->losses[i] += r->losses[i];
    sum->gradient_norm += share * r->gradient_norm;
    sum->compute_s += share * r->compute_s;
    sum->wait_s += share * r->wait_s;
}

bool coh_merge_add(coh_merge *self, const coh_report *report, coh_report *out,
                   int64_t *groups)
{
    const int64_t i = report->step % COH_MERGE_STEPS;
    const int64_t expected = self->steps[i].groups;
    coh_report *sum = &self->steps[i].sum;

    COH_ASSERT(self->steps[i].reported < expected && sum->step == report->step);
    add(sum, report, 1.0 / (double)expected);
    if (++self->steps[i].reported < expected)
        return false;
    *out = *sum;
    *groups = expected;
    return true;
}
