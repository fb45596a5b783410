/* team.c - see team.h.
 *
 * Own collectives under way are in a queue, one a line, in the order they were
 * begun. They start in that order, when there is a tag and room for them, and
 * leave the queue as soon as this member's part is done, in any order. The
 * oldest of a line can always start, on every member: so none waits in vain.
 */
#include "common/team.h"

#include <limits.h>
#include <stdlib.h>

#include "common/add.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "common/simd.h"
#include "common/tree.h"

enum {
    ROOMS_MOST = 32,
    SMALL_SUMS = 2, /* that have room from the beginning */
    SMALL_BYTES = 1024
};

static const coh_tag first_tags[COH_LINES] = { COH_TAG_STEPS, COH_TAG_SUMS,
                                               COH_TAG_SPREADS };

/* What a member does for a collective, one after the other. */
typedef enum stage {
    WAITS,     /* for its start */
    GATHERS,   /* receives from each child, and adds */
    RISES,     /* to its parent */
    COMES,     /* from its parent */
    GOES_DOWN, /* to all children */
} stage;

typedef struct flight {
    struct flight *next;
    coh_xfer *xfer; /* whose steps these are: the caller's */
    coh_tree tree;
    coh_tag tag;
    int64_t number; /* in its line */
    bool sums, spreads, is_f64;
    stage stage;
    int children, child; /* child: the one that comes, GATHERS */
    int room;            /* number of the line's; -1: none */
    int64_t bytes;
    void *data; /* [bytes] */
} flight;

typedef struct queue {
    MPI_Comm comm;         /* mpi: owned */
    flight *first, **last; /* under way, the oldest first */
    int64_t begun;         /* so many so far */
    float *rooms;          /* owned */
    uint32_t free_rooms;   /* bit r: room r is free */
    int64_t room_count;    /* floats in each */
} queue;

struct coh_team {
    bool is_own;
    MPI_Comm comm; /* own: borrowed */
    int *ranks;    /* [size], owned; NULL for mpi */
    int size, member;
    coh_xfer_owner owner;
    flight *spare; /* flights that are over */
    queue lines[COH_LINES];
};

/* --- life ---------------------------------------------------------------- */

static void drive(void *user);
static void drop(void *user, const coh_xfer *xfer, bool is_clean);

static coh_team *new_team(void)
{
    coh_team *self = calloc(1, sizeof *self);

    COH_ASSERT(self != NULL);
    self->owner = (coh_xfer_owner){ self, drive, drop };
    for (int i = 0; i < COH_LINES; i++)
        self->lines[i].last = &self->lines[i].first;
    return self;
}

coh_team *coh_team_new_mpi(MPI_Comm comm)
{
    coh_team *self = new_team();

    for (int i = 0; i < COH_LINES; i++)
        COH_MPI(MPI_Comm_dup(comm, &self->lines[i].comm));
    return self;
}

coh_team *coh_team_new_own(MPI_Comm comm, const int *ranks, int size,
                           int member)
{
    coh_team *self = new_team();
    coh_err err = COH_ERR_INIT;

    self->is_own = true;
    self->comm = comm;
    self->size = size;
    self->member = member;
    self->ranks = malloc((size_t)size * sizeof *ranks);
    COH_ASSERT(self->ranks != NULL);
    memcpy(self->ranks, ranks, (size_t)size * sizeof *ranks);
    for (int i = 0; i < COH_LINES; i++) {
        const coh_status status =
            coh_team_reserve(self, (coh_line)i, SMALL_SUMS, SMALL_BYTES, &err);
        COH_ASSERT(status == COH_OK);
    }
    return self;
}

void coh_team_destroy(coh_team **self)
{
    if (*self == NULL)
        return;
    for (int i = 0; i < COH_LINES; i++) {
        COH_ASSERT((*self)->lines[i].first == NULL);
        if (!(*self)->is_own)
            COH_MPI(MPI_Comm_free(&(*self)->lines[i].comm));
        free((*self)->lines[i].rooms);
    }
    for (flight *it = (*self)->spare, *next; it != NULL; it = next) {
        next = it->next;
        free(it);
    }
    free((*self)->ranks);
    free(*self);
    *self = NULL;
}

