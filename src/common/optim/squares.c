/* squares.c - see squares.h. */
#include "common/optim/squares.h"

#include <math.h>

/* Eight partial sums, so that the order is always the same. */
double coh_square_sum(const float *x, int64_t n)
{
    double sum[8] = { 0 };
    int64_t i = 0;

    for (; i + 8 <= n; i += 8) {
        for (int j = 0; j < 8; j++)
            sum[j] += (double)x[i + j] * (double)x[i + j];
    }
    for (; i < n; i++)
        sum[0] += (double)x[i] * (double)x[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) +
           ((sum[4] + sum[5]) + (sum[6] + sum[7]));
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
