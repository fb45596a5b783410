/* wire.h - every message between ranks: its tag, its head, who sends it.
 * docs/protocol.md tells the same as a conversation.
 *
 * No other file writes a tag as a number. A tag names what is in the message,
 * not who sends it nor which block: messages of one tag between two ranks
 * arrive in the order sent, so heads and payloads pair up without more tags,
 * and tags stay few whatever the model.
 *
 * Heads are sent as their bytes: all ranks must be little-endian and 64-bit,
 * as x86-64 and aarch64 are. Counts and clocks are int64.
 */
#ifndef COH_COMMON_WIRE_H
#define COH_COMMON_WIRE_H

#include <stdint.h>

#include "common/layers.h"
#include "common/narrow.h"

/* Collectives of a team (team.h) that may be under way, in each of its lines:
 * each has a tag of its own until it is over, and then the next so many after
 * it has the same. */
enum { COH_TEAM_TAGS = 64 };

typedef enum coh_tag {
    COH_TAG_PUSH = 100, /* speaker -> server: coh_push */
    COH_TAG_GRADIENT, /* speaker -> server: [block] of exchange.push, or empty:
                         a pull */
    COH_TAG_REPLY,    /* server -> speaker: coh_reply */
    COH_TAG_WEIGHTS,  /* server -> speaker: [block], as the push asked */
    COH_TAG_REPORT,   /* root -> server 0: coh_report */
    COH_TAG_GRANT,    /* server 0 -> root: coh_grant */
    COH_TAG_ORDER,    /* server 0 -> server: coh_order */
    COH_TAG_ANSWER,   /* server -> server 0: coh_answer */
    COH_TAG_SCORES,   /* member -> root: float32 [3 x samples], evaluation */

    /* Member -> member, the next COH_TEAM_TAGS too: small sums and the grants;
     * parts of sums of gradients, and sums; new weights handed on. */
    COH_TAG_STEPS = 1000,
    COH_TAG_SUMS = COH_TAG_STEPS + COH_TEAM_TAGS,
    COH_TAG_SPREADS = COH_TAG_SUMS + COH_TEAM_TAGS,
    COH_TAG_END = COH_TAG_SPREADS + COH_TEAM_TAGS /* sent by nobody */
} coh_tag;

/* The least limit that the standard allows: some MPIs have no more. */
_Static_assert(COH_TAG_END <= 32767, "a tag is above 32766");

/* Before every gradient block; the gradient is a sum over `weight` samples. With
 * exchange.every above 1 or elastic, in its place what worker/local.h says. */
typedef struct coh_push {
    int64_t membership; /* epoch of the membership the sender believes in */
    int64_t group;
    int64_t step;    /* of the grant that the gradient was computed for */
    int64_t block;   /* global number */
    int64_t version; /* of the block's weights that it was computed from */
    int64_t clock;   /* samples seen: the time of the rate's schedule */
    int64_t groups;  /* whose pushes make one update, as granted; 0: a pull */
    double weight;   /* summed weight of the samples; 0: none had any */
    int64_t answer;  /* coh_wire_kind that the weights shall have */
    double scale;    /* of the gradient, as it was packed (narrow.h) */
    coh_narrowed narrowed; /* what that did to its values */
} coh_push;

/* Before the weights of a block. */
typedef struct coh_reply {
    int64_t membership;
    int64_t block;
    int64_t version;   /* of the weights that follow */
    int64_t staleness; /* updates by others between pull and push */
    double scale;      /* of the weights */
} coh_reply;

/* What a group may do next, decided by the registrar. */
typedef enum coh_grant_kind {
    COH_GRANT_TRAIN = 1, /* one step on a piece of an epoch */
    COH_GRANT_EVALUATE,  /* the validation set, with fresh weights */
    COH_GRANT_TEST,      /* the test set: the run is over */
    COH_GRANT_STOP,      /* end with `status` */
    COH_GRANT_WAIT       /* nothing yet; says that the registrar lives */
} coh_grant_kind;

typedef struct coh_grant {
    int64_t kind;
    int64_t membership;
    int64_t step;         /* counts the training grants of all groups; with
                             policy sync it is one for all of them */
    int64_t epoch;        /* pass over the training set, from 0 */
    int64_t first, count; /* positions in the epoch's permutation */
    int64_t clock;        /* samples granted before this piece */
    int64_t groups;       /* whose gradients make one update: 1, but all with
                             policy sync; a short piece may leave one nothing
                             to train on (count 0) */
    int64_t fresh;        /* TRAIN, exchange.lag: not 0: on the newest weights,
                             as a run resumed here would */
    int64_t exchange;     /* not 0: what exchange.every holds back is sent with
                             this step */
    int64_t status;       /* STOP: coh_status to end with */
} coh_grant;

enum { COH_REPORT_TEXT = 1024 };

/* Of reports that end no grant: a group is ready (its first); it lives, in the
 * middle of something long. */
enum { COH_REPORT_READY = 0, COH_REPORT_ALIVE = -1 };

/* What a group did with one grant, or one of the two above. */
typedef struct coh_report {
    int64_t kind; /* coh_grant_kind, or COH_REPORT_... */
    int64_t membership;
    int64_t group;
    int64_t step;
    int64_t samples;     /* trained on, or evaluated */
    int64_t pushes;      /* TRAIN: blocks that servers got, not void */
    double loss, weight; /* sums over samples */
    double losses[COH_LOSSES_MAX]; /* TRAIN: what each loss is of `loss` */
    double gradient_norm;          /* TRAIN: L2 norm of the mean gradient */
    double accuracy, auc;     /* EVALUATE, TEST; < 0: no, or not two classes */
    double compute_s, wait_s; /* time in forward and backward; in exchange */
    int64_t stop;             /* not 0: a signal asks the run to stop */
    int64_t status;           /* not COH_OK: the group cannot go on */
    char text[COH_REPORT_TEXT]; /* why */
} coh_report;

/* Server 0 to the others: write your part of a checkpoint; end; only that it
 * lives; or, as the run fails, let nobody wait for other groups any more. */
typedef enum coh_order_kind {
    COH_ORDER_SAVE = 1,
    COH_ORDER_STOP,
    COH_ORDER_ALIVE,
    COH_ORDER_RELEASE
} coh_order_kind;

enum { COH_ORDER_TEXT = 2048 };

typedef struct coh_order {
    int64_t kind;
    char folder[COH_ORDER_TEXT]; /* SAVE: where the part goes */
} coh_order;

enum { COH_STALENESS_BINS = 64 };

/* A server's load, in its answer to STOP: followed by one histogram a group,
 * int64 [groups, COH_STALENESS_BINS], as a message of the same tag. */
typedef struct coh_answer {
    int64_t status; /* of the order */
    char text[COH_REPORT_TEXT];
    int64_t bytes; /* of parameters owned */
    double busy_s; /* time in receiving, applying and replying */
    coh_narrowed pushed, answered; /* values of gradients, of weights */
} coh_answer;

#endif
