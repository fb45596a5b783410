/* simd.h - hot loops choose their instructions at run time.
 *
 * A function marked COH_SIMD is compiled for several x86-64 levels and the
 * loader picks one, so that the default build runs on every node of a mixed
 * cluster. All levels give the same bits: -ffp-contract=off, and loops so
 * marked hold no floating-point reduction but into partial sums of their own.
 * Elsewhere, and under sanitizers, the mark is empty.
 */
#ifndef COH_COMMON_SIMD_H
#define COH_COMMON_SIMD_H

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !defined(__AVX512F__)
#define COH_SIMD __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define COH_SIMD
#endif

#endif
