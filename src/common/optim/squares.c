/* squares.c - see squares.h. */
#include "common/optim/squares.h"

#include <math.h>

#include "common/simd.h"

/* Partial sums, so that the order is always the same; so many that they hide
 * how long an addition takes. */
enum { SUMS = 32 };

COH_SIMD double coh_square_sum(const float *x, int64_t n)
{
    double sum[SUMS] = { 0 };
    int64_t i = 0;

    for (; i + SUMS <= n; i += SUMS) {
        for (int j = 0; j < SUMS; j++)
            sum[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (; i < n; i++)
        sum[0] += (double)x[i] * (double)x[i];
    for (int j = 1; j < SUMS; j++)
        sum[0] += sum[j];
    return sum[0];
}

bool coh_squares_add(const coh_statistics *statistics, coh_range range,
                     const float *gradient, double *squares)
{
    const int64_t end = range.first + range.count;
    const coh_statistic *statistic;
    bool is_finite = true;

    for (int64_t at = range.first, n; at < end; at += n) {
        n = coh_statistics_run(statistics, at, end, &statistic);
        const double sum = coh_square_sum(gradient + (at - range.first), n);
        if (statistic == NULL || !isfinite(sum))
            *squares += sum;
        is_finite = is_finite && isfinite(sum);
    }
    return is_finite;
}
