/* desk.c - see desk.h. */
#include "server/desk.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/xfer.h"

/* How much sooner than exchange.timeout a waiting group hears from us. */
static const double alive_share = 0.2;

typedef struct seat {
    int root_rank;
    coh_report report; /* where the next one arrives */
    coh_xfer *in;
    int64_t granted, done; /* grants sent, and reported */
    double heard_s;        /* when it last reported */
    double told_s;         /* when it was last sent something */
    bool is_ready, is_stopped;
} seat;

struct coh_desk {
    const coh_plan *plan;
    const coh_roles *roles;
    coh_chief *chief;
    double timeout_s;
    bool is_open; /* polled once: from then on silence counts */
    seat seats[];
};

static void post(coh_desk *self, seat *s)
{
    const coh_xfer_part part = { COH_XFER_RECV, s->root_rank, COH_TAG_REPORT,
                                 &s->report, sizeof s->report };
    s->in = coh_xfer_begin(self->roles->world, &part, 1);
}

coh_status coh_desk_new(const coh_config *config, const coh_plan *plan,
                        const coh_roles *roles, coh_chief *chief,
                        coh_desk **out, coh_err *err)
{
    coh_desk *self =
        calloc(1, sizeof *self + (size_t)plan->groups * sizeof(seat));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for the reports of %d "
                        "groups",
                        plan->groups);

    self->plan = plan;
    self->roles = roles;
    self->chief = chief;
    self->timeout_s = config->exchange.timeout;
    for (int g = 0; g < plan->groups; g++) {
        seat *s = &self->seats[g];
        s->root_rank = coh_plan_root_rank(plan, g);
        post(self, s);
    }
    *out = self;
    return COH_OK;
}

void coh_desk_destroy(coh_desk **self)
{
    if (*self == NULL)
        return;
    for (int g = 0; g < (*self)->plan->groups; g++)
        coh_xfer_cancel(&(*self)->seats[g].in);
    free(*self);
    *self = NULL;
}

static coh_status check_silence(const coh_desk *self, int group, coh_err *err)
{
    const seat *s = &self->seats[group];

    if (s->is_stopped || (s->is_ready && s->granted == s->done) ||
        coh_clock_now_s() - s->heard_s <= self->timeout_s)
        return COH_OK;
    return coh_fail(err, COH_E_PEER,
                    "group %d (root rank %d) has not reported for %.0f s: it "
                    "is lost or too slow; look at its log and node, and submit "
                    "again with --resume auto (exchange.timeout sets the "
                    "limit)",
                    group, s->root_rank, self->timeout_s);
}

/* The groups and we have just agreed that all is ready. */
static void open_desk(coh_desk *self)
{
    self->is_open = true;
    for (int g = 0; g < self->plan->groups; g++)
        self->seats[g].heard_s = self->seats[g].told_s = coh_clock_now_s();
}

coh_status coh_desk_poll(coh_desk *self, bool *any, coh_err *err)
{
    if (!self->is_open)
        open_desk(self);
    for (int g = 0; g < self->plan->groups; g++) {
        seat *s = &self->seats[g];
        if (!coh_xfer_test(s->in)) {
            const coh_status silent = check_silence(self, g, err);
            if (silent != COH_OK)
                return silent;
            continue;
        }
        const coh_status status =
            coh_xfer_finish(&s->in, self->timeout_s, "a report", err);
        if (status != COH_OK)
            return status;
        *any = true;
        s->heard_s = coh_clock_now_s();
        s->is_ready = true;
        if (s->report.status != COH_OK)
            s->done = s->granted; /* it drops the others */
        else if (s->report.kind > 0)
            s->done++;
        coh_chief_report(self->chief, &s->report);
        post(self, s);
    }
    return COH_OK;
}

static coh_status send_grant(coh_desk *self, seat *s, coh_grant *grant,
                             coh_err *err)
{
    const coh_xfer_part part = { COH_XFER_SEND, s->root_rank, COH_TAG_GRANT,
                                 grant, sizeof *grant };
    coh_xfer *xfer = coh_xfer_begin(self->roles->world, &part, 1);

    s->told_s = coh_clock_now_s();
    return coh_xfer_finish(&xfer, self->timeout_s, "a worker to take its grant",
                           err);
}

/* All that one group may do now, or a sign of life. */
static coh_status grant_group(coh_desk *self, int group, coh_err *err)
{
    seat *s = &self->seats[group];
    coh_grant grant;
    coh_status status = COH_OK;

    while (status == COH_OK && coh_chief_next(self->chief, group, &grant)) {
        if (s->granted == s->done)
            s->heard_s = coh_clock_now_s(); /* silence counts from here */
        if (grant.kind == COH_GRANT_STOP)
            s->is_stopped = true;
        else
            s->granted++;
        status = send_grant(self, s, &grant, err);
    }
    if (status == COH_OK && !s->is_stopped && s->granted == s->done &&
        coh_clock_now_s() - s->told_s > alive_share * self->timeout_s) {
        grant = (coh_grant){ .kind = COH_GRANT_WAIT };
        status = send_grant(self, s, &grant, err);
    }
    return status;
}

coh_status coh_desk_grant(coh_desk *self, coh_err *err)
{
    coh_status status = COH_OK;

    for (int g = 0; g < self->plan->groups && status == COH_OK; g++)
        status = grant_group(self, g, err);
    return status;
}
