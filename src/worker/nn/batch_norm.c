/* batch_norm.c - see batch_norm.h.
 *
 * The values of a block of channels are cut into some parts, by their number
 * alone; a part is one thread's, and the parts' sums are added up in order.
 * Squares are summed as they are: in double they lose less than the floats have
 * lost before.
 */
#include "worker/nn/batch_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "worker/nn/lanes.h"

enum {
    PART = 16384,   /* floats of a part, at least, */
    PARTS_MAX = 64, /* but no more parts of a block */
    SUMS = 2,
    FACTORS = 4
};

struct coh_batch_norm {
    coh_channels at;
    double epsilon;
    float slope;
    int64_t lanes; /* of all blocks: C and what fills up */
    /* In one piece of memory with self, each [lanes]: */
    double *mean, *variance, *first, *second;
    float *center, *factor, *tilt, *shift;
    double *parts; /* [nblocks, PARTS_MAX, SUMS, lanes of a block] */
};

coh_batch_norm *coh_batch_norm_new(const coh_channels *at, double epsilon,
                                   float slope)
{
    const size_t lanes = (size_t)(at->nblocks * at->lanes);
    const size_t doubles = (4 + SUMS * PARTS_MAX) * lanes;
    coh_batch_norm *self = calloc(1, sizeof *self + doubles * sizeof(double) +
                                         FACTORS * lanes * sizeof(float));
    if (self == NULL)
        return NULL;

    self->at = *at;
    self->epsilon = epsilon;
    self->slope = slope;
    self->lanes = (int64_t)lanes;
    self->mean = (double *)(self + 1);
    self->variance = self->mean + lanes;
    self->first = self->variance + lanes;
    self->second = self->first + lanes;
    self->parts = self->second + lanes;
    void *behind = self->parts + SUMS * PARTS_MAX * lanes;
    self->center = behind;
    self->factor = self->center + lanes;
    self->tilt = self->factor + lanes;
    self->shift = self->tilt + lanes;
    return self;
}

/* --- all values --------------------------------------------------------- */

/* What is done with all values. */
typedef struct pass {
    coh_lanes_loop *loop;
    const float *x, *dy;
    float *out;
} pass;

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int parts_of(const coh_channels *at, int64_t count)
{
    const int64_t parts = count * at->lanes / PART;
    return (int)(parts < 1 ? 1 : least(parts, PARTS_MAX));
}

/* Part `part` of `parts` of block `block`; its sums in self->parts. */
static void run_part(const coh_batch_norm *self, const pass *task,
                     int64_t block, int64_t count, int part, int parts)
{
    const coh_channels *at = &self->at;
    const int64_t n = at->lanes, lane = block * n;
    const bool joined = at->row_stride == at->positions * n;
    const int64_t row = joined ? count : at->positions;
    const int64_t end = count * (part + 1) / parts;
    double *sums = self->parts + (block * PARTS_MAX + part) * SUMS * n;
    coh_lanes it = { .lanes = n,
                     .center = self->center + lane,
                     .factor = self->factor + lane,
                     .tilt = self->tilt + lane,
                     .shift = self->shift + lane,
                     .slope = self->slope,
                     .first = sums,
                     .second = sums + n };

    memset(sums, 0, (size_t)(SUMS * n) * sizeof *sums);
    for (int64_t i = count * part / parts; i < end; i += it.n) {
        const int64_t first =
            i / row * at->row_stride + block * at->block_stride + i % row * n;
        it.n = least(end, (i / row + 1) * row) - i;
        it.x = task->x + first;
        it.dy = task->dy + first;
        it.out = task->out != NULL ? task->out + first : NULL;
        task->loop(&it);
    }
}

/* The sums of the parts of a block. */
static void add_parts(coh_batch_norm *self, int64_t block, int parts)
{
    const int64_t n = self->at.lanes;
    double *first = self->first + block * n, *second = self->second + block * n;

    memset(first, 0, (size_t)n * sizeof *first);
    memset(second, 0, (size_t)n * sizeof *second);
    for (int part = 0; part < parts; part++) {
        const double *sums =
            self->parts + (block * PARTS_MAX + part) * SUMS * n;
        for (int64_t l = 0; l < n; l++) {
            first[l] += sums[l];
            second[l] += sums[n + l];
        }
    }
}

