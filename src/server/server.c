/* server.c - see server.h. */
#include "server/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "common/xfer.h"
#include "server/desk.h"
#include "server/inbox.h"

/* How much sooner than exchange.timeout server 0 gives a sign of life. */
static const double alive_share = 0.2;

typedef struct server {
    coh_server_setup setup;
    coh_schedule schedule;
    coh_shard *shard;
    coh_inbox *inbox;
    coh_desk *desk;     /* server 0 */
    coh_order order;    /* the others: where the next one arrives */
    coh_xfer *incoming; /* the others: its transfer */
    double ordered_s;   /* when an order was last given, or got */
    bool is_released;   /* server 0: the run fails, and all know */
} server;

static bool is_first(const server *self)
{
    return self->setup.roles->mine.server == 0;
}

static coh_status message(server *self, coh_xfer_way way, int rank, coh_tag tag,
                          void *data, int64_t bytes, const char *what,
                          coh_err *err)
{
    const coh_xfer_part part = { way, rank, tag, data, bytes };
    coh_xfer *xfer = coh_xfer_begin(self->setup.roles->world, &part, 1);

    return coh_xfer_finish(&xfer, self->setup.config->exchange.timeout, what,
                           err);
}

static int64_t staleness_bytes(const server *self)
{
    return (int64_t)self->setup.plan->groups * COH_STALENESS_BINS *
           (int64_t)sizeof(int64_t);
}

/* --- Server 0: orders to the others --- */

static coh_status order_all(server *self, coh_order *order, coh_err *err)
{
    coh_status status = COH_OK;

    self->ordered_s = coh_clock_now_s();
    for (int s = 1; s < self->setup.plan->servers && status == COH_OK; s++)
        status = message(self, COH_XFER_SEND,
                         coh_plan_server_rank(self->setup.plan, s),
                         COH_TAG_ORDER, order, sizeof *order, "an order", err);
    return status;
}

/* Whether every other server wrote its part; the first reason in *why. */
static coh_status collect_parts(server *self, coh_status *parts, coh_err *why,
                                coh_err *err)
{
    coh_answer answer = { 0 };

    for (int s = 1; s < self->setup.plan->servers; s++) {
        const coh_status status = message(
            self, COH_XFER_RECV, coh_plan_server_rank(self->setup.plan, s),
            COH_TAG_ANSWER, &answer, sizeof answer,
            "a server's part of a checkpoint", err);
        if (status != COH_OK)
            return status;
        if (answer.status != COH_OK && *parts == COH_OK)
            *parts = coh_fail(why, (coh_status)answer.status, "server %d: %s",
                              s, answer.text);
    }
    return COH_OK;
}

static coh_status save(server *self, coh_err *err)
{
    coh_chief *chief = self->setup.chief;
    coh_order order = { .kind = COH_ORDER_SAVE };
    coh_err why = COH_ERR_INIT;

    coh_status parts = coh_chief_begin_save(chief, &why);
    if (parts == COH_OK &&
        snprintf(order.folder, sizeof order.folder, "%s",
                 coh_chief_save_folder(chief)) >= (int)sizeof order.folder)
        parts = coh_fail(&why, COH_E_IO, "the folder's path is too long");
    if (parts == COH_OK) {
        coh_status status = order_all(self, &order, err);
        if (status != COH_OK)
            return status;
        parts = coh_checkpoint_write_part(order.folder, self->setup.plan, 0,
                                          self->shard, &why);
        status = collect_parts(self, &parts, &why, err);
        if (status != COH_OK)
            return status;
    }
    coh_chief_end_save(chief, parts, &why);
    return COH_OK;
}

static coh_server_load own_load(const server *self)
{
    return (coh_server_load){
        .rank = self->setup.roles->rank,
        .bytes = coh_shard_count(self->shard) * (int64_t)sizeof(float),
        .busy_s = coh_inbox_busy_s(self->inbox),
        .pushed = coh_inbox_pushed(self->inbox),
        .answered = coh_inbox_answered(self->inbox),
    };
}

/* One other server's load; its staleness is added to *out. */
static coh_status collect_load(server *self, int s, int64_t *bins,
                               coh_server_outcome *out, coh_err *err)
{
    const int rank = coh_plan_server_rank(self->setup.plan, s);
    const int64_t bytes = staleness_bytes(self);
    coh_answer answer = { 0 };

    coh_status status = message(self, COH_XFER_RECV, rank, COH_TAG_ANSWER,
                                &answer, sizeof answer, "a server's load", err);
    if (status == COH_OK)
        status = message(self, COH_XFER_RECV, rank, COH_TAG_ANSWER, bins, bytes,
                         "a server's staleness", err);
    for (int64_t i = 0; status == COH_OK && i < bytes / 8; i++)
        out->staleness[i] += bins[i];
    out->loads[s] = (coh_server_load){ rank, answer.bytes, answer.busy_s,
                                       answer.pushed, answer.answered };
    return status;
}

