/* team.h - sums and spreads among the members of a group.
 *
 * A collective is one of a line: all members begin those of a line in the same
 * order, while between lines there is no order. What is begun is a transfer
 * (xfer.h), to test and finish in any order. The team is of one of two kinds:
 *
 * mpi   MPI's nonblocking collectives, on a communicator a line.
 * own   Messages up and down a binomial tree (tree.h), with the summands added
 *       as they come: own, then children from the smallest subtree on, so that
 *       a sum has the same bits in every run. Needs no communicator but the one
 *       it borrows, which may hold others as well. A tag belongs to a
 *       collective, so one that is late keeps nobody from the next; a line has
 *       COH_TEAM_TAGS, and begins nothing that far behind its oldest. Each can
 *       be cancelled.
 *
 * Messages are handed on by members that test or finish any transfer of the
 * team, or poll it: whoever waits for something else meanwhile polls. A member
 * that has finished all that it began owes nobody anything.
 *
 *     new -> reserve* -> begin* -> destroy
 *
 * Threads: one caller.
 */
#ifndef COH_COMMON_TEAM_H
#define COH_COMMON_TEAM_H

#include "common/xfer.h"

typedef struct coh_team coh_team;

typedef enum coh_line {
    COH_LINE_STEPS,   /* grants, small sums */
    COH_LINE_SUMS,    /* gradients */
    COH_LINE_SPREADS, /* weights */
    COH_LINES
} coh_line;

/* All ranks of comm. Collective over it; keeps duplicates. */
coh_team *coh_team_new_mpi(MPI_Comm comm);

/* ranks[size] of comm, this process among them as number `member`; not
 * collective. comm is borrowed, ranks are copied. */
coh_team *coh_team_new_own(MPI_Comm comm, const int *ranks, int size,
                           int member);

/* When all transfers are finished or cancelled. Collective for mpi. */
void coh_team_destroy(coh_team **self);

/* Own: room for what comes in sums of a line: for `many` (at most 32) of
 * `bytes` at a time; more wait for their turn. Without it a line has room for
 * small sums only. While none of the line is under way.
 * Fails with COH_E_NOMEM: the line has the room it had. */
coh_status coh_team_reserve(coh_team *self, coh_line line, int many,
                            int64_t bytes, coh_err *err);

/* In place, count at most INT_MAX. sum: every member gets it; the work is the
 * most for member `via`, so let them take turns. gather_sum: `root` gets it, and
 * what the others then have is undefined. spread: root's data to all. */
coh_xfer *coh_team_begin_sum(coh_team *self, coh_line line, int via,
                             float *data, int64_t count);
coh_xfer *coh_team_begin_sum_f64(coh_team *self, coh_line line, int via,
                                 double *data, int64_t count);
coh_xfer *coh_team_begin_gather_sum(coh_team *self, coh_line line, int root,
                                    float *data, int64_t count);
coh_xfer *coh_team_begin_spread(coh_team *self, coh_line line, int root,
                                void *data, int64_t bytes);

/* Hand on what has come. Does not block. */
void coh_team_poll(coh_team *self);

#endif
