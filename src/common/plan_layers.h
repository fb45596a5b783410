/* plan_layers.h - placement `layer`: blocks that end where layers end. For
 * plan.c alone; the promises are those of plan.h.
 */
#ifndef COH_COMMON_PLAN_LAYERS_H
#define COH_COMMON_PLAN_LAYERS_H

#include "common/plan.h"

struct coh_plan_layers {
    int64_t nblocks;
    coh_range *ranges; /* [nblocks], owned */
    int *owners;       /* [nblocks], owned: the server of a block */
    int64_t *indices;  /* [nblocks], owned: its number there */
    int64_t *blocks;   /* [nblocks], owned: server 0's blocks, server 1's, .. */
    int64_t *firsts;   /* [servers + 1], owned: where they begin in `blocks` */
};

/* How many layers have parameters, and the largest of them. */
int coh_plan_layers_count(const coh_model *model, const coh_layer **largest);

/* Blocks of at most `most` parameters for `servers` > 0 owners.
 * Fails with COH_E_NOMEM. */
coh_status coh_plan_layers_new(const coh_model *model, int servers,
                               int64_t most, coh_plan_layers **out,
                               coh_err *err);
void coh_plan_layers_destroy(coh_plan_layers **self);

#endif
