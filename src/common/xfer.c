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
    int error; /* the first of MPI's that is not MPI_SUCCESS: a peer is lost */
    MPI_Comm comm;
    const coh_xfer_owner *owner; /* of steps that go on; else NULL */
    int most, nrequests;
    int *peers;             /* [most] behind the requests; -1: a collective */
    MPI_Request requests[]; /* [most] */
};

static coh_xfer *new_xfer(MPI_Comm comm, int most)
{
    const size_t bytes = sizeof(MPI_Request) + sizeof(int);
    coh_xfer *self = malloc(sizeof *self + (size_t)most * bytes);

    COH_ASSERT(self != NULL);
    *self = (coh_xfer){ .error = MPI_SUCCESS, .comm = comm, .most = most };
    self->peers = (int *)(void *)(self->requests + most);
    return self;
}

/* The next request, which is to be with this peer. */
static MPI_Request *add_request(coh_xfer *self, int peer)
{
    COH_ASSERT(self->nrequests < self->most);
    self->peers[self->nrequests] = peer;
    self->requests[self->nrequests] = MPI_REQUEST_NULL;
    return &self->requests[self->nrequests++];
}

/* An error of MPI in a transfer means what a passed deadline means: somebody is
 * gone. It is kept, and told by finish(). */
static void note(coh_xfer *self, int rc)
{
    if (rc != MPI_SUCCESS && self->error == MPI_SUCCESS)
        self->error = rc;
}

void coh_xfer_post(coh_xfer *self, const coh_xfer_part *part)
{
    MPI_Request *request = add_request(self, part->peer);
    const int bytes = (int)part->bytes;

    COH_ASSERT(part->bytes >= 0 && part->bytes <= INT_MAX);
    if (part->way == COH_XFER_RECV)
        note(self, MPI_Irecv(part->data, bytes, MPI_BYTE, part->peer,
                             (int)part->tag, self->comm, request));
    else
        note(self, MPI_Isend(part->data, bytes, MPI_BYTE, part->peer,
                             (int)part->tag, self->comm, request));
}

coh_xfer *coh_xfer_begin(MPI_Comm comm, const coh_xfer_part *parts, int nparts)
{
    coh_xfer *self = new_xfer(comm, nparts);

    for (int i = 0; i < nparts; i++) {
        if (parts[i].way == COH_XFER_RECV)
            coh_xfer_post(self, &parts[i]);
    }
    for (int i = 0; i < nparts; i++) {
        if (parts[i].way == COH_XFER_SEND)
            coh_xfer_post(self, &parts[i]);
    }
    return self;
}

/* Of all ranks, for all ranks. */
static coh_xfer *begin_reduce(MPI_Comm comm, void *data, int64_t count,
                              MPI_Datatype type, MPI_Op op)
{
    coh_xfer *self = new_xfer(comm, 1);

    COH_ASSERT(count >= 0 && count <= INT_MAX);
    note(self, MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, type, op, comm,
                              add_request(self, -1)));
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
    coh_xfer *self = new_xfer(comm, 1);
    int rank;

    COH_ASSERT(count >= 0 && count <= INT_MAX);
    COH_MPI(MPI_Comm_rank(comm, &rank));
    note(self,
         MPI_Ireduce(rank == root ? MPI_IN_PLACE : data, data, (int)count,
                     MPI_FLOAT, MPI_SUM, root, comm, add_request(self, -1)));
    return self;
}

coh_xfer *coh_xfer_begin_spread(MPI_Comm comm, int root, void *data,
                                int64_t bytes)
{
    coh_xfer *self = new_xfer(comm, 1);

    COH_ASSERT(bytes >= 0 && bytes <= INT_MAX);
    COH_MPI(MPI_Ibcast(data, (int)bytes, MPI_BYTE, root, comm,
                       add_request(self, -1)));
    return self;
}

coh_xfer *coh_xfer_begin_steps(MPI_Comm comm, int most,
                               const coh_xfer_owner *owner)
{
    coh_xfer *self = new_xfer(comm, most);

    self->owner = owner;
    return self;
}

void coh_xfer_end(coh_xfer *self)
{
    self->owner = NULL;
}

/* What is done makes room for the next step. */
bool coh_xfer_is_quiet(coh_xfer *self)
{
    int done = 0;

    if (self->error != MPI_SUCCESS)
        return false;
    note(self, MPI_Testall(self->nrequests, self->requests, &done,
                           MPI_STATUSES_IGNORE));
    if (done == 0 || self->error != MPI_SUCCESS)
        return false;
    self->nrequests = 0;
    return true;
}

bool coh_xfer_test(coh_xfer *self)
{
    if (self->owner != NULL)
        self->owner->drive(self->owner->self);
    return (self->owner == NULL && coh_xfer_is_quiet(self)) ||
           self->error != MPI_SUCCESS;
}

/* The first that did not come, or is gone; -1 if that is not known. */
static int who_is_missing(coh_xfer *self)
{
    for (int i = 0; i < self->nrequests; i++) {
        int done = 0;
        if (self->error == MPI_SUCCESS)
            note(self, MPI_Test(&self->requests[i], &done, MPI_STATUS_IGNORE));
        if (done == 0)
            return self->peers[i];
    }
    return -1;
}

static coh_status give_up(coh_xfer *self, double timeout_s, const char *what,
                          coh_err *err)
{
    char who[32] = "its group", why[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    const int peer = who_is_missing(self);

    if (peer >= 0)
        snprintf(who, sizeof who, "rank %d", peer);
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

/* A request that MPI has done with: cancelled, or met after all. */
static bool call_back(MPI_Request *request)
{
    int done = 0;

    if (*request == MPI_REQUEST_NULL)
        return true;
    (void)MPI_Cancel(request);
    if (MPI_Test(request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done)
        return true;
    if (*request != MPI_REQUEST_NULL)
        (void)MPI_Request_free(request);
    return false;
}

bool coh_xfer_cancel(coh_xfer **self)
{
    bool is_clean = true;

    if (*self == NULL)
        return true;
    for (int i = 0; i < (*self)->nrequests; i++)
        is_clean &= call_back(&(*self)->requests[i]);
    if ((*self)->owner != NULL)
        (*self)->owner->drop((*self)->owner->self, *self, is_clean);
    free(*self);
    *self = NULL;
    return is_clean;
}

void coh_xfer_rest(double idle_s)
{
    const double sleep_s =
        fmin(fmax(sleep_share * idle_s, sleep_least_s), sleep_most_s);

    coh_clock_rest(idle_s < yield_s ? 0 : sleep_s);
}
