/* pages.h - a large block of memory for values.   Threads: one caller; the
 * OpenMP threads touch it first, each its part.   MPI: none.
 */
#ifndef COH_WORKER_NN_PAGES_H
#define COH_WORKER_NN_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Zeroed, 64-byte aligned, on huge pages where the system gives them (measured:
 * 2 % of a training step of config/hep.yaml); to end with free().
 * NULL only if memory is short: also where the system would promise it, but
 * then kill a process that uses it. */
void *coh_pages_new(size_t bytes);

/* What of memory that takes: whole pages. 0 if it is beyond size_t. */
size_t coh_pages_bytes(size_t bytes);

/* Memory that grows to what is needed most; what it holds is lost then. Begin
 * with { 0 }. */
typedef struct coh_arena {
    char *memory; /* owned */
    size_t bytes;
} coh_arena;

/* false if memory is short. */
bool coh_arena_reserve(coh_arena *self, size_t bytes);
void coh_arena_fini(coh_arena *self);

#endif
