/* memory.c - see memory.h. */
#include "common/memory.h"

#include <stdbool.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 << 20 };

float *coh_floats(int64_t count)
{
    const size_t bytes = (size_t)count * sizeof(float);
    const size_t rounded = (bytes / COH_ALIGN_BYTES + 1) * COH_ALIGN_BYTES;
    const bool is_large = rounded >= HUGE_PAGE;
    void *floats = NULL;

    /* not aligned_alloc, which may want a size that is a multiple */
    if (posix_memalign(&floats, is_large ? HUGE_PAGE : COH_ALIGN_BYTES,
                       rounded) != 0)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (is_large) /* whole ones only: no more memory than asked for */
        (void)madvise(floats, rounded / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
#endif
    memset(floats, 0, rounded);
    return floats;
}
