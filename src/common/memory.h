/* memory.h - vectors aligned to a cache line, which is an AVX-512 register. */
#ifndef COH_COMMON_MEMORY_H
#define COH_COMMON_MEMORY_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COH_ALIGN_BYTES = 64 };

/* Zeroed float[count], to end with free(); NULL only if memory is short. Large
 * ones lie on huge pages where the system gives them: MPI over shared memory
 * looks up every page of what it copies. */
float *coh_floats(int64_t count);

#endif
