/* memory.h - vectors aligned to a cache line, which is an AVX-512 register. */
#ifndef COH_COMMON_MEMORY_H
#define COH_COMMON_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COH_ALIGN_BYTES = 64 };

/* Zeroed float[count], to end with free(); NULL only if memory is short. */
static inline float *coh_floats(int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    const size_t rounded = (bytes / COH_ALIGN_BYTES + 1) * COH_ALIGN_BYTES;
    float *floats = (float *)aligned_alloc(COH_ALIGN_BYTES, rounded);

    if (floats != NULL)
        memset(floats, 0, rounded);
    return floats;
}

#endif
