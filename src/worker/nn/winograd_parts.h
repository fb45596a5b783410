/* winograd_parts.h - the parts of winograd.h: for its files only.
 *
 * A set of matrices holds one for each of the 64 points: [64][columns / 16]
 * [rows][16], each point's a little apart so that the 64 lines of a tile do not
 * fall on one set of the cache.
 */
#ifndef COH_WORKER_NN_WINOGRAD_PARTS_H
#define COH_WORKER_NN_WINOGRAD_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "worker/nn/winograd.h"

enum { COH_POINTS = 8, COH_SQUARE = COH_POINTS * COH_POINTS };

typedef struct coh_matrices {
    float *data;
    int64_t rows, columns;
} coh_matrices;

/* Floats from one point's matrix to the next. */
static inline int64_t coh_matrices_step(const coh_matrices *self)
{
    return self->rows * self->columns + 16;
}

static inline int64_t coh_matrices_count(int64_t rows, int64_t columns)
{
    return COH_SQUARE * (rows * columns + 16);
}

/* One side of a pass, as its tiles see it. */
typedef struct coh_side {
    float *data;             /* [B, blocks, size[0], size[1], 16] */
    int64_t blocks, size[2]; /* blocks of 16 channels */
    int64_t step;            /* from one value of a tile to the next */
    int64_t from[2];         /* of tile (0, 0), in such steps */
    int64_t phases;          /* step * step if they are told apart, else 1 */
} coh_side;

/* The tiles of a pass: both sides have as many. */
typedef struct coh_tiles {
    int64_t count[2]; /* a column, a row of an image */
    int64_t pitch;    /* steps from one to the next: m */
} coh_tiles;

/* How the weights of a layer become 64 matrices, or their gradient comes from
 * them. */
typedef struct coh_taps {
    const coh_winograd *shape;
    bool is_turned; /* to_fine: rows are coarse channels, taps in reverse */
} coh_taps;

/* Items [first, end) of columns / 16 x `tiles`, the tiles being the inner ones;
 * a side's columns are its phases' channels. `tile` is the first of the strip.
 * All items write their own values. */
void coh_winograd_take(const coh_side *side, const coh_tiles *tiles,
                       int64_t tile, int64_t count, int64_t first, int64_t end,
                       coh_matrices *out);
/* The same from the m x m values of a tile that are given, not the 8 x 8 that
 * are seen. */
void coh_winograd_spread(const coh_side *side, const coh_tiles *tiles,
                         int64_t tile, int64_t count, int64_t first,
                         int64_t end, coh_matrices *out);
void coh_winograd_give(const coh_side *side, const coh_tiles *tiles,
                       int64_t tile, int64_t count, int64_t first, int64_t end,
                       const coh_matrices *from, coh_winograd_end after);

/* Items [first, end) of columns / 16 x rows. */
void coh_winograd_take_weights(const coh_taps *taps, const float *weights,
                               int64_t first, int64_t end, coh_matrices *out);
/* The sum of `nsums` sets, one after the other from `from` on. */
void coh_winograd_give_weights(const coh_taps *taps, const coh_matrices *from,
                               int nsums, int64_t first, int64_t end,
                               float *diff);

/* out = a b at each point: a[rows, K], b[K, columns], out[rows, columns], for
 * the first `count` rows, rounded up to COH_STRIP_ROWS; the share of thread `me`
 * of `threads`. */
enum { COH_STRIP_ROWS = 12 };
void coh_winograd_multiply(const coh_matrices *a, const coh_matrices *b,
                           int64_t count, coh_matrices *out, int me,
                           int threads);
/* out = or += a^T b at each point: a[T, rows], b[T, columns], out[rows,
 * columns], for T = count. */
void coh_winograd_multiply_turned(const coh_matrices *a, const coh_matrices *b,
                                  int64_t count, bool adds, coh_matrices *out,
                                  int me, int threads);

#endif
