/* inbox.c - see inbox.h. */
#include "server/inbox.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/memory.h"
#include "common/xfer.h"
#include "server/sent.h"
#include "server/updates.h"

/* Posted for each rank: one arrives while one is worked on or answered. More
 * made no difference (64 MiB of weights, over shared memory). */
enum { DEPTH = 2 };

/* A push and its answer. */
typedef struct parcel {
    coh_push push;
    coh_reply reply;
    float *data;  /* [room], owned: the gradient, then maybe weights; narrow
                     ones arrive in its upper half, and leave from its lower */
    bool is_done; /* or will be when updates are run: to be answered */
    coh_xfer *in, *out;
} parcel;

/* The parcels of one rank, used in turn: as messages arrive in the order sent,
 * parcel n (modulo depth) is its nth push. freed <= answered <= arrived <=
 * freed + depth; those from `arrived` on are posted. */
typedef struct corner {
    int rank;
    parcel *parcels; /* [depth], owned */
    int64_t arrived, answered, freed;
} corner;

struct coh_inbox {
    const coh_plan *plan;
    const coh_roles *roles;
    coh_shard *shard;
    coh_gather *gather;   /* owned; NULL: each push is applied by itself */
    coh_updates *updates; /* owned */
    coh_wire_kind format; /* of gradients */
    coh_sent *sent;       /* owned; NULL: the rule does not compensate */
    double timeout_s;
    bool is_released;
    bool copies;     /* answers are copies of the weights */
    bool is_elastic; /* a group derives its own move from the answer: that must
                        not hold another's, too */
    int64_t depth, room; /* of a corner; of a parcel */
    int ncorners;        /* speakers of all groups */
    corner *corners;     /* [ncorners], owned */
    int64_t *staleness;  /* [groups, COH_STALENESS_BINS], owned */
    double busy_s;
    coh_narrowed pushed, answered;
};

static bool must_gather(const coh_config *config, const coh_plan *plan)
{
    return config->policy == COH_POLICY_SYNC && plan->groups > 1;
}

/* Those that are held are not posted again, and all of a speaker's may be. */
static int64_t depth_of(const coh_config *config, const coh_plan *plan,
                        int server)
{
    int64_t most = 0;

    if (!must_gather(config, plan))
        return DEPTH;
    for (int s = 0; s < plan->speakers; s++) {
        int64_t count = 0;
        for (int64_t i = 0; i < coh_plan_owned(plan, server); i++)
            count += coh_plan_speaker(
                         plan, coh_plan_owned_block(plan, server, i)) == s;
        most = most > count ? most : count;
    }
    return most + 1;
}

/* Parameters of the largest block that a server owns. */
static int64_t room_of(const coh_plan *plan, int server)
{
    int64_t most = 1; /* it may own none */

    for (int64_t i = 0; i < coh_plan_owned(plan, server); i++) {
        const int64_t block = coh_plan_owned_block(plan, server, i);
        const int64_t count = coh_plan_block(plan, block).count;
        most = most > count ? most : count;
    }
    return most;
}

int64_t coh_inbox_floats(const coh_config *config, const coh_plan *plan,
                         int server)
{
    return plan->groups * plan->speakers * depth_of(config, plan, server) *
           room_of(plan, server);
}

static parcel *parcel_of(const coh_inbox *self, const corner *c, int64_t number)
{
    return &c->parcels[number % self->depth];
}

static void post(coh_inbox *self, const corner *c, parcel *p)
{
    const coh_xfer_part parts[] = {
        { COH_XFER_RECV, c->rank, COH_TAG_PUSH, &p->push, sizeof p->push },
        { COH_XFER_RECV, c->rank, COH_TAG_GRADIENT,
          coh_narrow_place(self->format, p->data, self->room),
          coh_narrow_bytes(self->format, self->room) },
    };
    p->is_done = false;
    p->in = coh_xfer_begin(self->roles->world, parts, 2);
}

static bool make_corner(coh_inbox *self, corner *c, int number)
{
    c->rank = coh_plan_speaker_rank(self->plan, number / self->plan->speakers,
                                    number % self->plan->speakers);
    c->parcels = calloc((size_t)self->depth, sizeof *c->parcels);
    for (int64_t i = 0; c->parcels != NULL && i < self->depth; i++) {
        c->parcels[i].data = coh_floats(self->room);
        if (c->parcels[i].data == NULL)
            return false;
    }
    return c->parcels != NULL;
}

static bool make_corners(coh_inbox *self)
{
    for (int i = 0; i < self->ncorners; i++) {
        if (!make_corner(self, &self->corners[i], i))
            return false;
    }
    for (int i = 0; i < self->ncorners; i++) {
        for (int64_t k = 0; k < self->depth; k++)
            post(self, &self->corners[i], &self->corners[i].parcels[k]);
    }
    return true;
}

