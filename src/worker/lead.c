/* lead.c - see lead.h. */
#include "worker/lead.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "common/mpi_check.h"
#include "common/xfer.h"

enum { BUNDLE = 8 }; /* grants in one message to the group, at most */

/* How much sooner than exchange.timeout a sign of life is given. */
static const double alive_share = 0.2;

/* What the root spreads; fixed size. */
typedef struct bundle {
    int64_t saves; /* not 0: first write your part of a checkpoint */
    int64_t count;
    coh_grant grants[BUNDLE];
} bundle;

struct coh_lead {
    const coh_plan *plan;
    const coh_roles *roles;
    coh_lead_local local;
    coh_lead_heard heard;
    void *user;
    double timeout_s;
    double delay_s;     /* testing.delay, if this is its group */
    double spoken_s;    /* when the root last sent something */
    bundle queue;       /* heard of, not taken yet */
    coh_xfer *incoming; /* root with servers: the next grant */
    coh_grant arriving; /* where it comes to */
};

coh_status coh_lead_new(const coh_config *config, const coh_plan *plan,
                        const coh_roles *roles, coh_lead_local local,
                        coh_lead_heard heard, void *user, coh_lead **out,
                        coh_err *err)
{
    coh_lead *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the grants");
    const bool is_slow = config->testing.slow_group == roles->mine.group;
    *self = (coh_lead){ .plan = plan,
                        .roles = roles,
                        .local = local,
                        .heard = heard,
                        .user = user,
                        .timeout_s = config->exchange.timeout,
                        .delay_s = is_slow ? config->testing.delay : 0,
                        .spoken_s = coh_clock_now_s() };
    *out = self;
    return COH_OK;
}

void coh_lead_destroy(coh_lead **self)
{
    if (*self == NULL)
        return;
    coh_xfer_cancel(&(*self)->incoming);
    free(*self);
    *self = NULL;
}

static bool is_root(const coh_lead *self)
{
    return self->roles->mine.member == 0;
}

static bool has_servers(const coh_lead *self)
{
    return self->plan->servers > 0;
}

/* Without servers: see whether it is time to save, else take all that the chief
 * grants. */
static void collect_local(coh_lead *self, bundle *news)
{
    coh_chief *chief = self->local.chief;

    coh_chief_watch(chief);
    news->saves = coh_chief_must_save(chief);
    while (!news->saves && news->count < BUNDLE &&
           coh_chief_next(chief, 0, &news->grants[news->count]))
        news->count++;
}

typedef struct folder_name {
    char text[PATH_MAX];
} folder_name;

/* Collective over the group: the root makes a folder, whoever updates weights
 * writes its part into it, and the chief ends it when all are written. */
static coh_status save_local(coh_lead *self, coh_err *err)
{
    coh_chief *chief = self->local.chief;
    const int owner =
        coh_plan_member_owner(self->plan, self->roles->mine.member);
    const int part = owner < 0 ? 0 : owner;
    const bool writes =
        coh_plan_shares_update(self->plan) ? owner >= 0 : is_root(self);
    folder_name folder = { "" };
    coh_err why = COH_ERR_INIT;
    coh_status parts = COH_OK;

    if (is_root(self)) {
        parts = coh_chief_begin_save(chief, &why);
        snprintf(folder.text, sizeof folder.text, "%s",
                 parts == COH_OK ? coh_chief_save_folder(chief) : "");
    }
    if (self->plan->group_size > 1) {
        coh_xfer *xfer = coh_team_begin_spread(
            self->roles->team, COH_LINE_STEPS, 0, &folder, sizeof folder);
        const coh_status status = coh_xfer_finish(
            &xfer, self->timeout_s, "the folder of a checkpoint", err);
        if (status != COH_OK)
            return status;
    }
    if (writes && folder.text[0] != '\0')
        parts = coh_checkpoint_write_part(folder.text, self->plan, part,
                                          self->local.shard, &why);
    parts = coh_agree(self->roles->group, parts, &why);
    if (is_root(self))
        coh_chief_end_save(chief, parts, &why);
    return COH_OK;
}

