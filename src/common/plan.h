/* plan.h - who does what: ranks to roles, parameters to blocks, blocks to
 * servers, samples to members. Pure: the same on every rank, no MPI, no state.
 *
 * Ranks      group 0's workers, group 1's, ..., and among them the servers, as
 *            far from each other as can be: server s of S is rank
 *            (s + 1) (ranks - 1) / S. Where a launcher fills node after node
 *            with as many ranks, no node has more servers than it must, nor a
 *            second while another has none. Rank 0 is a worker, the last a
 *            server. A group's first worker is its root: it talks to the
 *            registrar.
 * Blocks     the flat parameter vector cut into pieces. A block is what is
 *            sent, versioned and placed.
 * Speakers   the first members of a group: block b's talks to its server for
 *            the group; they take turns.
 * Owners     who updates which blocks: the servers; without any, each worker
 *            all of them for itself, or, with exchange.update: owners, the
 *            speakers of the group. Below, "server" is an owner of either kind.
 * Placement  balanced: pieces of equal size (the last one shorter); block b
 *            belongs to server b modulo servers, and the blocks are cut to make
 *            as many for each: the fullest server holds the mean and at most a
 *            tenth, whatever the layers. (A model of few parameters a server is
 *            cut so finely that some may own none.)
 *            layer: no block holds parameters of two layers, and a layer's
 *            blocks belong to one server. A layer is one block if
 *            exchange.block allows, else pieces of equal size. From the largest
 *            on, each layer goes to the server that has least. What the fullest
 *            server holds is at least the largest layer; it is at most 4/3 of
 *            what the best of all ways to deal out whole layers would give
 *            (Graham, Bounds on Multiprocessing Timing Anomalies, 1969).
 *
 * Life: make -> read* -> fini. Copies of a plan borrow from it.
 */
#ifndef COH_COMMON_PLAN_H
#define COH_COMMON_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"
#include "common/model.h"
#include "common/status.h"

/* A run of consecutive elements of the flat vector, or of anything else. */
typedef struct coh_range {
    int64_t first, count;
} coh_range;

typedef struct coh_plan_layers coh_plan_layers;

typedef struct coh_plan {
    int groups, group_size, servers; /* all resolved; group_size >= 1 */
    int speakers;                    /* of a group, 1 .. group_size */
    int owners; /* servers, or speakers that update; 0: each worker, all */
    int64_t parameters;
    int64_t nblocks;
    int64_t block_count;    /* parameters of the largest block */
    int64_t batch;          /* rows of a worker's batch */
    int64_t share;          /* samples a worker takes a step, at most: of one
                               batch, or of train.accumulate */
    int64_t step_samples;   /* samples a group takes a step, at most */
    int64_t update_samples; /* samples of one update: of a group's step, or with
                                policy sync of a step of all groups */
    coh_plan_layers *layers; /* placement layer, owned; else NULL */
} coh_plan;

typedef struct coh_role {
    bool is_server;
    int server; /* 0-based among servers, or -1 */
    int group;  /* 0-based, or -1 for a server */
    int member; /* 0-based in its group, or -1; 0 is the root */
} coh_role;

/* ranks: how many were launched; 0 if not known yet (group_size 0 is then 1).
 * Fails with COH_E_LAUNCH: the sum written out, and what to change; with
 * COH_E_CONFIG: a layer that must be one block, for optimizer.rule, and is
 * larger; with COH_E_NOMEM. */
coh_status coh_plan_make(const coh_config *config, const coh_model *model,
                         int ranks, coh_plan *out, coh_err *err);
void coh_plan_fini(coh_plan *self);

int coh_plan_ranks(const coh_plan *self);
coh_role coh_plan_role(const coh_plan *self, int rank);
int coh_plan_worker_rank(const coh_plan *self, int group, int member);
int coh_plan_root_rank(const coh_plan *self, int group);
int coh_plan_server_rank(const coh_plan *self, int server);

/* The member that speaks for block b, and the rank of a speaker. */
int coh_plan_speaker(const coh_plan *self, int64_t block);
int coh_plan_speaker_rank(const coh_plan *self, int group, int speaker);

/* The parameters of a block, 0 <= block < nblocks. */
coh_range coh_plan_block(const coh_plan *self, int64_t block);

/* The server that owns a block, owners > 0. */
int coh_plan_owner(const coh_plan *self, int64_t block);

/* Blocks that `server` owns, from the lowest on. With server -1, all of them: a
 * worker that updates its own weights. */
int64_t coh_plan_owned(const coh_plan *self, int server);
int64_t coh_plan_owned_block(const coh_plan *self, int server, int64_t index);
int64_t coh_plan_owned_index(const coh_plan *self, int server, int64_t block);
int64_t coh_plan_owned_parameters(const coh_plan *self, int server);

/* Parameters of the server that owns most. owners > 0. */
int64_t coh_plan_fullest(const coh_plan *self);

/* Do the members of a group share out the update? The number of `member` among
 * the owners then; -1: it is none. */
bool coh_plan_shares_update(const coh_plan *self);
int coh_plan_member_owner(const coh_plan *self, int member);

/* Into how many parts the parameters of a checkpoint fall. */
int coh_plan_parts(const coh_plan *self);

/* What of a group's `samples` positions falls to `member`: each is filled up to
 * its share of a whole step in turn. count may be 0. */
coh_range coh_plan_share(const coh_plan *self, int member, int64_t samples);

/* The batches of a share of so many samples, filled up in turn: at least one,
 * which may be empty; and the positions in number `index`, in the share. */
int64_t coh_plan_batches(const coh_plan *self, int64_t samples);
coh_range coh_plan_batch(const coh_plan *self, int64_t samples, int64_t index);

/* The smallest batch of a whole step that is not empty. */
int64_t coh_plan_least_batch(const coh_plan *self);

#endif