coh_status coh_inbox_new(const coh_config *config, const coh_plan *plan,
                         const coh_roles *roles, int threads,
                         const coh_schedule *schedule, coh_shard *shard,
                         coh_inbox **out, coh_err *err)
{
    const size_t groups = (size_t)plan->groups;
    const bool gathers = must_gather(config, plan);
    const bool keeps = coh_sent_floats(config, plan, 1) > 0;
    coh_inbox *self = calloc(1, sizeof *self);
    if (self == NULL)
        goto no_memory;

    /* Weights may be sent from where they lie if they are sent as they are, and
     * nobody changes them before they have arrived: only an asynchronous other
     * group would. */
    *self = (coh_inbox){ .plan = plan,
                         .roles = roles,
                         .shard = shard,
                         .format = (coh_wire_kind)config->exchange.push,
                         .timeout_s = config->exchange.timeout,
                         .copies = (plan->groups > 1 && !gathers) ||
                                   config->exchange.reply != COH_WIRE_FLOAT32,
                         .is_elastic = config->exchange.elastic > 0,
                         .depth = depth_of(config, plan, roles->mine.server),
                         .room = room_of(plan, roles->mine.server) };
    self->ncorners = plan->groups * plan->speakers;
    self->corners = calloc((size_t)self->ncorners, sizeof *self->corners);
    self->staleness =
        calloc(groups * COH_STALENESS_BINS, sizeof *self->staleness);
    self->updates = coh_updates_new(plan, schedule, shard, threads);
    if (gathers)
        self->gather = coh_gather_new(coh_shard_nblocks(shard), plan->groups);
    if (keeps)
        self->sent = coh_sent_new(plan, roles->mine.server, shard);
    if (self->corners == NULL || self->staleness == NULL ||
        self->updates == NULL || (gathers && self->gather == NULL) ||
        (keeps && self->sent == NULL) || !make_corners(self))
        goto no_memory;
    *out = self;
    return COH_OK;

no_memory:
    coh_inbox_destroy(&self);
    return coh_fail(err, COH_E_NOMEM,
                    "no memory for the pushes of %d groups: use more servers, "
                    "or a smaller exchange.block",
                    plan->groups);
}

static void destroy_corner(const coh_inbox *self, corner *c)
{
    for (int64_t i = 0; c->parcels != NULL && i < self->depth; i++) {
        coh_xfer_cancel(&c->parcels[i].in);
        coh_xfer_cancel(&c->parcels[i].out);
        free(c->parcels[i].data);
    }
    free(c->parcels);
}

void coh_inbox_destroy(coh_inbox **self)
{
    if (*self == NULL)
        return;
    for (int i = 0; (*self)->corners != NULL && i < (*self)->ncorners; i++)
        destroy_corner(*self, &(*self)->corners[i]);
    coh_gather_destroy(&(*self)->gather);
    coh_updates_destroy(&(*self)->updates);
    coh_sent_destroy(&(*self)->sent);
    free((*self)->corners);
    free((*self)->staleness);
    free(*self);
    *self = NULL;
}

/* How old a gradient is; counted. */
static void count_staleness(coh_inbox *self, parcel *p)
{
    const coh_push *push = &p->push;
    int64_t *bins = self->staleness + push->group * COH_STALENESS_BINS;
    const int64_t staleness =
        coh_shard_version(self->shard, push->block) - push->version;

    COH_ASSERT(staleness >= 0);
    bins[staleness < COH_STALENESS_BINS ? staleness : COH_STALENESS_BINS - 1]++;
    p->reply.staleness = staleness;
}

/* What was last sent of a block from where it lies has arrived, or its rank
 * would not have pushed it again; MPI must have heard of that, too. */
