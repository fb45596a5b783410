/* xfer.c - see xfer.h. */
#include "common/xfer.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mpi_check.h"

/* Waits this short only yield, so that a reply on an idle node is not slowed;
 * longer ones sleep, the longer the more, so that ranks that compute have the
 * core: a server that looked up every 50 us took a fifth of one. */
static const double yield_s = 1e-3, sleep_least_s = 50e-6, sleep_most_s = 1e-3,
                    sleep_share = 0.02;

struct coh_xfer {
    int peer;  /* of the first part; -1 for a collective */
    int error; /* the first of MPI's that is not MPI_SUCCESS: a peer is lost */
    int nrequests;
    MPI_Request requests[]; /* [nrequests] */
};

static coh_xfer *new_xfer(int peer, int nrequests)
{
    coh_xfer *self =
        malloc(sizeof *self + (size_t)nrequests * sizeof self->requests[0]);
    COH_ASSERT(self != NULL);
    self->peer = peer;
    self->error = MPI_SUCCESS;
    self->nrequests = nrequests;
    for (int i = 0; i < nrequests; i++)
        self->requests[i] = MPI_REQUEST_NULL;
    return self;
}

/* An error of MPI in a transfer means what a passed deadline means: somebody is
 * gone. It is kept, and told by finish(). */
static void note(coh_xfer *self, int rc)
{
    if (rc != MPI_SUCCESS && self->error == MPI_SUCCESS)
        self->error = rc;
}

static void post(coh_xfer *self, MPI_Comm comm, const coh_xfer_part *part,
                 MPI_Request *request)
{
    const int bytes = (int)part->bytes;

    COH_ASSERT(part->bytes >= 0 && part->bytes <= INT_MAX);
    if (part->way == COH_XFER_RECV)
        note(self, MPI_Irecv(part->data, bytes, MPI_BYTE, part->peer,
                             (int)part->tag, comm, request));
    else
        note(self, MPI_Isend(part->data, bytes, MPI_BYTE, part->peer,
                             (int)part->tag, comm, request));
}

coh_xfer *coh_xfer_begin(MPI_Comm comm, const coh_xfer_part *parts, int nparts)
{
    coh_xfer *self = new_xfer(nparts > 0 ? parts[0].peer : -1, nparts);
    int next = 0;

    for (int i = 0; i < nparts; i++) {
        if (parts[i].way == COH_XFER_RECV)
            post(self, comm, &parts[i], &self->requests[next++]);
    }
    for (int i = 0; i < nparts; i++) {
        if (parts[i].way == COH_XFER_SEND)
            post(self, comm, &parts[i], &self->requests[next++]);
    }
    return self;
}

/* Of all ranks, for all ranks. */
static coh_xfer *begin_reduce(MPI_Comm comm, void *data, int64_t count,
                              MPI_Datatype type, MPI_Op op)
{
    coh_xfer *self = new_xfer(-1, 1);

    COH_ASSERT(count >= 0 && count <= INT_MAX);
    note(self, MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, type, op, comm,
                              &self->requests[0]));
    return self;
}

coh_xfer *coh_xfer_begin_sum(MPI_Comm comm, float *data, int64_t count)
{
    return begin_reduce(comm, data, count, MPI_FLOAT, MPI_SUM);
}

coh_xfer *coh_xfer_begin_sum_f64(MPI_Comm comm, double *data, int64_t count)
{
    return begin_reduce(comm, data, count, MPI_DOUBLE, MPI_SUM);
}

coh_xfer *coh_xfer_begin_max(MPI_Comm comm, coh_max *data, int count)
{
    return begin_reduce(comm, data, count, MPI_DOUBLE_INT, MPI_MAXLOC);
}

coh_xfer *coh_xfer_begin_gather_sum(MPI_Comm comm, int root, float *data,
                                    int64_t count)
{
    coh_xfer *self = new_xfer(-1, 1);
    int rank;

    COH_ASSERT(count >= 0 && count <= INT_MAX);
    COH_MPI(MPI_Comm_rank(comm, &rank));
    note(self, MPI_Ireduce(rank == root ? MPI_IN_PLACE : data, data, (int)count,
                           MPI_FLOAT, MPI_SUM, root, comm, &self->requests[0]));
    return self;
}

coh_xfer *coh_xfer_begin_spread(MPI_Comm comm, int root, void *data,
                                int64_t bytes)
{
    coh_xfer *self = new_xfer(-1, 1);

    COH_ASSERT(bytes >= 0 && bytes <= INT_MAX);
    COH_MPI(
        MPI_Ibcast(data, (int)bytes, MPI_BYTE, root, comm, &self->requests[0]));
    return self;
}

bool coh_xfer_test(coh_xfer *self)
{
    int done = 0;

    note(self, MPI_Testall(self->nrequests, self->requests, &done,
                           MPI_STATUSES_IGNORE));
    return done != 0 || self->error != MPI_SUCCESS;
}

static coh_status give_up(const coh_xfer *self, double timeout_s,
                          const char *what, coh_err *err)
{
    char who[32] = "its group", why[MPI_MAX_ERROR_STRING] = "";
    int length = 0;

    if (self->peer >= 0)
        snprintf(who, sizeof who, "rank %d", self->peer);
    if (self->error == MPI_SUCCESS)
        snprintf(why, sizeof why,
                 "it was waited for for %.0f s, the limit "
                 "that exchange.timeout sets",
                 timeout_s);
    else
        (void)MPI_Error_string(self->error, why, &length);
    return coh_fail(err, COH_E_PEER,
                    "%s (%s) is lost or too slow: %s; look at its log and "
                    "node, and submit again with --resume auto",
                    who, what, why);
}

coh_status coh_xfer_finish(coh_xfer **self, double timeout_s, const char *what,
                           coh_err *err)
{
    if (*self == NULL)
        return COH_OK;

    const double since = coh_clock_now_s();
    while (!coh_xfer_test(*self)) {
        const double idle_s = coh_clock_now_s() - since;
        if (idle_s > timeout_s)
            return give_up(*self, timeout_s, what, err);
        coh_xfer_rest(idle_s);
    }
    if ((*self)->error != MPI_SUCCESS)
        return give_up(*self, timeout_s, what, err);
    free(*self);
    *self = NULL;
    return COH_OK;
}

coh_status coh_xfer_wait(coh_xfer **self, coh_wait *wait, const char *what,
                         coh_err *err)
{
    if (*self == NULL)
        return COH_OK;

    const double since_s = coh_clock_now_s();
    const coh_status status = coh_xfer_finish(self, wait->timeout_s, what, err);
    wait->waited_s += coh_clock_now_s() - since_s;
    return status;
}

void coh_xfer_cancel(coh_xfer **self)
{
    if (*self == NULL)
        return;
    for (int i = 0; i < (*self)->nrequests; i++) {
        MPI_Request *request = &(*self)->requests[i];
        if (*request == MPI_REQUEST_NULL)
            continue;
        if (MPI_Cancel(request) == MPI_SUCCESS)
            (void)MPI_Wait(request, MPI_STATUS_IGNORE);
    }
    free(*self);
    *self = NULL;
}

void coh_xfer_rest(double idle_s)
{
    const double sleep_s =
        fmin(fmax(sleep_share * idle_s, sleep_least_s), sleep_most_s);

    coh_clock_rest(idle_s < yield_s ? 0 : sleep_s);
}
