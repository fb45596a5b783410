/* exchange.h - from the members' gradients to the next weights, beside the
 * computing.
 *
 * Without servers: every block's gradient is summed over the group, and each
 * member applies the same update to its own copy of all weights.
 * With servers: every block's gradient is summed at its speaker, a member of the
 * group, pushed to the server that owns it, answered with new weights, and
 * spread to the group.
 *
 * With exchange.update: owners, and no servers: it is summed at its speaker,
 * which updates it, and spread to the group.
 *
 * With servers, and exchange.every above 1 or exchange.elastic: every block's
 * gradient is summed over the group, and each member updates its own copy; in
 * some steps what local.h says is then pushed instead of a gradient.
 *
 * A block's sum begins during backward, as soon as its gradient is complete
 * everywhere in the block: last layers first. Its new weights are waited for
 * during the next forward, when a layer needs them: first layers first. In
 * between, each call looks what has arrived, and sends on what it can.
 *
 *     new -> pull -> { begin -> { need -> have } -> end }* -> settle -> destroy
 *
 * Where gradients are clipped by their norm (optimizer.clip_norm) nothing is
 * applied or pushed before all sums are made: they are in end().
 *
 * With exchange.lag: 1, a step is exchanged while the next is calculated, on
 * the weights before it. All its gradient is there when it begins, need() and
 * have() only look how it gets on, and what has come is taken between two steps:
 *
 *     new -> pull -> { calculate -> end, settle -> take -> begin }* -> ...
 *
 * where end() and settle() are of the step before; they may come sooner.
 *
 * need() and have() are for the compute's watch (compute.h); what fails there is
 * told by the next call that can. Between end() and settle(), weights may only
 * be read behind need(): settle() before anything else reads them.
 *
 * Letters: P = model parameters. All calls but need() and have() are collective
 * over the group, in the same order on all members.
 * Threads: one caller, the one that computes.
 */
#ifndef COH_WORKER_EXCHANGE_H
#define COH_WORKER_EXCHANGE_H

#include "common/optim/shard.h"
#include "common/roles.h"
#include "common/wire.h"
#include "worker/compute.h"

typedef struct coh_exchange coh_exchange;

/* statistics of the model, weights[P] and shard are borrowed. The shard is what
 * this member updates: NULL with servers, but all with local steps; the blocks
 * it owns (NULL: none); or all. Of all, weights are its values. Fails with
 * COH_E_NOMEM. */
coh_status coh_exchange_new(const coh_config *config, const coh_plan *plan,
                            const coh_roles *roles,
                            const coh_schedule *schedule,
                            const coh_statistics *statistics, coh_shard *shard,
                            float *weights, coh_exchange **out, coh_err *err);
void coh_exchange_destroy(coh_exchange **self);

/* A member's part of a step: its samples' weight, whether a signal asks to
 * stop, and whether it failed to get them, so that no member exchanges. */
typedef struct coh_exchange_part {
    double weight;
    bool stop, failed;
} coh_exchange_part;

/* Begin the exchange of a grant's step, before the forward of its last batch;
 * with a lag, after all of it.
 * gradient[P] is borrowed until the step is settled: its sums are made in it. */
void coh_exchange_begin(coh_exchange *self, const coh_grant *grant,
                        coh_exchange_part mine, float *gradient);

/* See coh_watch. */
void coh_exchange_need(coh_exchange *self, int64_t end);
void coh_exchange_have(coh_exchange *self, int64_t first);

/* Wait until all sums are made, and all blocks applied or under way to their
 * servers. *sums, the member's, become the group's, and *group its parts
 * together. *norm: L2 norm of the group's mean gradient, without running
 * statistics, before it is clipped. If a member failed, nothing was exchanged;
 * nor if the weight is 0, unless other groups take the step too (grant->groups >
 * 1): they wait for the push; or there are local steps: what the group has of
 * earlier ones may have to go.
 * Fails with COH_E_PEER, and on all members with COH_E_DIVERGED if the gradient
 * is not finite: this group's part of such blocks is not applied; with
 * optimizer.clip_norm, and with a lag where all weights are updated here, of
 * none. */
coh_status coh_exchange_end(coh_exchange *self, coh_step_sums *sums,
                            coh_exchange_part *group, double *norm,
                            coh_err *err);

/* With a lag: the newest weights that have come are those to calculate with,
 * from now on. Settled; without a lag they are already. */
void coh_exchange_take(coh_exchange *self);

/* Wait for all weights. Fails with COH_E_PEER. */
coh_status coh_exchange_settle(coh_exchange *self, coh_err *err);

/* Fresh weights[P]: of the servers, as a step would get them, or exact: float32
 * whatever exchange.reply, to evaluate; or of the members that own them; where
 * all are updated here there is nothing to do. Settles first, and takes them.
 * Fails with COH_E_PEER. */
coh_status coh_exchange_pull(coh_exchange *self, bool exact, coh_err *err);

/* With servers: their weights[P], to be measured; and after that, what the group
 * goes on from: fresh ones, or with exchange.elastic its own as they were. The
 * gradient is lost. Both settle first. Fail with COH_E_PEER. */
coh_status coh_exchange_look(coh_exchange *self, coh_err *err);
coh_status coh_exchange_go_on(coh_exchange *self, coh_err *err);

/* Blocks that servers got of the last step, but for those of weight 0; of one
 * that is not finite, blocks that they may have got. */
int64_t coh_exchange_pushes(const coh_exchange *self);

/* The root's weights[P] to all members. Fails with COH_E_PEER. */
coh_status coh_exchange_spread(coh_exchange *self, coh_err *err);

/* Seconds this member has waited in all calls so far. */
double coh_exchange_waited_s(const coh_exchange *self);

#endif
