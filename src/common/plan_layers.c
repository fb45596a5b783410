/* plan_layers.c - see plan_layers.h. */
#include "common/plan_layers.h"

#include <stdlib.h>

/* A layer with parameters, on its way to a server. */
typedef struct piece {
    coh_range range;
    int owner;
} piece;

int coh_plan_layers_count(const coh_model *model, const coh_layer **largest)
{
    int64_t most = 0;
    int count = 0;

    *largest = NULL;
    for (int l = 0; l < model->nlayers; l++) {
        const int64_t parameters = coh_layer_parameters(&model->layers[l]);
        count += parameters > 0;
        if (parameters > most) {
            *largest = &model->layers[l];
            most = parameters;
        }
    }
    return count;
}

/* In how many blocks a layer is cut: equal ones, but for the last. */
static int64_t blocks_of(int64_t count, int64_t most)
{
    return (count - 1) / most + 1;
}

static int compare_sizes(const void *a, const void *b)
{
    const piece *const *one = (const piece *const *)a;
    const piece *const *two = (const piece *const *)b;
    const int64_t x = (*one)->range.count, y = (*two)->range.count;

    if (x != y)
        return x < y ? 1 : -1;
    return (*one)->range.first < (*two)->range.first ? -1 : 1;
}

/* The largest layer first, each to the server that has least. Servers beyond
 * the number of layers get none. */
static void deal(piece *pieces, piece **order, int count, int64_t *loads,
                 int servers)
{
    const int used = servers < count ? servers : count;

    for (int i = 0; i < count; i++)
        order[i] = &pieces[i];
    qsort(order, (size_t)count, sizeof *order, compare_sizes);
    for (int i = 0; i < count; i++) {
        int least = 0;
        for (int s = 1; s < used; s++)
            if (loads[s] < loads[least])
                least = s;
        order[i]->owner = least;
        loads[least] += order[i]->range.count;
    }
}

static bool make_tables(coh_plan_layers *self, int64_t nblocks, int servers)
{
    const size_t n = (size_t)nblocks + 1;

    self->nblocks = nblocks;
    self->ranges = calloc(n, sizeof *self->ranges);
    self->owners = calloc(n, sizeof *self->owners);
    self->indices = calloc(n, sizeof *self->indices);
    self->blocks = calloc(n, sizeof *self->blocks);
    self->firsts = calloc((size_t)servers + 2, sizeof *self->firsts);
    return self->ranges != NULL && self->owners != NULL &&
           self->indices != NULL && self->blocks != NULL &&
           self->firsts != NULL;
}

static void cut(coh_plan_layers *self, const piece *pieces, int count,
                int64_t most)
{
    int64_t b = 0;

    for (int i = 0; i < count; i++) {
        const coh_range whole = pieces[i].range;
        const int64_t parts = blocks_of(whole.count, most);
        const int64_t size = (whole.count - 1) / parts + 1;
        for (int64_t at = 0; at < whole.count; at += size, b++) {
            const int64_t left = whole.count - at;
            self->ranges[b] =
                (coh_range){ whole.first + at, left < size ? left : size };
            self->owners[b] = pieces[i].owner;
        }
    }
    COH_ASSERT(b <= self->nblocks);
    self->nblocks = b;
}

/* A server's blocks keep their order. */
static void number(coh_plan_layers *self, int servers)
{
    for (int64_t b = 0; b < self->nblocks; b++)
        self->indices[b] = self->firsts[self->owners[b] + 1]++;
    for (int s = 0; s < servers; s++)
        self->firsts[s + 1] += self->firsts[s];
    for (int64_t b = 0; b < self->nblocks; b++)
        self->blocks[self->firsts[self->owners[b]] + self->indices[b]] = b;
}

coh_status coh_plan_layers_new(const coh_model *model, int servers,
                               int64_t most, coh_plan_layers **out,
                               coh_err *err)
{
    const coh_layer *largest;
    const int count = coh_plan_layers_count(model, &largest);
    coh_plan_layers *self = calloc(1, sizeof *self);
    piece *pieces = calloc((size_t)count + 1, sizeof *pieces);
    piece **order = calloc((size_t)count + 1, sizeof(piece *));
    int64_t *loads = calloc((size_t)servers, sizeof *loads);
    int64_t nblocks = 0, first = 0;
    int n = 0;

    for (int l = 0; l < model->nlayers && pieces != NULL; l++) {
        const int64_t size = coh_layer_parameters(&model->layers[l]);
        if (size == 0)
            continue;
        pieces[n++].range = (coh_range){ first, size };
        first += size;
        nblocks += blocks_of(size, most);
    }
    const bool is_made = self != NULL && pieces != NULL && order != NULL &&
                         loads != NULL && make_tables(self, nblocks, servers);
    if (is_made) {
        deal(pieces, order, count, loads, servers);
        cut(self, pieces, count, most);
        number(self, servers);
    } else {
        coh_plan_layers_destroy(&self);
    }
    free(pieces);
    free(order);
    free(loads);
    *out = self;
    return is_made ? COH_OK
                   : coh_fail(err, COH_E_NOMEM, "no memory for the plan");
}

void coh_plan_layers_destroy(coh_plan_layers **self)
{
    if (*self == NULL)
        return;
    free((*self)->ranges);
    free((*self)->owners);
    free((*self)->indices);
    free((*self)->blocks);
    free((*self)->firsts);
    free(*self);
    *self = NULL;
}
