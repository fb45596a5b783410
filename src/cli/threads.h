/* threads.h - how many threads a worker computes with. */
#ifndef COH_CLI_THREADS_H
#define COH_CLI_THREADS_H

#include <stdint.h>

/* Cores this process may use. */
int coh_threads_allowed(void);

/* wanted > 0: that many. Else the share of a rank: the allowed cores, divided
 * by the node's ranks unless the launcher has given each its own cores; at
 * least 1. */
int coh_threads_for(int64_t wanted, int node_ranks);

#endif