coh_status coh_team_reserve(coh_team *self, coh_line number, int many,
                            int64_t bytes, coh_err *err)
{
    queue *it = &self->lines[number];
    const int64_t align = COH_ALIGN_BYTES;
    const int64_t count =
        (bytes + align - 1) / align * align / (int64_t)sizeof(float);

    if (!self->is_own)
        return COH_OK;
    COH_ASSERT(many > 0 && many <= ROOMS_MOST && it->first == NULL);
    float *rooms = coh_floats(many * count);
    if (rooms == NULL)
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for %d sums of %lld bytes at a time: use a "
                        "smaller exchange.block",
                        many, (long long)bytes);
    free(it->rooms);
    it->rooms = rooms;
    it->room_count = count;
    it->free_rooms = (uint32_t)((UINT64_C(1) << many) - 1);
    return COH_OK;
}

/* --- steps --------------------------------------------------------------- */

COH_SIMD static void add_f64(int64_t n, double *restrict sum,
                             const double *restrict more)
{
    for (int64_t i = 0; i < n; i++)
        sum[i] += more[i];
}

static float *room_of(const queue *at, const flight *it)
{
    return at->rooms + it->room * at->room_count;
}

/* Has it a room, if it needs one? */
static bool take_room(queue *at, flight *it)
{
    if (!it->sums || it->children == 0)
        return true;
    for (int r = 0; r < ROOMS_MOST; r++) {
        if ((at->free_rooms >> r & 1) != 0) {
            at->free_rooms &= ~(UINT32_C(1) << r);
            it->room = r;
            return true;
        }
    }
    return false;
}

static void post(const coh_team *self, const flight *it, coh_xfer_way way,
                 int member, void *data)
{
    const coh_xfer_part part = { way, self->ranks[member], it->tag, data,
                                 it->bytes };
    coh_xfer_post(it->xfer, &part);
}

/* What a stage posts; nothing if there is nobody to post to. */
static void post_stage(const coh_team *self, const queue *at, const flight *it)
{
    const int parent = coh_tree_parent(it->tree, self->member);

    if (it->stage == GATHERS)
        post(self, it, COH_XFER_RECV,
             coh_tree_child(it->tree, self->member, it->child),
             room_of(at, it));
    else if (it->stage == RISES && parent >= 0)
        post(self, it, COH_XFER_SEND, parent, it->data);
    else if (it->stage == COMES && parent >= 0)
        post(self, it, COH_XFER_RECV, parent, it->data);
    else if (it->stage == GOES_DOWN)
        for (int k = it->children - 1; k >= 0; k--)
            post(self, it, COH_XFER_SEND,
                 coh_tree_child(it->tree, self->member, k), it->data);
}

/* What has come from a child. */
static void take_in(const queue *at, const flight *it)
{
    const float *more = room_of(at, it);

    if (it->is_f64)
        add_f64(it->bytes / (int64_t)sizeof(double), it->data,
                (const double *)(const void *)more);
    else
        coh_add(it->bytes / (int64_t)sizeof(float), it->data, more);
}

/* The stage after one that is done; false: that was the last. */
static bool next_stage(flight *it)
{
    if (it->stage == GATHERS && ++it->child < it->children)
        return true;
    if (it->stage == GOES_DOWN || (it->stage == RISES && !it->spreads))
        return false;
    it->stage++;
    if (it->stage == GATHERS && (!it->sums || it->children == 0))
        it->stage++;
    if (it->stage == RISES && !it->sums)
        it->stage++;
    return true;
}

/* Do what can be done now; true: all is done. */
static bool go_on(const coh_team *self, queue *at, flight *it)
{
    if (it->stage == WAITS && !take_room(at, it))
        return false;
    while (coh_xfer_is_quiet(it->xfer)) {
        if (it->stage == GATHERS)
            take_in(at, it);
        if (!next_stage(it))
            return true;
        post_stage(self, at, it);
    }
    return false;
}

/* --- the queue ----------------------------------------------------------- */

