/* peak.c - see peak.h.
 *
 * The loop: ACCUMULATORS independent vectors, a = a x b + c, so that neither
 * latency nor memory holds it up. The processor's widest instructions are
 * chosen at run time.
 */
#include "worker/nn/peak.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "common/clock.h"
#include "common/memory.h"
#include "worker/nn/probe.h"

/* Latency 4 x 2 pipes need 8; 12 fit into 16 registers with b and c. */
enum { ACCUMULATORS = 12, ROUNDS = 200000 };

/* Returns something that depends on all results, or they would be left out. */
typedef float fma_loop(float b, float c);

/* The body of such a loop by four operations on one type of vector. */
#define FMA_BODY(vector, set, fma, first)                                      \
    vector a[ACCUMULATORS], sum = set(c);                                      \
    const vector vb = set(b), vc = set(c);                                     \
    for (int k = 0; k < ACCUMULATORS; k++)                                     \
        a[k] = set((float)k);                                                  \
    for (int i = 0; i < ROUNDS; i++) {                                         \
        _Pragma("GCC unroll 12") for (int k = 0; k < ACCUMULATORS; k++) a[k] = \
            fma(a[k], vb, vc);                                                 \
    }                                                                          \
    for (int k = 0; k < ACCUMULATORS; k++)                                     \
        sum = fma(a[k], vb, sum);                                              \
    return first(sum)

#if defined(__x86_64__)

#define SSE2_FMA(x, y, z) _mm_add_ps(_mm_mul_ps(x, y), z)

static float loop_sse2(float b, float c)
{
    FMA_BODY(__m128, _mm_set1_ps, SSE2_FMA, _mm_cvtss_f32);
}

__attribute__((target("avx2,fma"))) static float loop_avx2(float b, float c)
{
    FMA_BODY(__m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32);
}

__attribute__((target("avx512f"))) static float loop_avx512(float b, float c)
{
    FMA_BODY(__m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32);
}

#elif defined(__ARM_NEON)

#define NEON_FMA(x, y, z) vfmaq_f32(z, x, y)
#define NEON_FIRST(x) vgetq_lane_f32(x, 0)

static float loop_neon(float b, float c)
{
    FMA_BODY(float32x4_t, vdupq_n_f32, NEON_FMA, NEON_FIRST);
}

#else

#define PLAIN_FMA(x, y, z) ((x) * (y) + (z))

static float loop_plain(float b, float c)
{
    FMA_BODY(float, , PLAIN_FMA, );
}

#endif

typedef struct kind {
    fma_loop *loop;
    int width; /* floats in a vector */
    const char *name;
} kind;

static kind widest(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f"))
        return (kind){ loop_avx512, 16, "AVX-512" };
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return (kind){ loop_avx2, 8, "AVX2" };
    return (kind){ loop_sse2, 4, "SSE2" };
#elif defined(__ARM_NEON)
    return (kind){ loop_neon, 4, "NEON" };
#else
    return (kind){ loop_plain, 1, "plain C" };
#endif
}

const char *coh_peak_instructions(void)
{
    return widest().name;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* The time this thread has had a core: what other processes take of it makes
 * the peak no lower, and so no share of it higher. */
static double core_time_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* All threads at once; the sum of their rates. */
static double loop_gflops(void)
{
    const kind best = widest();
    volatile float sink = 0;
    double sum = 0;

#pragma omp parallel reduction(+ : sum)
    {
#pragma omp barrier
        const double start = core_time_s();
        const float result = best.loop(0.5f, 0.25f);
        sum +=
            2e-9 * ACCUMULATORS * ROUNDS * best.width / (core_time_s() - start);
#pragma omp critical
        sink = sink + result;
    }
    return sum;
}

/* [M, K] x [K, N]: 4.3 GFLOP, and 10 MiB. */
enum { M = 1024, N = 1024, K = 2048 };

static coh_status new_matmul(coh_dnn *dnn, coh_arena *arena, coh_probe **out,
                             coh_err *err)
{
    const coh_op_spec spec = {
        .name = "matrix product",
        .kind = COH_OP_DENSE,
        .pass = COH_PASS_INFER,
        .src = { .dims = { 2, { M, K } } },
        .weights = { .dims = { 2, { N, K } } },
        .dst = { .dims = { 2, { M, N } } },
    };
    return coh_probe_new(dnn, &spec, arena, out, err);
}

/* A run of the loop takes half a millisecond. */
static void raise_probe(double seconds, coh_peak *peak)
{
    const double end = coh_clock_now_s() + seconds;

    do
        peak->probe_gflops = larger(peak->probe_gflops, loop_gflops());
    while (coh_clock_now_s() < end);
}

static void raise_matmul(double seconds, coh_probe *matmul, coh_peak *peak)
{
    const double end = coh_clock_now_s() + seconds;

    do
        peak->matmul_gflops = larger(peak->matmul_gflops,
                                     2e-9 * M * N * K / coh_probe_time(matmul));
    while (coh_clock_now_s() < end);
}

coh_status coh_peak_measure(double seconds, coh_peak *peak, coh_err *err)
{
    coh_dnn *dnn = NULL;
    coh_probe *matmul = NULL;
    coh_arena arena = { 0 };

    coh_status status = coh_dnn_new(&dnn, err);
    if (status == COH_OK)
        status = new_matmul(dnn, &arena, &matmul, err);
    if (status == COH_OK) {
        raise_probe(seconds / 2, peak);
        raise_matmul(seconds / 2, matmul, peak);
    }
    coh_probe_destroy(&matmul);
    coh_arena_fini(&arena);
    coh_dnn_destroy(&dnn);
    return status;
}

double coh_peak_gflops(const coh_peak *peak)
{
    return larger(peak->probe_gflops, peak->matmul_gflops);
}

/* On the pages that memory has when nobody asks for huge ones. */
static float *touched(size_t bytes)
{
    float *floats = aligned_alloc(COH_ALIGN_BYTES, bytes);

    if (floats != NULL)
        memset(floats, 1, bytes);
    return floats;
}

coh_status coh_peak_memcpy(double *gb_s, coh_err *err)
{
    enum { TIMES = 10, FLOATS = 16 << 20 };
    const size_t bytes = FLOATS * sizeof(float);
    float *from = touched(bytes), *to = touched(bytes);
    double best = 0;

    if (from == NULL || to == NULL) {
        free(from);
        free(to);
        return coh_fail(err, COH_E_NOMEM, "no memory for two 64 MiB buffers");
    }
    for (int i = 0; i < TIMES; i++) {
        from[i] = (float)i; /* so that no copy can be left out */
        const double start = coh_clock_now_s();
        memcpy(to, from, bytes);
        best = larger(best, (double)bytes / (coh_clock_now_s() - start) / 1e9);
        COH_ASSERT(to[i] == (float)i);
    }
    free(from);
    free(to);
    *gb_s = best;
    return COH_OK;
}
