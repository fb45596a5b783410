/* clip.c - see clip.h. */
#include "common/optim/clip.h"

#include "common/simd.h"

double coh_clip_factor(double most, double norm)
{
    return norm > most ? most / norm : 1;
}

COH_SIMD static void scale(float factor, int64_t n, float *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] *= factor;
}

void coh_clip(const coh_statistics *statistics, coh_range range, double factor,
              float *gradient)
{
    const int64_t end = range.first + range.count;
    const coh_statistic *statistic;

    if (factor == 1)
        return; /* nothing goes through memory */
    for (int64_t at = range.first, n; at < end; at += n) {
        n = coh_statistics_run(statistics, at, end, &statistic);
        if (statistic == NULL)
            scale((float)factor, n, gradient + (at - range.first));
    }
}