static void leave(coh_team *self, queue *at, flight **link, bool frees_room)
{
    flight *it = *link;

    *link = it->next;
    if (at->last == &it->next)
        at->last = link;
    if (it->room >= 0 && frees_room)
        at->free_rooms |= UINT32_C(1) << it->room;
    it->next = self->spare;
    self->spare = it;
}

static void drive_line(coh_team *self, queue *at)
{
    flight **link = &at->first;

    while (*link != NULL &&
           (*link)->number < at->first->number + COH_TEAM_TAGS) {
        flight *it = *link;
        if (go_on(self, at, it)) {
            coh_xfer_end(it->xfer);
            leave(self, at, link, true);
        } else if (it->stage == WAITS) {
            break;
        } else {
            link = &it->next;
        }
    }
}

static void drive(void *user)
{
    coh_team *self = user;

    for (int i = 0; i < COH_LINES; i++)
        drive_line(self, &self->lines[i]);
}

void coh_team_poll(coh_team *self)
{
    drive(self);
}

/* A room that MPI may still write to is never used again. */
static void drop(void *user, const coh_xfer *xfer, bool is_clean)
{
    coh_team *self = user;

    for (int i = 0; i < COH_LINES; i++) {
        queue *at = &self->lines[i];
        for (flight **link = &at->first; *link != NULL; link = &(*link)->next) {
            if ((*link)->xfer == xfer) {
                leave(self, at, link, is_clean);
                return;
            }
        }
    }
}

/* --- what can be begun --------------------------------------------------- */

/* `what` has what differs between the collectives. */
static coh_xfer *begin(coh_team *self, coh_line number, int root, flight what)
{
    queue *at = &self->lines[number];
    flight *it = self->spare != NULL ? self->spare : malloc(sizeof *it);
    const coh_tree tree = { self->size, root };

    COH_ASSERT(it != NULL && what.bytes >= 0 && what.bytes <= INT_MAX);
    COH_ASSERT(root >= 0 && root < self->size);
    if (it == self->spare)
        self->spare = it->next;
    *it = what;
    it->tree = tree;
    it->children = coh_tree_children(tree, self->member);
    it->room = -1;
    it->number = at->begun++;
    it->tag = first_tags[number] + (coh_tag)(it->number % COH_TEAM_TAGS);
    COH_ASSERT(!it->sums ||
               it->bytes <= at->room_count * (int64_t)sizeof(float));
    coh_xfer *xfer = coh_xfer_begin_steps(
        self->comm, it->children > 0 ? it->children : 1, &self->owner);
    it->xfer = xfer;
    it->next = NULL;
    *at->last = it;
    at->last = &it->next;
    drive_line(self, at);
    return xfer;
}

coh_xfer *coh_team_begin_sum(coh_team *self, coh_line line, int via,
                             float *data, int64_t count)
{
    if (!self->is_own)
        return coh_xfer_begin_sum(self->lines[line].comm, data, count);
    return begin(self, line, via,
                 (flight){ .sums = true,
                           .spreads = true,
                           .bytes = count * (int64_t)sizeof *data,
                           .data = data });
}

coh_xfer *coh_team_begin_sum_f64(coh_team *self, coh_line line, int via,
                                 double *data, int64_t count)
{
    if (!self->is_own)
        return coh_xfer_begin_sum_f64(self->lines[line].comm, data, count);
    return begin(self, line, via,
                 (flight){ .sums = true,
                           .spreads = true,
                           .is_f64 = true,
                           .bytes = count * (int64_t)sizeof *data,
                           .data = data });
}

coh_xfer *coh_team_begin_gather_sum(coh_team *self, coh_line line, int root,
                                    float *data, int64_t count)
{
    if (!self->is_own)
        return coh_xfer_begin_gather_sum(self->lines[line].comm, root, data,
                                         count);
    return begin(self, line, root,
                 (flight){ .sums = true,
                           .bytes = count * (int64_t)sizeof *data,
                           .data = data });
}

coh_xfer *coh_team_begin_spread(coh_team *self, coh_line line, int root,
                                void *data, int64_t bytes)
{
    if (!self->is_own)
        return coh_xfer_begin_spread(self->lines[line].comm, root, data, bytes);
    return begin(self, line, root,
                 (flight){ .spreads = true, .bytes = bytes, .data = data });
}
