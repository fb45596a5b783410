/* lanes.c - see lanes.h. */
#include "worker/nn/lanes.h"

#include <string.h>

#include "common/simd.h"

enum {
    WIDTH = 8,   /* lanes that are done at once */
    NEAR = 4096, /* floats that stay in the first cache */
    SUMS = 2,
    FACTORS = 4
};

/* WIDTH lanes, as vectors: left alone, gcc 12 makes none of most loops here. */
typedef float floats __attribute__((vector_size(WIDTH * sizeof(float))));
typedef double doubles __attribute__((vector_size(WIDTH * sizeof(double))));
typedef int32_t bits __attribute__((vector_size(WIDTH * sizeof(int32_t))));

#define LOAD(to, from) memcpy(&(to), from, sizeof(to))
#define DOUBLES(from) __builtin_convertvector(from, doubles)
#define INLINE static inline __attribute__((always_inline))

/* The lanes from lane l on, WIDTH of them or one, at positions [p, end). */
typedef void lane_loop(const coh_lanes *it, int64_t l, int64_t p, int64_t end);

/* first += dy, second += dy (x - center) */
INLINE void sum_wide(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    doubles a = { 0 }, b = { 0 };
    floats x, dy, center;

    LOAD(center, it->center + l);
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

INLINE void sum_one(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    const double center = (double)it->center[l];

    for (; p < end; p++) {
        const double dy = (double)it->dy[p * it->lanes + l];
        it->first[l] += dy;
        it->second[l] += dy * ((double)it->x[p * it->lanes + l] - center);
    }
}

/* y = relu(factor (x - center) + shift) */
INLINE void move_wide(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    floats x, center, factor, shift;

    LOAD(center, it->center + l);
    LOAD(factor, it->factor + l);
    LOAD(shift, it->shift + l);
    for (; p < end; p++) {
        LOAD(x, it->x + p * it->lanes + l);
        const floats v = (x - center) * factor + shift, low = it->slope * v;
        const bits high = v > 0;
        const bits y = (high & (bits)v) | (~high & (bits)low);
        memcpy(it->out + p * it->lanes + l, &y, sizeof y);
    }
}

INLINE void move_one(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    for (; p < end; p++) {
        const float x = it->x[p * it->lanes + l] - it->center[l];
        const float v = x * it->factor[l] + it->shift[l];
        it->out[p * it->lanes + l] = v > 0 ? v : it->slope * v;
    }
}

/* dy = factor dy + tilt (x - center) + shift */
INLINE void turn_wide(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    floats x, dy, center, factor, tilt, shift;

    LOAD(center, it->center + l);
    LOAD(factor, it->factor + l);
    LOAD(tilt, it->tilt + l);
    LOAD(shift, it->shift + l);
    for (; p < end; p++) {
        LOAD(x, it->x + p * it->lanes + l);
        LOAD(dy, it->out + p * it->lanes + l);
        dy = factor * dy + (tilt * (x - center) + shift);
        memcpy(it->out + p * it->lanes + l, &dy, sizeof dy);
    }
}

INLINE void turn_one(const coh_lanes *it, int64_t l, int64_t p, int64_t end)
{
    for (; p < end; p++) {
        const float x = it->x[p * it->lanes + l] - it->center[l];
        float *dy = &it->out[p * it->lanes + l];
        *dy = it->factor[l] * *dy + (it->tilt[l] * x + it->shift[l]);
    }
}

/* All lanes, over as many positions as are near. */
INLINE void all_lanes(const coh_lanes *it, lane_loop *wide, lane_loop *one)
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

COH_SIMD static void sum(const coh_lanes *it)
{
    all_lanes(it, sum_wide, sum_one);
}

COH_SIMD static void move(const coh_lanes *it)
{
    all_lanes(it, move_wide, move_one);
}

COH_SIMD static void turn(const coh_lanes *it)
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
static void run_row_major(const coh_lanes *from, coh_lanes_loop *loop)
{
    float copies[FACTORS][WIDTH];
    double sums[SUMS][WIDTH] = { { 0 } };
    coh_lanes wide = *from, it = *from;

    wide.n = it.n / WIDTH;
    wide.lanes = WIDTH;
    wide.center = spread(it.center, copies[0]);
    wide.factor = spread(it.factor, copies[1]);
    wide.tilt = spread(it.tilt, copies[2]);
    wide.shift = spread(it.shift, copies[3]);
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

static void run(const coh_lanes *it, coh_lanes_loop *loop)
{
    if (it->lanes == 1)
        run_row_major(it, loop);
    else
        loop(it);
}

void coh_lanes_sum(const coh_lanes *it)
{
    run(it, sum);
}

void coh_lanes_move(const coh_lanes *it)
{
    run(it, move);
}

void coh_lanes_turn(const coh_lanes *it)
{
    run(it, turn);
}
