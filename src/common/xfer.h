/* xfer.h - messages on their way between ranks; the only owner of requests.
 *
 * begin() posts everything and returns at once; finish() waits, and is the one
 * place where a rank waits at all: it polls, gives its core away, and gives up
 * at a deadline. In between the caller computes. The caller owns the buffers,
 * and must neither free nor (for a receive) read nor (for a send) write them
 * until finish().
 *
 *     begin -> test* -> finish
 */
#ifndef COH_COMMON_XFER_H
#define COH_COMMON_XFER_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/status.h"
#include "common/wire.h"

typedef struct coh_xfer coh_xfer;

typedef enum coh_xfer_way { COH_XFER_SEND, COH_XFER_RECV } coh_xfer_way;

typedef struct coh_xfer_part {
    coh_xfer_way way;
    int peer; /* rank in the communicator given to begin() */
    coh_tag tag;
    void *data;    /* [bytes], borrowed until finish() */
    int64_t bytes; /* at most INT_MAX; a receive may get fewer */
} coh_xfer_part;

/* Post parts[nparts] on comm: all receives first, then all sends.
 * Not collective. comm is borrowed and must outlive the transfer. */
coh_xfer *coh_xfer_begin(MPI_Comm comm, const coh_xfer_part *parts, int nparts);

/* Collectives over comm, begun in the same order by all its ranks.
 * sum: every rank gets the sum. gather_sum: rank `root` alone. spread: root's
 * data to all. In place; count floats or doubles, or bytes, at most INT_MAX. */
coh_xfer *coh_xfer_begin_sum(MPI_Comm comm, float *data, int64_t count);
coh_xfer *coh_xfer_begin_sum_f64(MPI_Comm comm, double *data, int64_t count);
coh_xfer *coh_xfer_begin_gather_sum(MPI_Comm comm, int root, float *data,
                                    int64_t count);
coh_xfer *coh_xfer_begin_spread(MPI_Comm comm, int root, void *data,
                                int64_t bytes);

/* The same for the largest value of all ranks and the lowest rank that has it;
 * in place, for each of data[count]. */
typedef struct coh_max {
    double value;
    int rank;
} coh_max;
coh_xfer *coh_xfer_begin_max(MPI_Comm comm, coh_max *data, int count);

/* True once everything has arrived and left. Does not block. */
bool coh_xfer_test(coh_xfer *self);

/* Wait for the rest, at most timeout_s seconds, free *self and set it to NULL.
 * `what` names the wait in the message. A NULL *self is fine.
 * Fails with COH_E_PEER: who did not come, by the deadline or as MPI says. The
 * transfer is then left as it
 * is, MPI may still write to its buffers, and the process should end. */
coh_status coh_xfer_finish(coh_xfer **self, double timeout_s, const char *what,
                           coh_err *err);

/* How long somebody waits at most each time, and has waited so far. */
typedef struct coh_wait {
    double timeout_s, waited_s;
} coh_wait;

/* finish(), counted in *wait. */
coh_status coh_xfer_wait(coh_xfer **self, coh_wait *wait, const char *what,
                         coh_err *err);

/* Give up a transfer whose messages will never come (pre-posted receives at
 * the end of a run); frees *self and sets it to NULL. NULL is fine. What cannot
 * be called back (a send, or a message half here) is left to MPI with its
 * buffer: true if there is none of that. */
bool coh_xfer_cancel(coh_xfer **self);

/* --- in steps ------------------------------------------------------------
 * For messages that depend on each other (team.h). Such a transfer begins with
 * none. Its owner posts some, posts the next when those are done, and ends it;
 * whoever tests or finishes the transfer lets the owner do so.
 */
typedef struct coh_xfer_owner {
    void *self;
    void (*drive)(void *self); /* go on with whatever can */
    /* This one is cancelled; is_clean: nothing of it is left to MPI. */
    void (*drop)(void *self, const coh_xfer *xfer, bool is_clean);
} coh_xfer_owner;

/* At most `most` parts at a time. The owner is borrowed until the end. */
coh_xfer *coh_xfer_begin_steps(MPI_Comm comm, int most,
                               const coh_xfer_owner *owner);

/* The owner's: post a part; has all that was posted arrived and left; there is
 * nothing more. */
void coh_xfer_post(coh_xfer *self, const coh_xfer_part *part);
bool coh_xfer_is_quiet(coh_xfer *self);
void coh_xfer_end(coh_xfer *self);

/* One pause of a loop that polls several transfers. `idle_s` is how long it
 * found nothing: short waits only yield, longer ones sleep a little. */
void coh_xfer_rest(double idle_s);

#endif
