/* trips.c - see trips.h. */
#include "worker/trips.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/xfer.h"

typedef struct trip {
    coh_range range;
    int speaker; /* member that talks to its server */
    int server_rank;
    coh_push push;
    coh_reply reply;
    coh_xfer *answer, *spread;
} trip;

struct coh_trips {
    const coh_plan *plan;
    const coh_roles *roles;
    float *weights;
    coh_wire_kind push, reply; /* how gradients go, and weights come */
    coh_wait wait;
    int64_t nblocks;
    trip *trips;        /* [nblocks], owned */
    int64_t answered;   /* answers to blocks [answered, nblocks) have come */
    int64_t sent, here; /* spreads of blocks [0, sent) began, [0, here) ended */
};

coh_status coh_trips_new(const coh_config *config, const coh_plan *plan,
                         const coh_roles *roles, float *weights,
                         coh_trips **out, coh_err *err)
{
    coh_trips *self = calloc(1, sizeof *self);
    trip *trips = calloc((size_t)plan->nblocks, sizeof *trips);

    if (self == NULL || trips == NULL) {
        free(self);
        free(trips);
        return coh_fail(err, COH_E_NOMEM, "no memory for the exchange");
    }
    for (int64_t b = 0; b < plan->nblocks; b++) {
        trips[b].range = coh_plan_block(plan, b);
        trips[b].speaker = coh_plan_speaker(plan, b);
        if (plan->servers > 0)
            trips[b].server_rank =
                coh_plan_server_rank(plan, coh_plan_owner(plan, b));
    }
    *self = (coh_trips){ .plan = plan,
                         .roles = roles,
                         .weights = weights,
                         .push = (coh_wire_kind)config->exchange.push,
                         .reply = (coh_wire_kind)config->exchange.reply,
                         .wait = { config->exchange.timeout, 0 },
                         .nblocks = plan->nblocks,
                         .trips = trips,
                         .sent = plan->nblocks,
                         .here = plan->nblocks };
    *out = self;
    return COH_OK;
}

void coh_trips_destroy(coh_trips **self)
{
    if (*self == NULL)
        return;
    free((*self)->trips);
    free(*self);
    *self = NULL;
}

double coh_trips_waited_s(const coh_trips *self)
{
    return self->wait.waited_s;
}

bool coh_trips_speaks(const coh_trips *self, int64_t block)
{
    return self->roles->mine.member == self->trips[block].speaker;
}

void coh_trips_put(coh_trips *self, int64_t block, const float *weights)
{
    const coh_range range = self->trips[block].range;

    memcpy(self->weights + range.first, weights,
           (size_t)range.count * sizeof *weights);
}

int64_t coh_trips_version(const coh_trips *self, int64_t block)
{
    return self->trips[block].reply.version;
}

/* Where a block's weights are, and where its answer arrives: at the end of
 * them, to be unpacked where it lies. */
static float *weights_of(const coh_trips *self, const trip *it)
{
    return self->weights + it->range.first;
}

static void *place_of(const coh_trips *self, const trip *it)
{
    return coh_narrow_place((coh_wire_kind)it->push.answer,
                            weights_of(self, it), it->range.count);
}

/* Send it->push with so many bytes of gradient, be ready for the answer. */
static void begin(coh_trips *self, trip *it, void *gradient, int64_t bytes)
{
    it->push.group = self->roles->mine.group;
    it->push.block = it - self->trips;
    const coh_xfer_part parts[] = {
        { COH_XFER_RECV, it->server_rank, COH_TAG_REPLY, &it->reply,
          sizeof it->reply },
        { COH_XFER_RECV, it->server_rank, COH_TAG_WEIGHTS, place_of(self, it),
          coh_narrow_bytes((coh_wire_kind)it->push.answer, it->range.count) },
        { COH_XFER_SEND, it->server_rank, COH_TAG_PUSH, &it->push,
          sizeof it->push },
        { COH_XFER_SEND, it->server_rank, COH_TAG_GRADIENT, gradient, bytes },
    };
    it->answer = coh_xfer_begin(self->roles->world, parts, 4);
}

