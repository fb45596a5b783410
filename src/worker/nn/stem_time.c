/* stem_time.c - how long a stem takes; see stem.h. */
#include "worker/nn/stem.h"

#include <math.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"

enum { LOOKS = 4 };

/* Zeros, which take as long as other values. */
typedef struct bed {
    float *images, *weights, *padded, *work, *pooled, *places;
} bed;

static bool init(bed *self, const coh_stem *stem)
{
    const int64_t pooled =
        stem->batch * stem->filters * stem->rows * stem->columns;

    self->images = coh_floats(stem->batch * coh_shape_count(stem->image));
    self->weights = coh_floats(stem->filters * stem->channels * 9);
    self->padded = coh_floats(coh_stem_padded_count(stem));
    self->work = coh_floats(coh_stem_work_count(stem));
    self->pooled = coh_floats(pooled);
    self->places = coh_floats(pooled / (int64_t)sizeof(float) + 1);
    return self->images && self->weights && self->padded && self->work &&
           self->pooled && self->places;
}

static void fini(bed *self)
{
    free(self->images);
    free(self->weights);
    free(self->padded);
    free(self->work);
    free(self->pooled);
    free(self->places);
}

double coh_stem_time(const coh_stem *self)
{
    double least = INFINITY;
    bed it = { 0 };

    if (init(&it, self)) {
        for (int i = 0; i < LOOKS; i++) {
            const double start = coh_clock_now_s();
            coh_stem_forward(self, it.images, it.weights, NULL, it.padded,
                             it.work, it.pooled, (uint8_t *)it.places);
            coh_stem_backward(self, it.padded, (uint8_t *)it.places, it.pooled,
                              it.work, it.weights, NULL);
            least = fmin(least, coh_clock_now_s() - start);
        }
    }
    fini(&it);
    return least;
}