/* Stop the other servers and collect what all did. */
static coh_status end_all(server *self, coh_server_outcome *out, coh_err *err)
{
    const int servers = self->setup.plan->servers;
    coh_order order = { .kind = COH_ORDER_STOP };
    int64_t *bins = malloc((size_t)staleness_bytes(self));

    out->staleness = malloc((size_t)staleness_bytes(self));
    out->loads = calloc((size_t)servers, sizeof *out->loads);
    COH_ASSERT(bins != NULL && out->staleness != NULL && out->loads != NULL);
    memcpy(out->staleness, coh_inbox_staleness(self->inbox),
           (size_t)staleness_bytes(self));
    out->loads[0] = own_load(self);
    coh_status status = order_all(self, &order, err);
    for (int s = 1; s < servers && status == COH_OK; s++)
        status = collect_load(self, s, bins, out, err);
    free(bins);
    return status;
}

/* --- The other servers: orders from server 0 --- */

static void post_order(server *self)
{
    const coh_xfer_part part = { COH_XFER_RECV,
                                 coh_plan_server_rank(self->setup.plan, 0),
                                 COH_TAG_ORDER, &self->order,
                                 sizeof self->order };
    self->incoming = coh_xfer_begin(self->setup.roles->world, &part, 1);
}

static coh_status send_answer(server *self, coh_answer *answer, coh_err *err)
{
    return message(self, COH_XFER_SEND,
                   coh_plan_server_rank(self->setup.plan, 0), COH_TAG_ANSWER,
                   answer, sizeof *answer, "server 0 to hear an answer", err);
}

static coh_status obey(server *self, bool *is_over, coh_err *err)
{
    coh_answer answer = { 0 };
    coh_err why = COH_ERR_INIT;

    if (self->order.kind == COH_ORDER_ALIVE)
        return COH_OK;
    if (self->order.kind == COH_ORDER_RELEASE) {
        coh_inbox_release(self->inbox);
        return COH_OK;
    }
    if (self->order.kind == COH_ORDER_SAVE) {
        answer.status = coh_checkpoint_write_part(
            self->order.folder, self->setup.plan,
            self->setup.roles->mine.server, self->shard, &why);
        snprintf(answer.text, sizeof answer.text, "%.*s", COH_REPORT_TEXT - 1,
                 why.text);
        return send_answer(self, &answer, err);
    }
    const coh_server_load load = own_load(self);
    answer.bytes = load.bytes;
    answer.busy_s = load.busy_s;
    answer.pushed = load.pushed;
    answer.answered = load.answered;
    *is_over = true;
    coh_status status = send_answer(self, &answer, err);
    if (status == COH_OK)
        status = message(self, COH_XFER_SEND,
                         coh_plan_server_rank(self->setup.plan, 0),
                         COH_TAG_ANSWER, coh_inbox_staleness(self->inbox),
                         staleness_bytes(self), "server 0 to hear a load", err);
    return status;
}

/* --- The loop --- */

static coh_status give_sign_of_life(server *self, coh_err *err)
{
    const double limit_s = alive_share * self->setup.config->exchange.timeout;
    coh_order order = { .kind = COH_ORDER_ALIVE };

    if (coh_clock_now_s() - self->ordered_s < limit_s)
        return COH_OK;
    return order_all(self, &order, err);
}

/* A group that failed pushes no more: others must not wait for it. */
static coh_status release(server *self, coh_err *err)
{
    coh_order order = { .kind = COH_ORDER_RELEASE };

    if (self->is_released || !coh_chief_has_failed(self->setup.chief))
        return COH_OK;
    self->is_released = true;
    coh_inbox_release(self->inbox);
    return order_all(self, &order, err);
}

static coh_status poll_first(server *self, bool *any, bool *is_over,
                             coh_err *err)
{
    coh_status status = coh_desk_poll(self->desk, any, err);

    coh_chief_watch(self->setup.chief);
    if (status == COH_OK)
        status = release(self, err);
    if (status == COH_OK && coh_chief_must_save(self->setup.chief))
        status = save(self, err);
    if (status == COH_OK)
        status = coh_desk_grant(self->desk, err);
    if (status == COH_OK)
        status = give_sign_of_life(self, err);
    *is_over = coh_chief_is_done(self->setup.chief);
    return status;
}

