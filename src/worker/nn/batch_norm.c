/* batch_norm.c - see batch_norm.h.
 *
 * The values of a block of channels are cut into some parts, by their number
 * alone; a part is one thread's, and the parts' sums are added up in order.
 * Squares are summed as they are: of floats, in double, nothing is lost.
 */
#include "worker/nn/batch_norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/simd.h"

enum {
    WIDTH = 8,      /* lanes that are done at once */
    NEAR = 4096,    /* floats that stay in the first cache */
    PART = 16384,   /* floats of a part, at least, */
    PARTS_MAX = 64, /* but no more parts of a block */
    SUMS = 2,
    FACTORS = 4
};

/* Of each lane; the loops below say what for. */
typedef struct factors {
    const float *center, *factor, *tilt, *shift;
} factors;

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

/* Some values of one block: n positions of `lanes` each. */
typedef struct piece {
    int64_t n, lanes;
    const float *x, *dy; /* read */
    float *out;          /* y, or dy again; NULL if only sums are wanted */
    factors by;          /* [lanes] */
    float slope;
    double *first, *second; /* [lanes], added to */
} piece;

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

/* --- the loops over values ---------------------------------------------- */

/* WIDTH lanes, as vectors: left alone, gcc 12 makes none of most loops here. */
typedef float floats __attribute__((vector_size(WIDTH * sizeof(float))));
typedef double doubles __attribute__((vector_size(WIDTH * sizeof(double))));
typedef int32_t bits __attribute__((vector_size(WIDTH * sizeof(int32_t))));

#define LOAD(to, from) memcpy(&(to), from, sizeof(to))
#define DOUBLES(from) __builtin_convertvector(from, doubles)
#define INLINE static inline __attribute__((always_inline))

/* The lanes from lane l on, WIDTH of them or one, at positions [p, end). */
typedef void lane_loop(const piece *it, int64_t l, int64_t p, int64_t end);

/* first += dy, second += dy (x - center) */
INLINE void sum_wide(const piece *it, int64_t l, int64_t p, int64_t end)
{
    doubles a = { 0 }, b = { 0 };
    floats x, dy, center;

    LOAD(center, it->by.center + l);
    for (; p < end; p++) {
        LOAD(x, it->x + p * it->lanes + l);
        LOAD(dy, it->dy + p * it->lanes + l);
        a += DOUBLES(dy);
        b += DOUBLES(dy) * (DOUBLES(x) - DOUBLES(center));
    }
    for (int j = 0; j < WIDTH; j++) {
        it->first[l + j] += a[j];
        it->second[l + j] += b[j];
    }
}

INLINE void sum_one(const piece *it, int64_t l, int64_t p, int64_t end)
{
    const double center = (double)it->by.center[l];

    for (; p < end; p++) {
        const double dy = (double)it->dy[p * it->lanes + l];
        it->first[l] += dy;
        it->second[l] += dy * ((double)it->x[p * it->lanes + l] - center);
    }
}

/* y = relu(factor (x - center) + shift) */
INLINE void move_wide(const piece *it, int64_t l, int64_t p, int64_t end)
{
    floats x, center, factor, shift;

    LOAD(center, it->by.center + l);
    LOAD(factor, it->by.factor + l);
    LOAD(shift, it->by.shift + l);
    for (; p < end; p++) {
        LOAD(x, it->x + p * it->lanes + l);
        const floats v = (x - center) * factor + shift, low = it->slope * v;
        const bits high = v > 0;
        const bits y = (high & (bits)v) | (~high & (bits)low);
        memcpy(it->out + p * it->lanes + l, &y, sizeof y);
    }
}

INLINE void move_one(const piece *it, int64_t l, int64_t p, int64_t end)
{
    for (; p < end; p++) {
        const float x = it->x[p * it->lanes + l] - it->by.center[l];
        const float v = x * it->by.factor[l] + it->by.shift[l];
        it->out[p * it->lanes + l] = v > 0 ? v : it->slope * v;
    }
}