static coh_status settle(coh_inbox *self, corner *c, int64_t block,
                         coh_err *err)
{
    for (int64_t n = c->freed; n < c->answered; n++) {
        parcel *p = parcel_of(self, c, n);
        if (p->push.block != block)
            continue;
        const coh_status status = coh_xfer_finish(
            &p->out, self->timeout_s, "a worker to take its weights", err);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

/* Sync: the pushes of all groups have come. */
static void add_all(coh_inbox *self, const coh_push *push,
                    const coh_gathered *items)
{
    for (int g = 0; g < self->plan->groups; g++) {
        parcel *p = items[g].user;
        if (p == NULL)
            continue;
        if (p->push.weight > 0)
            count_staleness(self, p);
        p->is_done = true;
    }
    coh_updates_add(self->updates, (coh_update){ push, NULL, items, 0, NULL });
}

static void add_one(coh_inbox *self, parcel *p)
{
    if (coh_updates_has(self->updates, p->push.block))
        coh_updates_run(self->updates); /* another group's: it counts */
    count_staleness(self, p);
    p->is_done = true;
    const float *seen =
        coh_sent_of(self->sent, p->push.group, p->push.block, p->push.version);
    coh_updates_add(self->updates, (coh_update){ &p->push, p->data, NULL,
                                                 p->reply.staleness, seen });
}

/* The gradient that has come, as float32. */
static void unpack(coh_inbox *self, parcel *p)
{
    coh_narrow_unpack(self->format, (float)p->push.scale,
                      coh_narrow_place(self->format, p->data, self->room),
                      coh_plan_block(self->plan, p->push.block).count, p->data);
    coh_narrowed_add(&self->pushed, &p->push.narrowed);
}

/* A push that has come: apply it, or keep it for when others have. */
static coh_status take(coh_inbox *self, corner *c, parcel *p, coh_err *err)
{
    const coh_gathered item = { &p->push, p->data, p };
    coh_status status = coh_xfer_finish(&p->in, self->timeout_s, "a push", err);

    if (status == COH_OK && !self->copies)
        status = settle(self, c, p->push.block, err);
    if (status != COH_OK)
        return status;
    p->reply.staleness = 0;
    if (p->push.groups == 0 || self->is_released) {
        p->is_done = true;
        return COH_OK;
    }
    unpack(self, p);
    if (self->gather == NULL) {
        add_one(self, p);
    } else {
        const coh_gathered *items = coh_gather_add(
            self->gather,
            coh_plan_owned_index(self->plan, self->roles->mine.server,
                                 p->push.block),
            item);
        if (items != NULL)
            add_all(self, &p->push, items);
    }
    return COH_OK;
}

static void answer(coh_inbox *self, const corner *c, parcel *p)
{
    const int64_t block = p->push.block;
    const int64_t count = coh_plan_block(self->plan, block).count;
    const coh_wire_kind format = (coh_wire_kind)p->push.answer;
    float *weights = coh_shard_block(self->shard, block);

    p->reply.membership = p->push.membership;
    p->reply.block = block;
    p->reply.version = coh_shard_version(self->shard, block);
    coh_sent_take(self->sent, p->push.group, block);
    p->reply.scale = 1;
    if (self->copies) {
        p->reply.scale = (double)coh_narrow_pack(format, weights, count,
                                                 p->data, &self->answered);
        weights = p->data;
    }
    const coh_xfer_part parts[] = {
        { COH_XFER_SEND, c->rank, COH_TAG_REPLY, &p->reply, sizeof p->reply },
        { COH_XFER_SEND, c->rank, COH_TAG_WEIGHTS, weights,
          coh_narrow_bytes(format, count) },
    };
    p->out = coh_xfer_begin(self->roles->world, parts, 2);
}

static bool has_left(parcel *p)
{
    return p->out == NULL || coh_xfer_test(p->out);
}

/* Post again what is gone, and take what has come. */
static coh_status poll_corner(coh_inbox *self, corner *c, bool *any,
                              coh_err *err)
{
    coh_status status = COH_OK;

    while (c->freed < c->answered && has_left(parcel_of(self, c, c->freed))) {
        parcel *p = parcel_of(self, c, c->freed++);
        status = coh_xfer_finish(&p->out, self->timeout_s,
                                 "a worker to take its weights", err);
        if (status != COH_OK)
            return status;
        post(self, c, p);
    }
    while (status == COH_OK && c->arrived < c->freed + self->depth &&
           coh_xfer_test(parcel_of(self, c, c->arrived)->in)) {
        *any = true;
        status = take(self, c, parcel_of(self, c, c->arrived++), err);
    }
    return status;
}

static void answer_corner(coh_inbox *self, corner *c)
{
    while (c->answered < c->arrived && parcel_of(self, c, c->answered)->is_done)
        answer(self, c, parcel_of(self, c, c->answered++));
}

/* Those from `first` on, before `end`, once their updates are made. */
static void answer_corners(coh_inbox *self, int first, int end)
{
    coh_updates_run(self->updates);
    for (int i = first; i < end; i++)
        answer_corner(self, &self->corners[i]);
}

coh_status coh_inbox_poll(coh_inbox *self, bool *any, coh_err *err)
{
    const double begin_s = coh_clock_now_s();
    coh_status status = COH_OK;
    bool found = false;

    for (int i = 0; i < self->ncorners && status == COH_OK; i++) {
        status = poll_corner(self, &self->corners[i], &found, err);
        if (self->is_elastic && status == COH_OK)
            answer_corners(self, i, i + 1);
    }
    if (status == COH_OK)
        answer_corners(self, 0, self->ncorners);
    if (found)
        self->busy_s += coh_clock_now_s() - begin_s;
    *any = *any || found;
    return status;
}

void coh_inbox_release(coh_inbox *self)
{
    self->is_released = true;
    for (int i = 0; i < self->ncorners; i++) {
        corner *c = &self->corners[i];
        for (int64_t n = c->answered; n < c->arrived; n++)
            parcel_of(self, c, n)->is_done = true;
    }
}

int64_t *coh_inbox_staleness(coh_inbox *self)
{
    return self->staleness;
}

coh_narrowed coh_inbox_pushed(const coh_inbox *self)
{
    return self->pushed;
}

coh_narrowed coh_inbox_answered(const coh_inbox *self)
{
    return self->answered;
}

double coh_inbox_busy_s(const coh_inbox *self)
{
    return self->busy_s;
}
