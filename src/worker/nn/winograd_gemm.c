/* winograd_gemm.c - the matrix products of winograd.h.
 *
 * Sums stay in registers: 12 rows x 32 columns, or 8 x 32. One matrix is read
 * in vectors of 16 columns, the other value by value.
 */
#include "worker/nn/winograd_parts.h"

#if defined(__x86_64__)

#include "worker/nn/avx512.h"

enum {
    PAIR = 2,          /* vectors of columns in one step */
    TURNED_ROWS = 8,   /* of one step of the turned product */
    DEPTH = 16 * LANES /* summed at a time: 32 columns of it fit the L1 cache */
};

/* A set's matrix of one point. */
static float *at_point(const coh_matrices *self, int64_t point)
{
    return self->data + point * coh_matrices_step(self);
}

/* c[ROWS][n * 16] = or += a[ROWS][depth] b[depth][n * 16]. Steps: of a, from 16
 * columns to the next; of b and c, from 16 columns to the next. */
INLINE void step_of(int n, int64_t depth, const float *a, int64_t a_step,
                    const float *b, int64_t b_step, bool adds, float *c,
                    int64_t c_step)
{
    enum { ROWS = COH_STRIP_ROWS };
    __m512 sum[ROWS * PAIR];

    UNROLL for (int i = 0; i < ROWS * n; i++) sum[i] =
        adds ? _mm512_loadu_ps(c + i % n * c_step + i / n * LANES)
             : _mm512_setzero_ps();
    for (int64_t k = 0; k < depth; k += LANES) {
        _Pragma("GCC unroll 4") for (int l = 0; l < LANES; l++)
        {
            __m512 right[PAIR];
            UNROLL for (int j = 0; j < n; j++) right[j] =
                _mm512_loadu_ps(b + j * b_step + l * LANES);
            UNROLL for (int i = 0; i < ROWS; i++)
            {
                const __m512 left = _mm512_set1_ps(a[i * LANES + l]);
                UNROLL for (int j = 0; j < n; j++) sum[i * n + j] =
                    _mm512_fmadd_ps(left, right[j], sum[i * n + j]);
            }
        }
        a += a_step;
        b += LANES * LANES;
    }
    UNROLL for (int i = 0; i < ROWS * n; i++)
        _mm512_storeu_ps(c + i % n * c_step + i / n * LANES, sum[i]);
}

/* All sums of some rows and up to 32 columns at one point. */
AVX512 static void multiply_panel(const coh_matrices *a, const coh_matrices *b,
                                  coh_matrices *out, int64_t point,
                                  int64_t column, int64_t row, int64_t end)
{
    const int64_t a_step = a->rows * LANES, b_step = b->rows * LANES;
    const int64_t c_step = out->rows * LANES;
    const bool is_pair = column + LANES < b->columns;

    for (int64_t k = 0; k < a->columns; k += DEPTH) {
        const int64_t depth = a->columns - k < DEPTH ? a->columns - k : DEPTH;
        const float *from = at_point(a, point) + k * a->rows;
        const float *right = at_point(b, point) + column * b->rows + k * LANES;
        float *to = at_point(out, point) + column * out->rows;
        for (int64_t r = row; r < end; r += COH_STRIP_ROWS) {
            if (is_pair)
                step_of(PAIR, depth, from + r * LANES, a_step, right, b_step,
                        k > 0, to + r * LANES, c_step);
            else
                step_of(1, depth, from + r * LANES, a_step, right, b_step,
                        k > 0, to + r * LANES, c_step);
        }
    }
}

void coh_winograd_multiply(const coh_matrices *a, const coh_matrices *b,
                           int64_t count, coh_matrices *out, int me,
                           int threads)
{
    const int64_t steps = (count + COH_STRIP_ROWS - 1) / COH_STRIP_ROWS;
    const int64_t pairs = (out->columns / LANES + PAIR - 1) / PAIR;
    const int64_t all = COH_SQUARE * pairs * steps;
    const int64_t end = all * (me + 1) / threads;
    int64_t next = 0;

    for (int64_t i = all * me / threads; i < end; i = next) {
        const int64_t panel = i / steps, row = i % steps;
        next = (panel + 1) * steps < end ? (panel + 1) * steps : end;
        multiply_panel(a, b, out, panel / pairs, panel % pairs * PAIR * LANES,
                       row * COH_STRIP_ROWS,
                       (next - panel * steps) * COH_STRIP_ROWS);
    }
}

/* c[8][n * 16] = or += a[count][8]^T b[count][n * 16]; rows of a and b are 16
 * floats apart. */
INLINE void turned_step_of(int n, int64_t count, const float *a, const float *b,
                           int64_t b_step, bool adds, float *c, int64_t c_step)
{
    __m512 sum[TURNED_ROWS * PAIR];

    UNROLL for (int i = 0; i < TURNED_ROWS * n; i++) sum[i] =
        adds ? _mm512_loadu_ps(c + i % n * c_step + i / n * LANES)
             : _mm512_setzero_ps();
    for (int64_t t = 0; t < count; t++, a += LANES, b += LANES) {
        __m512 right[PAIR];
        UNROLL for (int j = 0; j < n; j++) right[j] =
            _mm512_loadu_ps(b + j * b_step);
        UNROLL for (int i = 0; i < TURNED_ROWS; i++)
        {
            const __m512 left = _mm512_set1_ps(a[i]);
            UNROLL for (int j = 0; j < n; j++) sum[i * n + j] =
                _mm512_fmadd_ps(left, right[j], sum[i * n + j]);
        }
    }
    UNROLL for (int i = 0; i < TURNED_ROWS * n; i++)
        _mm512_storeu_ps(c + i % n * c_step + i / n * LANES, sum[i]);
}

AVX512 static void turned_panel(const coh_matrices *a, const coh_matrices *b,
                                int64_t count, bool adds, coh_matrices *out,
                                int64_t point, int64_t column, int64_t row)
{
    const int64_t b_step = b->rows * LANES, c_step = out->rows * LANES;
    const float *right = at_point(b, point) + column * b->rows;

    for (int64_t r = row; r < row + LANES; r += TURNED_ROWS) {
        const float *left = at_point(a, point) + row * a->rows + r % LANES;
        float *to = at_point(out, point) + column * out->rows + r * LANES;
        if (column + LANES < b->columns)
            turned_step_of(PAIR, count, left, right, b_step, adds, to, c_step);
        else
            turned_step_of(1, count, left, right, b_step, adds, to, c_step);
    }
}

void coh_winograd_multiply_turned(const coh_matrices *a, const coh_matrices *b,
                                  int64_t count, bool adds, coh_matrices *out,
                                  int me, int threads)
{
    const int64_t steps = out->rows / LANES;
    const int64_t pairs = (out->columns / LANES + PAIR - 1) / PAIR;
    const int64_t all = COH_SQUARE * pairs * steps;
    const int64_t end = all * (me + 1) / threads;

    for (int64_t i = all * me / threads; i < end; i++) {
        const int64_t panel = i / steps;
        turned_panel(a, b, count, adds, out, panel / pairs,
                     panel % pairs * PAIR * LANES, i % steps * LANES);
    }
}

#endif
