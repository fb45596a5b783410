/* sums.c - see sums.h. */
#include "worker/sums.h"

#include <stdlib.h>

struct coh_sums {
    const coh_plan *plan;
    const coh_roles *roles;
    bool for_all;
    int64_t nblocks;
    coh_xfer **sums; /* [nblocks], owned: those under way */

    float *gradient;
    int64_t ready;       /* gradients of blocks [ready, nblocks) are complete */
    int64_t begun, made; /* sums of blocks [begun, nblocks), [made, nblocks) */
};

/* A team of our own has room for the blocks that are added up at a time. */
static coh_status reserve(const coh_sums *self, coh_err *err)
{
    const int many = self->nblocks < COH_SUMS_AT_ONCE ? (int)self->nblocks
                                                      : COH_SUMS_AT_ONCE;

    if (self->plan->group_size == 1)
        return COH_OK;
    return coh_team_reserve(self->roles->team, COH_LINE_SUMS, many,
                            self->plan->block_count * (int64_t)sizeof(float),
                            err);
}

coh_status coh_sums_new(const coh_plan *plan, const coh_roles *roles,
                        bool for_all, coh_sums **out, coh_err *err)
{
    coh_sums *self = calloc(1, sizeof *self);
    coh_xfer **sums = calloc((size_t)plan->nblocks, sizeof(coh_xfer *));

    if (self == NULL || sums == NULL) {
        free(self);
        free(sums);
        return coh_fail(err, COH_E_NOMEM, "no memory for the exchange");
    }
    *self = (coh_sums){ .plan = plan,
                        .roles = roles,
                        .for_all = for_all,
                        .nblocks = plan->nblocks,
                        .sums = sums };
    const coh_status status = reserve(self, err);
    if (status != COH_OK) {
        coh_sums_destroy(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

void coh_sums_destroy(coh_sums **self)
{
    if (*self == NULL)
        return;
    free((*self)->sums);
    free(*self);
    *self = NULL;
}

void coh_sums_begin(coh_sums *self, float *gradient)
{
    self->gradient = gradient;
    self->ready = self->begun = self->made = self->nblocks;
}

void coh_sums_ready(coh_sums *self, int64_t first)
{
    while (self->ready > 0 &&
           coh_plan_block(self->plan, self->ready - 1).first >= first)
        self->ready--;
}

static coh_xfer *begin_sum(const coh_sums *self, int64_t b)
{
    const coh_range range = coh_plan_block(self->plan, b);
    const int speaker = coh_plan_speaker(self->plan, b);
    float *gradient = self->gradient + range.first;

    if (self->plan->group_size == 1)
        return NULL;
    return self->for_all
               ? coh_team_begin_sum(self->roles->team, COH_LINE_SUMS, speaker,
                                    gradient, range.count)
               : coh_team_begin_gather_sum(self->roles->team, COH_LINE_SUMS,
                                           speaker, gradient, range.count);
}

coh_status coh_sums_next(coh_sums *self, bool must, coh_wait *wait,
                         int64_t *block, coh_err *err)
{
    *block = -1;
    while (self->begun > self->ready &&
           self->made - self->begun < COH_SUMS_AT_ONCE) {
        self->begun--;
        self->sums[self->begun] = begin_sum(self, self->begun);
    }
    if (self->made == self->begun)
        return COH_OK;
    coh_xfer **sum = &self->sums[self->made - 1];
    if (!must && *sum != NULL && !coh_xfer_test(*sum))
        return COH_OK;
    const coh_status status = coh_xfer_wait(sum, wait, "a gradient sum", err);
    if (status == COH_OK)
        *block = --self->made;
    return status;
}

bool coh_sums_done(const coh_sums *self)
{
    return self->made == 0;
}
