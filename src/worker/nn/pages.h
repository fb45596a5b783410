/* pages.h - a large block of memory for values.   Threads: one caller; the
 * OpenMP threads touch it first, each its part.   MPI: none.
 */
#ifndef COH_WORKER_NN_PAGES_H
#define COH_WORKER_NN_PAGES_H

#include <stddef.h>

/* Zeroed, 64-byte aligned, on huge pages where the system gives them (measured:
 * 2 % of a training step of config/hep.yaml); to end with free().
 * NULL only if memory is short. */
void *coh_pages_new(size_t bytes);

#endif