/* With all values of the first rows; their sums in self->first, second. */
static void run(coh_batch_norm *self, int64_t rows, pass task)
{
    const int64_t count = rows * self->at.positions;
    const int parts = parts_of(&self->at, count);

#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < self->at.nblocks * parts; i++)
        run_part(self, &task, i / parts, count, (int)(i % parts), parts);
    for (int64_t block = 0; block < self->at.nblocks; block++)
        add_parts(self, block, parts);
}

static void clear_padding(const coh_batch_norm *self, int64_t rows, float *out)
{
    const coh_channels *at = &self->at;

    memset(out + rows * at->row_stride, 0,
           (size_t)((at->rows - rows) * at->row_stride) * sizeof *out);
}

/* --- what is promised --------------------------------------------------- */

static double values_of(const coh_batch_norm *self, int64_t rows)
{
    return (double)(rows * self->at.positions);
}

void coh_batch_norm_measure(coh_batch_norm *self, int64_t rows, const float *x)
{
    const double n = values_of(self, rows);

    memset(self->center, 0, (size_t)self->lanes * sizeof *self->center);
    run(self, rows, (pass){ coh_lanes_sum, x, x, NULL });
    for (int64_t c = 0; c < self->lanes; c++) {
        self->mean[c] = n > 0 ? self->first[c] / n : 0;
        self->variance[c] =
            n > 0 ? fmax(0, self->second[c] / n - self->mean[c] * self->mean[c])
                  : 0;
    }
}

void coh_batch_norm_take(coh_batch_norm *self, const float *mean,
                         const float *variance)
{
    for (int64_t c = 0; c < self->at.channels; c++) {
        self->mean[c] = (double)mean[c];
        self->variance[c] = (double)variance[c];
    }
}

bool coh_batch_norm_tell(const coh_batch_norm *self, int64_t rows,
                         double weight, float *mean, float *variance)
{
    const double n = values_of(self, rows);

    if (n < 2)
        return false;
    for (int64_t c = 0; c < self->at.channels; c++) {
        mean[c] = (float)(weight * self->mean[c]);
        variance[c] = (float)(weight * self->variance[c] * n / (n - 1));
    }
    return true;
}

static double scale_of(const coh_batch_norm *self, int64_t c)
{
    return 1 / sqrt(self->variance[c] + self->epsilon);
}

/* The numbers of lanes that only fill up stay 0. */
void coh_batch_norm_forward(coh_batch_norm *self, int64_t rows, const float *x,
                            const float *g, const float *h, float *y)
{
    for (int64_t c = 0; c < self->at.channels; c++) {
        self->center[c] = (float)self->mean[c];
        self->factor[c] = (float)((double)g[c] * scale_of(self, c));
        self->shift[c] = h[c];
    }
    run(self, rows, (pass){ coh_lanes_move, x, x, y });
    clear_padding(self, rows, y);
}

void coh_batch_norm_weights(coh_batch_norm *self, int64_t rows, const float *x,
                            const float *dy, float *dg, float *dh)
{
    for (int64_t c = 0; c < self->lanes; c++)
        self->center[c] = (float)self->mean[c];
    run(self, rows, (pass){ coh_lanes_sum, x, dy, NULL });
    for (int64_t c = 0; c < self->at.channels; c++) {
        dg[c] = (float)(self->second[c] * scale_of(self, c));
        dh[c] = (float)self->first[c];
    }
}

void coh_batch_norm_data(coh_batch_norm *self, int64_t rows, const float *x,
                         const float *g, float *dy)
{
    const double n = fmax(1, values_of(self, rows));

    for (int64_t c = 0; c < self->at.channels; c++) {
        const double scale = scale_of(self, c), factor = (double)g[c] * scale;
        self->factor[c] = (float)factor;
        self->tilt[c] = (float)(-factor * scale * scale * self->second[c] / n);
        self->shift[c] = (float)(-factor * self->first[c] / n);
    }
    run(self, rows, (pass){ coh_lanes_turn, x, dy, dy });
    clear_padding(self, rows, dy);
}
