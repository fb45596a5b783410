/* signals.h - the wish of the outside world that the run should end.
 *
 * SIGTERM, SIGINT and SIGUSR2 are read from a descriptor instead of a handler:
 * no global flag, and nothing is interrupted. SIGUSR1 is ignored: launchers
 * send it for their own ends. A simulator can replace it.
 */
#ifndef COH_COMMON_SIGNALS_H
#define COH_COMMON_SIGNALS_H

typedef struct coh_signals {
    int fd;
    int received; /* the first one that came; 0: none */
} coh_signals;

/* Call before other threads and MPI start, so that all inherit the mask. */
void coh_signals_init(coh_signals *self);
void coh_signals_fini(coh_signals *self);

/* The first signal that came so far, or 0. Does not block. */
int coh_signals_poll(coh_signals *self);

#endif
