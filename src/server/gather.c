/* gather.c - see gather.h. */
#include "server/gather.h"

#include <stdlib.h>
#include <string.h>

#include "common/add.h"
#include "common/status.h"

enum { CHUNK = 16384 }; /* floats a thread adds at once: stays in its cache */

struct coh_gather {
    int groups;
    int *arrived;        /* [nblocks], owned; of the step under way */
    coh_gathered *items; /* [nblocks, groups], owned */
};

coh_gather *coh_gather_new(int64_t nblocks, int groups)
{
    coh_gather *self = calloc(1, sizeof *self);
    if (self == NULL)
        return NULL;

    self->groups = groups;
    self->arrived = calloc((size_t)nblocks + 1, sizeof *self->arrived);
    self->items =
        calloc((size_t)nblocks * (size_t)groups + 1, sizeof *self->items);
    if (self->arrived == NULL || self->items == NULL)
        coh_gather_destroy(&self);
    return self;
}

void coh_gather_destroy(coh_gather **self)
{
    if (*self == NULL)
        return;
    free((*self)->arrived);
    free((*self)->items);
    free(*self);
    *self = NULL;
}

const coh_gathered *coh_gather_add(coh_gather *self, int64_t index,
                                   coh_gathered item)
{
    coh_gathered *items = self->items + index * self->groups;
    const int64_t group = item.push->group;

    COH_ASSERT(group >= 0 && group < self->groups);
    if (self->arrived[index] == 0)
        memset(items, 0, (size_t)self->groups * sizeof *items);
    COH_ASSERT(items[group].push == NULL);
    for (int g = 0; g < self->groups; g++)
        COH_ASSERT(items[g].push == NULL ||
                   items[g].push->step == item.push->step);
    items[group] = item;
    if (++self->arrived[index] < item.push->groups)
        return NULL;
    self->arrived[index] = 0;
    return items;
}

/* sum[from ..] += all others', a chunk at a time: the sum is read and written
 * once from memory, not once a group. */
static void add_chunk(const coh_gathered *items, int groups, float *sum,
                      int64_t from, int64_t n)
{
    for (int g = 0; g < groups; g++) {
        if (items[g].push != NULL && items[g].push->weight > 0 &&
            items[g].gradient != sum)
            coh_add(n, sum + from, items[g].gradient + from);
    }
}

float *coh_gather_sum(const coh_gathered *items, int groups, int64_t count,
                      int threads, double *weight)
{
    float *sum = NULL;

    *weight = 0;
    for (int g = 0; g < groups; g++) {
        if (items[g].push == NULL || items[g].push->weight <= 0)
            continue;
        if (sum == NULL)
            sum = items[g].gradient;
        *weight += items[g].push->weight;
    }
    if (sum == NULL)
        return NULL;
#pragma omp parallel for schedule(static) num_threads(threads)
    for (int64_t from = 0; from < count; from += CHUNK)
        add_chunk(items, groups, sum, from,
                  count - from < CHUNK ? count - from : CHUNK);
    return sum;
}
