/* rule.c - see rule.h. Bound by memory, not arithmetic: one pass each. */
#include "common/optim/rule.h"

#include <math.h>
#include <stdbool.h>

#include "common/optim/momentum.h"
#include "common/simd.h"

coh_rule coh_rule_of(const coh_config *config)
{
    return (coh_rule){
        .kind = (coh_rule_kind)config->optimizer.rule,
        .momentum = (float)coh_momentum_of(config).value,
        .beta1 = (float)config->optimizer.beta1,
        .beta2 = (float)config->optimizer.beta2,
        .epsilon = (float)config->optimizer.epsilon,
        .weight_decay = (float)config->optimizer.weight_decay,
    };
}

int coh_rule_slots(const coh_rule *self)
{
    return self->kind == COH_RULE_ADAM || self->kind == COH_RULE_ADAMW ? 2 : 1;
}

COH_SIMD static void apply_sgd(float mu, float decay, float rate, int64_t n,
                               const float *restrict gradient, float scale,
                               float *restrict w, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + (gradient[i] * scale + decay * w[i]);
        w[i] -= rate * v[i];
    }
}

COH_SIMD static void apply_nesterov(float mu, float decay, float rate,
                                    int64_t n, const float *restrict gradient,
                                    float scale, float *restrict w,
                                    float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        const float g = gradient[i] * scale + decay * w[i];
        v[i] = mu * v[i] + g;
        w[i] -= rate * (g + mu * v[i]);
    }
}

/* What an update of Adam's kind needs besides the rule. */
typedef struct adam_step {
    float rate;    /* by the bias of the first moment */
    float root;    /* of the bias of the second, inverse */
    float coupled; /* decay that is added to the gradient */
    float kept;    /* what decay leaves of the weights, before the update */
} adam_step;

static adam_step adam_step_of(const coh_rule *rule, float rate, int64_t t)
{
    const double first = 1.0 - pow((double)rule->beta1, (double)t);
    const double second = 1.0 - pow((double)rule->beta2, (double)t);
    const bool is_coupled = rule->kind == COH_RULE_ADAM;

    return (adam_step){
        .rate = (float)((double)rate / first),
        .root = (float)(1.0 / sqrt(second)),
        .coupled = is_coupled ? rule->weight_decay : 0,
        .kept = is_coupled ? 1 : 1 - rate * rule->weight_decay,
    };
}

COH_SIMD static void apply_adam(const coh_rule *rule, const adam_step *step,
                                int64_t n, const float *restrict gradient,
                                float scale, float *restrict w,
                                float *restrict m, float *restrict v)
{
    const float b1 = rule->beta1, b2 = rule->beta2, epsilon = rule->epsilon;
    const float rate = step->rate, root = step->root;
    const float coupled = step->coupled, kept = step->kept;

    for (int64_t i = 0; i < n; i++) {
        const float g = gradient[i] * scale + coupled * w[i];
        m[i] = b1 * m[i] + (1.0f - b1) * g;
        v[i] = b2 * v[i] + (1.0f - b2) * g * g;
        w[i] = kept * w[i] - rate * m[i] / (sqrtf(v[i]) * root + epsilon);
    }
}

void coh_rule_apply(const coh_rule *self, float rate, int64_t t, int64_t n,
                    const float *gradient, float scale, float *w,
                    float *const slots[COH_SLOTS_MAX])
{
    switch (self->kind) {
    case COH_RULE_SGD:
        apply_sgd(self->momentum, self->weight_decay, rate, n, gradient, scale,
                  w, slots[0]);
        return;
    case COH_RULE_NESTEROV:
        apply_nesterov(self->momentum, self->weight_decay, rate, n, gradient,
                       scale, w, slots[0]);
        return;
    case COH_RULE_ADAM:
    case COH_RULE_ADAMW: {
        const adam_step step = adam_step_of(self, rate, t);
        apply_adam(self, &step, n, gradient, scale, w, slots[0], slots[1]);
        return;
    }
    }
}

/* Of two numbers that are not negative, no negative one. */
COH_SIMD void coh_rule_average(float momentum, int64_t n,
                               const float *restrict measured, float scale,
                               float *restrict w)
{
    const float share = 1.0f - momentum;

    for (int64_t i = 0; i < n; i++)
        w[i] = momentum * w[i] + share * (measured[i] * scale);
}
