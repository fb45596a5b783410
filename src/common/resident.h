/* resident.h - the memory this process has in use, as the system counts it:
 * its pages that are in memory, those it shares with others included.
 * Threads: any.   MPI: none.
 */
#ifndef COH_COMMON_RESIDENT_H
#define COH_COMMON_RESIDENT_H

#include <stdint.h>

/* Bytes now, and at most since the program started; 0 where the system does
 * not tell (/proc/self/status is Linux's). */
int64_t coh_resident_bytes(void);
int64_t coh_resident_peak_bytes(void);

/* Bytes that the system could still give to a process, swap included, at this
 * moment: more than that would end somebody. INT64_MAX where it does not tell
 * (/proc/meminfo). A limit of the job's own (cgroup) is not seen. */
int64_t coh_resident_free_bytes(void);

#endif