/* dy = factor dy + tilt (x - center) + shift */
INLINE void turn_wide(const piece *it, int64_t l, int64_t p, int64_t end)
{
    floats x, dy, center, factor, tilt, shift;

    LOAD(center, it->by.center + l);
    LOAD(factor, it->by.factor + l);
    LOAD(tilt, it->by.tilt + l);
    LOAD(shift, it->by.shift + l);
    for (; p < end; p++) {
        LOAD(x, it->x + p * it->lanes + l);
        LOAD(dy, it->out + p * it->lanes + l);
        dy = factor * dy + (tilt * (x - center) + shift);
        memcpy(it->out + p * it->lanes + l, &dy, sizeof dy);
    }
}

INLINE void turn_one(const piece *it, int64_t l, int64_t p, int64_t end)
{
    for (; p < end; p++) {
        const float x = it->x[p * it->lanes + l] - it->by.center[l];
        float *dy = &it->out[p * it->lanes + l];
        *dy = it->by.factor[l] * *dy + (it->by.tilt[l] * x + it->by.shift[l]);
    }
}

/* All lanes, over as many positions as are near. */
INLINE void all_lanes(const piece *it, lane_loop *wide, lane_loop *one)
{
    const int64_t near = NEAR / it->lanes > 0 ? NEAR / it->lanes : 1;

    for (int64_t p = 0; p < it->n; p += near) {
        const int64_t end = p + near < it->n ? p + near : it->n;
        int64_t l = 0;
        for (; l + WIDTH <= it->lanes; l += WIDTH)
            wide(it, l, p, end);
        for (; l < it->lanes; l++)
            one(it, l, p, end);
    }
}

typedef void piece_loop(const piece *it);

COH_SIMD static void sum(const piece *it)
{
    all_lanes(it, sum_wide, sum_one);
}

COH_SIMD static void move(const piece *it)
{
    all_lanes(it, move_wide, move_one);
}

COH_SIMD static void turn(const piece *it)
{
    all_lanes(it, turn_wide, turn_one);
}

static const float *spread(const float *one, float *copies)
{
    for (int j = 0; j < WIDTH; j++)
        copies[j] = *one;
    return copies;
}

/* One lane: its positions stand side by side, and are done as lanes are. */
static void run_row_major(piece it, piece_loop *loop)
{
    float copies[FACTORS][WIDTH];
    double sums[SUMS][WIDTH] = { { 0 } };
    piece wide = it;

    wide.n = it.n / WIDTH;
    wide.lanes = WIDTH;
    wide.by = (factors){ spread(it.by.center, copies[0]),
                         spread(it.by.factor, copies[1]),
                         spread(it.by.tilt, copies[2]),
                         spread(it.by.shift, copies[3]) };
    wide.first = sums[0];
    wide.second = sums[1];
    loop(&wide);
    for (int j = 0; j < WIDTH; j++) {
        *it.first += sums[0][j];
        *it.second += sums[1][j];
    }
    const int64_t done = wide.n * WIDTH;
    it.n -= done;
    it.x += done;
    it.dy += done;
    if (it.out != NULL)
        it.out += done;
    loop(&it);
}

/* --- all values --------------------------------------------------------- */

/* What is done with all values, and by which numbers of the lanes. */
typedef struct pass {
    piece_loop *loop;
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
    piece it = { .lanes = n,
                 .by = { self->center + lane, self->factor + lane,
                         self->tilt + lane, self->shift + lane },
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
        if (n == 1)
            run_row_major(it, task->loop);
        else
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
    run(self, rows, (pass){ sum, x, x, NULL });
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
    run(self, rows, (pass){ move, x, x, y });
    clear_padding(self, rows, y);
}

void coh_batch_norm_weights(coh_batch_norm *self, int64_t rows, const float *x,
                            const float *dy, float *dg, float *dh)
{
    for (int64_t c = 0; c < self->lanes; c++)
        self->center[c] = (float)self->mean[c];
    run(self, rows, (pass){ sum, x, dy, NULL });
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
    run(self, rows, (pass){ turn, x, dy, dy });
    clear_padding(self, rows, dy);
}