static void post_incoming(coh_lead *self)
{
    const coh_xfer_part part = { COH_XFER_RECV,
                                 coh_plan_server_rank(self->plan, 0),
                                 COH_TAG_GRANT, &self->arriving,
                                 sizeof self->arriving };
    self->incoming = coh_xfer_begin(self->roles->world, &part, 1);
}

/* With servers: take all grants that have come; if `must`, wait for one. */
static coh_status collect_remote(coh_lead *self, bundle *news, bool must,
                                 coh_err *err)
{
    while (news->count < BUNDLE) {
        if (self->incoming == NULL)
            post_incoming(self);
        const bool is_needed = must && news->count == 0;
        if (!is_needed && !coh_xfer_test(self->incoming))
            break;
        const coh_status status = coh_xfer_finish(
            &self->incoming, self->timeout_s, "a grant of the registrar", err);
        if (status != COH_OK)
            return status;
        news->grants[news->count++] = self->arriving;
    }
    return COH_OK;
}

/* Root: what is new. `must`: the queue is empty, so something is needed. */
static coh_status collect(coh_lead *self, bundle *news, bool must, coh_err *err)
{
    if (has_servers(self))
        return collect_remote(self, news, must, err);
    collect_local(self, news);
    COH_ASSERT(!must || news->count > 0 || news->saves);
    return COH_OK;
}

/* Collective over the group: the root's news reach all queues. */
static coh_status refill(coh_lead *self, coh_err *err)
{
    bundle news = { 0 };
    coh_status status = COH_OK;

    if (is_root(self))
        status = collect(self, &news, self->queue.count == 0, err);
    if (status == COH_OK && self->plan->group_size > 1) {
        coh_xfer *xfer = coh_team_begin_spread(
            self->roles->team, COH_LINE_STEPS, 0, &news, sizeof news);
        status = coh_xfer_finish(&xfer, self->timeout_s,
                                 "the grants from its root", err);
    }
    if (status == COH_OK && news.saves)
        status = save_local(self, err);
    for (int64_t i = 0; i < news.count && status == COH_OK; i++) {
        if (news.grants[i].kind == COH_GRANT_WAIT)
            continue;
        COH_ASSERT(self->queue.count < BUNDLE);
        self->queue.grants[self->queue.count++] = news.grants[i];
        status = self->heard(self->user, &news.grants[i], err);
    }
    return status;
}

bool coh_lead_trains_next(const coh_lead *self)
{
    return self->queue.count > 0 &&
           self->queue.grants[0].kind == COH_GRANT_TRAIN;
}

coh_status coh_lead_take(coh_lead *self, coh_grant *out, coh_err *err)
{
    do {
        const coh_status status = refill(self, err);
        if (status != COH_OK)
            return status;
    } while (self->queue.count == 0);

    *out = self->queue.grants[0];
    self->queue.count--;
    for (int64_t i = 0; i < self->queue.count; i++)
        self->queue.grants[i] = self->queue.grants[i + 1];
    if (out->groups <= 1 && !coh_lead_trains_next(self))
        out->exchange = true;
    if (out->kind == COH_GRANT_TRAIN && self->delay_s > 0)
        coh_clock_rest(self->delay_s);
    return COH_OK;
}

coh_status coh_lead_report(coh_lead *self, const coh_report *report,
                           coh_err *err)
{
    if (!is_root(self))
        return COH_OK;
    self->spoken_s = coh_clock_now_s();
    if (!has_servers(self)) {
        coh_chief_report(self->local.chief, report);
        return COH_OK;
    }
    coh_report copy = *report;
    const coh_xfer_part part = { COH_XFER_SEND,
                                 coh_plan_server_rank(self->plan, 0),
                                 COH_TAG_REPORT, &copy, sizeof copy };
    coh_xfer *xfer = coh_xfer_begin(self->roles->world, &part, 1);
    return coh_xfer_finish(&xfer, self->timeout_s, "a report to the registrar",
                           err);
}

coh_status coh_lead_alive(coh_lead *self, coh_err *err)
{
    if (!is_root(self) ||
        coh_clock_now_s() - self->spoken_s < alive_share * self->timeout_s)
        return COH_OK;
    const coh_report report = { .kind = COH_REPORT_ALIVE,
                                .group = self->roles->mine.group };
    return coh_lead_report(self, &report, err);
}
