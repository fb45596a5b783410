/* normal.h - normalisation of images, y = (x - shift[c]) * factor[c]. A plain
 * value: rank 0 measures it and sends it, and a checkpoint keeps it. */
#ifndef COH_COMMON_NORMAL_H
#define COH_COMMON_NORMAL_H

#include <stdint.h>

enum { COH_CHANNELS_MAX = 1024 };

typedef struct coh_normal {
    int64_t channels; /* of the images, 1: one for all, 0: nothing to do */
    float shift[COH_CHANNELS_MAX];
    float factor[COH_CHANNELS_MAX];
} coh_normal;

#endif
