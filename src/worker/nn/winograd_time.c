/* winograd_time.c - how long a pass takes; see winograd.h. */
#include <math.h>

#include "common/clock.h"
#include "worker/nn/winograd.h"

enum { LINE = 64 };

static int64_t floats_of(int64_t batch, int64_t channels, const int64_t *size)
{
    return batch * channels * size[0] * size[1];
}

static void run(const coh_winograd *self, coh_winograd_pass pass, float *fine,
                float *coarse, float *weights, float *work)
{
    const coh_winograd_end end = { .slope = 1 };

    switch (pass) {
    case COH_WINOGRAD_COARSE:
        coh_winograd_to_coarse(self, fine, weights, end, work, coarse);
        break;
    case COH_WINOGRAD_FINE:
        coh_winograd_to_fine(self, coarse, weights, end, work, fine);
        break;
    default:
        coh_winograd_to_weights(self, fine, coarse, work, weights);
    }
}

double coh_winograd_time(const coh_winograd *self, coh_winograd_pass pass,
                         coh_arena *arena)
{
    const int64_t fine =
        floats_of(self->batch, self->fine_channels, self->fine);
    const int64_t coarse =
        floats_of(self->batch, self->coarse_channels, self->coarse);
    const int64_t work = coh_winograd_work_count(self, pass);
    const int64_t weights =
        floats_of(self->fine_channels, self->coarse_channels, self->kernel);

    if (!coh_arena_reserve(
            arena,
            sizeof(float) * (size_t)(fine + coarse + work + weights) + LINE))
        return INFINITY;
    float *at = (float *)(void *)arena->memory; /* in parts of 16 channels */
    const double start = coh_clock_now_s();
    run(self, pass, at, at + fine, at + fine + coarse + work,
        at + fine + coarse);
    return coh_clock_now_s() - start;
}
