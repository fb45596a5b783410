/* rule.h - update rules: how a gradient changes weights.
 *
 * Letters: n = parameters, g = mean gradient + weight_decay x w, r = rate.
 *
 * SGD with momentum mu (one slot v; Sutskever et al. 2013 with the rate
 * outside, as in most frameworks):
 *     v = mu v + g          w = w - r v
 * Nesterov's momentum (one slot v; the same, seen from where the gradient was
 * taken: Bengio et al., arXiv 1212.0901, section 3.5, again with the rate
 * outside):
 *     v = mu v + g          w = w - r (g + mu v)
 * Where mu is 0, both are w = w - r g, and v stays what it was.
 * Adam (Kingma and Ba, arXiv 1412.6980, Algorithm 1; slots m, v), t = 1, 2, ..:
 *     m = b1 m + (1 - b1) g          v = b2 v + (1 - b2) g g
 *     w = w - r (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
 * AdamW (Loshchilov and Hutter, arXiv 1711.05101, Algorithm 2, with r for both
 * alpha and its schedule, as in most frameworks; slots m, v): as Adam, but g is
 * the mean gradient alone, and first
 *     w = w - r weight_decay w
 * LARS (You et al., arXiv 1708.03888, Algorithm 1; slot v) and LAMB (You et al.,
 * arXiv 1904.00962, Algorithm 2 with phi(z) = z; slots m, v) measure a layer:
 * the n parameters are one layer's, weights and bias, |.| is their L2 norm.
 * LARS, with d the mean gradient alone and g as above:
 *     l = trust |w| / (|d| + weight_decay |w|)    v = mu v + r l g    w = w - v
 * LAMB, with m and v as AdamW's:
 *     u = (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon) + weight_decay w
 *     w = w - r (|w| / |u|) u
 * Where |w|, or what it is divided by, is 0, l and the quotient are 1.
 * DC-ASGD (Zheng et al., arXiv 1609.08326, eq. 10: a Taylor expansion of the
 * gradient whose Hessian is taken to be lambda g g) is SGD with momentum, as
 * above, on
 *     d + lambda d d (w - seen)
 * where seen are the weights that d was computed from and w those that it finds;
 * each group's own. dcasgd (DC-ASGD-c, slot v): lambda is constant. dcasgd_a
 * (DC-ASGD-a, slots v, s): with m = beta2,
 *     s = m s + (1 - m) d d          lambda / sqrt(s + epsilon) instead of lambda
 * one s for all groups (the authors' program keeps one a worker). Momentum and
 * weight decay, which the paper's formula has not, see the corrected gradient.
 * Where the groups update weights of their own (exchange.every, elastic), the
 * servers have no slots. g is the mean of what groups send: COH_RULE_ADD, how
 * their weights changed, but of running statistics their values,
 *     w = w + g                       w = g
 * or COH_RULE_ELASTIC, their weights (Zhang, Choromanska and LeCun, arXiv
 * 1412.6651, Algorithm 1: the centre's half of it; the group's: local.h),
 * statistics like all else:
 *     w = w + elastic (g - w)
 * A running statistic (statistics.h), under any other rule; g without weight decay:
 *     w = momentum w + (1 - momentum) g
 */
#ifndef COH_COMMON_OPTIM_RULE_H
#define COH_COMMON_OPTIM_RULE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/config.h"

typedef struct coh_rule {
    coh_rule_kind kind;
    float momentum, trust, compensation, beta1, beta2, epsilon, weight_decay;
    float elastic;
} coh_rule;

enum { COH_SLOTS_MAX = 2 };

/* Its momentum is that of momentum.h. */
coh_rule coh_rule_of(const coh_config *config);

/* Do groups update weights of their own, and servers only bring them together? */
bool coh_rule_is_local(const coh_config *config);

/* What servers do: the same as coh_rule_of(), but for that. */
coh_rule coh_rule_of_servers(const coh_config *config);

/* Does it take weights or their change, not a gradient? */
bool coh_rule_takes_weights(const coh_rule *self);

/* Are a layer's parameters updated as one: must a block be a whole layer? */
bool coh_rule_takes_layers(const coh_config *config);

/* Does it correct gradients for a delay: is there anything to do with what a
 * group has seen? */
bool coh_rule_compensates(const coh_rule *self);

/* How many floats of state a parameter has: 1, or 2 for the three of Adam's
 * kind and dcasgd_a, or 0 if it takes weights. */
int coh_rule_slots(const coh_rule *self);

/* One update of w[n] and slots[i][n] by gradient[n] x scale. t counts the
 * updates of these parameters, from 1. Vectors must not overlap. A
 * rule that takes layers gets one layer. */
void coh_rule_apply(const coh_rule *self, float rate, int64_t t, int64_t n,
                    const float *gradient, float scale, float *w,
                    float *const slots[COH_SLOTS_MAX]);

/* The same by a gradient that was computed from seen[n], and is corrected for
 * that. The rule compensates; without this, it is SGD. */
void coh_rule_apply_late(const coh_rule *self, float rate, int64_t t, int64_t n,
                         const float *gradient, float scale, const float *seen,
                         float *w, float *const slots[COH_SLOTS_MAX]);

/* One update of the running statistics w[n] by measured[n] x scale. */
void coh_rule_average(float momentum, int64_t n, const float *measured,
                      float scale, float *w);

#endif