void coh_trips_push(coh_trips *self, int64_t block, const coh_push *head,
                    float *gradient)
{
    trip *it = &self->trips[block];
    const int64_t count = it->range.count;

    it->push = *head;
    it->push.answer = self->reply;
    it->push.narrowed = (coh_narrowed){ 0 };
    it->push.scale = (double)coh_narrow_pack(self->push, gradient, count,
                                             gradient, &it->push.narrowed);
    begin(self, it, gradient, coh_narrow_bytes(self->push, count));
}

void coh_trips_pull(coh_trips *self, int64_t block, bool exact)
{
    trip *it = &self->trips[block];

    it->push = (coh_push){ .answer = exact ? COH_WIRE_FLOAT32 : self->reply };
    begin(self, it, NULL, 0);
}

static bool has_come(coh_xfer *xfer)
{
    return xfer == NULL || coh_xfer_test(xfer);
}

/* Have more answers come? They do from the last block to the first. */
static bool see_answers(coh_trips *self)
{
    const int64_t before = self->answered;

    while (self->answered > 0 &&
           has_come(self->trips[self->answered - 1].answer))
        self->answered--;
    return self->answered < before;
}

/* Wait for an answer, and take it. What comes meanwhile comes by our polling:
 * while it does, and a moment longer, this does not sleep more from look to
 * look. */
static coh_status finish_answer(coh_trips *self, trip *it, coh_err *err)
{
    static const double moment_s = 1;
    const double since_s = coh_clock_now_s();
    double now_s = since_s, last_s = since_s;

    while (!has_come(it->answer) && now_s - last_s < moment_s) {
        coh_xfer_rest(now_s - last_s);
        coh_team_poll(self->roles->team);
        now_s = coh_clock_now_s();
        if (see_answers(self))
            last_s = now_s;
    }
    self->wait.waited_s += now_s - since_s;
    const coh_status status = coh_xfer_wait(&it->answer, &self->wait,
                                            "new weights from a server", err);
    if (status == COH_OK)
        coh_narrow_unpack((coh_wire_kind)it->push.answer,
                          (float)it->reply.scale, place_of(self, it),
                          it->range.count, weights_of(self, it));
    return status;
}

static void begin_spread(coh_trips *self, trip *it)
{
    if (self->plan->group_size > 1)
        it->spread =
            coh_team_begin_spread(self->roles->team, COH_LINE_SPREADS,
                                  it->speaker, self->weights + it->range.first,
                                  it->range.count * (int64_t)sizeof(float));
}

/* Spread, in their order, blocks whose answers have come; those before `must`
 * are waited for. */
static coh_status send_on(coh_trips *self, int64_t must, coh_err *err)
{
    coh_status status = COH_OK;

    while (self->sent < self->nblocks && status == COH_OK) {
        trip *it = &self->trips[self->sent];
        if (self->sent >= must && !has_come(it->answer))
            break;
        if (it->answer != NULL)
            status = finish_answer(self, it, err);
        if (status == COH_OK)
            begin_spread(self, it);
        self->sent++;
    }
    return status;
}

coh_status coh_trips_back(coh_trips *self, coh_err *err)
{
    self->sent = self->here = 0;
    self->answered = self->nblocks;
    return send_on(self, 0, err);
}

coh_status coh_trips_wait(coh_trips *self, int64_t end, coh_err *err)
{
    coh_status status = send_on(self, 0, err);

    while (self->here < self->nblocks &&
           self->trips[self->here].range.first < end && status == COH_OK) {
        trip *it = &self->trips[self->here++];
        status = send_on(self, self->here, err);
        if (status == COH_OK)
            status =
                coh_xfer_wait(&it->spread, &self->wait,
                              "new weights from a member of the group", err);
    }
    return status;
}
