/* peak.h - what this machine can do at best, measured.
 *
 * Threads: one caller; the OpenMP threads are used inside.   MPI: none.
 */
#ifndef COH_WORKER_NN_PEAK_H
#define COH_WORKER_NN_PEAK_H

#include "common/status.h"

typedef struct coh_peak {
    double probe_gflops;  /* our loop of fused multiply-adds, in registers */
    double matmul_gflops; /* a large matrix product of oneDNN */
} coh_peak;

/* Take both for about `seconds`; each is raised if it is now larger. Begin with
 * zeros. All threads that OpenMP uses now. Fails with COH_E_NOMEM, or
 * COH_E_FAILED: oneDNN's reason. */
coh_status coh_peak_measure(double seconds, coh_peak *peak, coh_err *err);

/* The larger of the two: what shares of peak are shares of. */
double coh_peak_gflops(const coh_peak *peak);

/* The instructions of our loop: "AVX-512". */
const char *coh_peak_instructions(void);

/* GB/s of memcpy between two touched 64 MiB buffers, one thread, bytes counted
 * once, best of 10. Fails with COH_E_NOMEM. */
coh_status coh_peak_memcpy(double *gb_s, coh_err *err);

#endif
