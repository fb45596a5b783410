/* machine.h - what kind of processor this is.   Threads: any.   MPI: none. */
#ifndef COH_WORKER_NN_MACHINE_H
#define COH_WORKER_NN_MACHINE_H

#include <stddef.h>

/* The model as the system names it, in one line without the signs that would
 * need quotes: "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"; else the
 * architecture alone. */
void coh_machine_name(char *out, size_t size);

#endif