static coh_status check_silence(const server *self, coh_err *err)
{
    const double limit_s = self->setup.config->exchange.timeout;

    if (coh_clock_now_s() - self->ordered_s <= limit_s)
        return COH_OK;
    return coh_fail(err, COH_E_PEER,
                    "server 0 (rank %d) has been silent for %.0f s: it is lost "
                    "or too slow; look at its log and node, and submit again "
                    "with --resume auto",
                    coh_plan_server_rank(self->setup.plan, 0), limit_s);
}

static coh_status poll_other(server *self, bool *any, bool *is_over,
                             coh_err *err)
{
    if (!coh_xfer_test(self->incoming))
        return check_silence(self, err);
    *any = true;
    self->ordered_s = coh_clock_now_s();
    coh_status status = coh_xfer_finish(
        &self->incoming, self->setup.config->exchange.timeout, "an order", err);
    if (status == COH_OK)
        status = obey(self, is_over, err);
    if (status == COH_OK && !*is_over)
        post_order(self);
    return status;
}

static coh_status loop(server *self, coh_err *err)
{
    const bool is_slow = self->setup.config->testing.slow_server ==
                         self->setup.roles->mine.server;
    double busy_s = coh_clock_now_s(); /* when there was last something */
    bool is_over = false;

    self->ordered_s = busy_s;

    while (!is_over) {
        bool any = false;
        coh_status status = coh_inbox_poll(self->inbox, &any, err);
        if (status == COH_OK)
            status = is_first(self) ? poll_first(self, &any, &is_over, err)
                                    : poll_other(self, &any, &is_over, err);
        if (status != COH_OK)
            return status;
        if (any && is_slow)
            coh_clock_rest(self->setup.config->testing.delay);
        const double now_s = coh_clock_now_s();
        if (any)
            busy_s = now_s;
        else
            coh_xfer_rest(now_s - busy_s);
    }
    return COH_OK;
}

/* The initial values of the owned blocks. */
static coh_status fill_shard(server *self, coh_err *err)
{
    const coh_server_setup *setup = &self->setup;
    const int number = setup->roles->mine.server;

    if (setup->checkpoint[0] != '\0')
        return coh_checkpoint_read_part(setup->checkpoint, setup->plan, number,
                                        self->shard, err);
    float *values = coh_floats(setup->model->parameters);
    if (values == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %lld initial weights, %.3f GiB: use a "
                        "smaller network, or fewer ranks a node",
                        (long long)setup->model->parameters,
                        4.0 * (double)setup->model->parameters / (1 << 30));
    coh_model_init(setup->model, (uint64_t)setup->config->run.seed, values);
    coh_shard_load(self->shard, values);
    free(values);
    return COH_OK;
}

static coh_status make(server *self, coh_err *err)
{
    const coh_server_setup *setup = &self->setup;
    const coh_rule rule = coh_rule_of_servers(setup->config);

    coh_status status =
        coh_shard_new(setup->plan, setup->roles->mine.server, &rule,
                      &setup->model->statistics, &self->shard, err);
    if (status == COH_OK)
        status = fill_shard(self, err);
    if (status == COH_OK)
        status = coh_inbox_new(setup->config, setup->plan, setup->roles,
                               setup->threads, &self->schedule, self->shard,
                               &self->inbox, err);
    if (status == COH_OK && is_first(self))
        status = coh_desk_new(setup->config, setup->plan, setup->roles,
                              setup->chief, &self->desk, err);
    if (status == COH_OK && !is_first(self))
        post_order(self);
    return status;
}

coh_status coh_server_run(const coh_server_setup *setup,
                          coh_server_outcome *out, coh_err *err)
{
    server self = { .setup = *setup };

    self.schedule = coh_schedule_of(setup->config, setup->epoch_samples,
                                    setup->plan->update_samples);
    coh_status status = coh_agree(setup->roles->world, make(&self, err), err);
    if (status == COH_OK)
        status = loop(&self, err);
    if (status == COH_OK && is_first(&self))
        status = end_all(&self, out, err);
    if (status == COH_E_PEER)
        return status; /* MPI may still write into our buffers */
    coh_xfer_cancel(&self.incoming);
    coh_desk_destroy(&self.desk);
    coh_inbox_destroy(&self.inbox);
    coh_shard_destroy(&self.shard);
    return status;
}
