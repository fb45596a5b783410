/* avx512.h - marks for our own vector code, of 16 floats a register: inside
 * #if defined(__x86_64__), called only if the processor has AVX-512. */
#ifndef COH_WORKER_NN_AVX512_H
#define COH_WORKER_NN_AVX512_H

enum { LANES = 16 };

#if defined(__x86_64__)

#include <immintrin.h>

#define AVX512 __attribute__((target("avx512f")))
#define INLINE static inline __attribute__((always_inline, target("avx512f")))
#define UNROLL _Pragma("GCC unroll 64")

#endif

#endif
