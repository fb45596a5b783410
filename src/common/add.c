/* add.c - see add.h. */
#include "common/add.h"

#include "common/simd.h"

COH_SIMD void coh_add(int64_t n, float *restrict sum,
                      const float *restrict more)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += more[i];
}
