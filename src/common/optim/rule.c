/* rule.c - see rule.h. Bound by memory, not arithmetic: one pass each, but for
 * what takes norms. */
#include "common/optim/rule.h"

#include <math.h>

#include "common/optim/momentum.h"
#include "common/optim/squares.h"
#include "common/simd.h"

coh_rule coh_rule_of(const coh_config *config)
{
    return (coh_rule){
        .kind = (coh_rule_kind)config->optimizer.rule,
        .momentum = (float)coh_momentum_of(config).value,
        .trust = (float)config->optimizer.trust,
        .compensation = (float)config->optimizer.compensation,
        .beta1 = (float)config->optimizer.beta1,
        .beta2 = (float)config->optimizer.beta2,
        .epsilon = (float)config->optimizer.epsilon,
        .weight_decay = (float)config->optimizer.weight_decay,
    };
}

bool coh_rule_is_local(const coh_config *config)
{
    return config->exchange.every > 1 || config->exchange.elastic > 0;
}

coh_rule coh_rule_of_servers(const coh_config *config)
{
    if (!coh_rule_is_local(config))
        return coh_rule_of(config);
    return (coh_rule){
        .kind = config->exchange.elastic > 0 ? COH_RULE_ELASTIC : COH_RULE_ADD,
        .elastic = (float)config->exchange.elastic,
    };
}

bool coh_rule_takes_weights(const coh_rule *self)
{
    return self->kind == COH_RULE_ADD || self->kind == COH_RULE_ELASTIC;
}

bool coh_rule_takes_layers(const coh_config *config)
{
    return config->optimizer.rule == COH_RULE_LARS ||
           config->optimizer.rule == COH_RULE_LAMB;
}

bool coh_rule_compensates(const coh_rule *self)
{
    return self->kind == COH_RULE_DCASGD || self->kind == COH_RULE_DCASGD_A;
}

int coh_rule_slots(const coh_rule *self)
{
    if (coh_rule_takes_weights(self))
        return 0;
    return self->kind == COH_RULE_ADAM || self->kind == COH_RULE_ADAMW ||
                   self->kind == COH_RULE_LAMB ||
                   self->kind == COH_RULE_DCASGD_A
               ? 2
               : 1;
}

/* Either of the next two without momentum, to the same bits: a slot that counts
 * for nothing need not go through memory. */
COH_SIMD static void apply_plain(float decay, float rate, int64_t n,
                                 const float *restrict gradient, float scale,
                                 float *restrict w)
{
    for (int64_t i = 0; i < n; i++)
        w[i] -= rate * (gradient[i] * scale + decay * w[i]);
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

/* a / b; 1 where that is no measure. */
static double quotient(double a, double b)
{
    return a > 0 && b > 0 ? a / b : 1;
}

COH_SIMD static void move(float mu, float decay, float rate, int64_t n,
                          const float *restrict gradient, float scale,
                          float *restrict w, float *restrict v)
{
    for (int64_t i = 0; i < n; i++) {
        v[i] = mu * v[i] + rate * (gradient[i] * scale + decay * w[i]);
        w[i] -= v[i];
    }
}

static void apply_lars(const coh_rule *rule, float rate, int64_t n,
                       const float *gradient, float scale, float *w, float *v)
{
    const double decay = (double)rule->weight_decay;
    const double weight = sqrt(coh_square_sum(w, n));
    const double slope = sqrt(coh_square_sum(gradient, n)) * (double)scale;
    const double local =
        quotient((double)rule->trust * weight, slope + decay * weight);

    move(rule->momentum, rule->weight_decay, (float)((double)rate * local), n,
         gradient, scale, w, v);
}

COH_SIMD static void take_moments(const coh_rule *rule, int64_t n,
                                  const float *restrict gradient, float scale,
                                  float *restrict m, float *restrict v)
{
    const float b1 = rule->beta1, b2 = rule->beta2;

    for (int64_t i = 0; i < n; i++) {
        const float g = gradient[i] * scale;
        m[i] = b1 * m[i] + (1.0f - b1) * g;
        v[i] = b2 * v[i] + (1.0f - b2) * g * g;
    }
}

/* u[n] of rule.h; the step's rate is without the rate itself. */
COH_SIMD static void take_direction(const coh_rule *rule, const adam_step *step,
                                    int64_t n, const float *restrict w,
                                    const float *restrict m,
                                    const float *restrict v, float *restrict u)
{
    const float epsilon = rule->epsilon, decay = rule->weight_decay;
    const float rate = step->rate, root = step->root;

    for (int64_t i = 0; i < n; i++)
        u[i] = rate * m[i] / (sqrtf(v[i]) * root + epsilon) + decay * w[i];
}

COH_SIMD static void walk(float rate, int64_t n, const float *restrict u,
                          float *restrict w)
{
    for (int64_t i = 0; i < n; i++)
        w[i] -= rate * u[i];
}

/* The direction is calculated twice, piece by piece, rather than kept. */
static void apply_lamb(const coh_rule *rule, float rate, int64_t t, int64_t n,
                       const float *gradient, float scale, float *w, float *m,
                       float *v)
{
    enum { PIECE = 1024 };
    const adam_step step = adam_step_of(rule, 1, t);
    double squares = 0;
    float u[PIECE];

    take_moments(rule, n, gradient, scale, m, v);
    for (int64_t at = 0, some; at < n; at += some) {
        some = n - at < PIECE ? n - at : PIECE;
        take_direction(rule, &step, some, w + at, m + at, v + at, u);
        squares += coh_square_sum(u, some);
    }
    const double weight = sqrt(coh_square_sum(w, n));
    const double local = (double)rate * quotient(weight, sqrt(squares));
    for (int64_t at = 0, some; at < n; at += some) {
        some = n - at < PIECE ? n - at : PIECE;
        take_direction(rule, &step, some, w + at, m + at, v + at, u);
        walk((float)local, some, u, w + at);
    }
}

void coh_rule_apply(const coh_rule *self, float rate, int64_t t, int64_t n,
                    const float *gradient, float scale, float *w,
                    float *const slots[COH_SLOTS_MAX])
{
    const bool is_sgd = self->kind == COH_RULE_SGD ||
                        self->kind == COH_RULE_NESTEROV ||
                        coh_rule_compensates(self);

    if (is_sgd && self->momentum == 0) {
        apply_plain(self->weight_decay, rate, n, gradient, scale, w);
        return;
    }
    switch (self->kind) {
    case COH_RULE_SGD:
    case COH_RULE_DCASGD:
    case COH_RULE_DCASGD_A:
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
    case COH_RULE_LARS:
        apply_lars(self, rate, n, gradient, scale, w, slots[0]);
        return;
    case COH_RULE_LAMB:
        apply_lamb(self, rate, t, n, gradient, scale, w, slots[0], slots[1]);
        return;
    case COH_RULE_ADD:
        walk(-scale, n, gradient, w);
        return;
    case COH_RULE_ELASTIC:
        coh_rule_average(1 - self->elastic, n, gradient, scale, w);
        return;
    }
}

/* out[n]: the mean gradient of rule.h, corrected. */
COH_SIMD static void compensate(float lambda, int64_t n,
                                const float *restrict gradient, float scale,
                                const float *restrict seen,
                                const float *restrict w, float *restrict out)
{
    for (int64_t i = 0; i < n; i++) {
        const float d = gradient[i] * scale;
        out[i] = d + lambda * d * d * (w[i] - seen[i]);
    }
}

COH_SIMD static void compensate_adaptively(
    const coh_rule *rule, int64_t n, const float *restrict gradient,
    float scale, const float *restrict seen, const float *restrict w,
    float *restrict s, float *restrict out)
{
    const float lambda = rule->compensation, m = rule->beta2;
    const float epsilon = rule->epsilon;

    for (int64_t i = 0; i < n; i++) {
        const float d = gradient[i] * scale;
        s[i] = m * s[i] + (1.0f - m) * d * d;
        out[i] = d + lambda / sqrtf(s[i] + epsilon) * d * d * (w[i] - seen[i]);
    }
}

void coh_rule_apply_late(const coh_rule *self, float rate, int64_t t, int64_t n,
                         const float *gradient, float scale, const float *seen,
                         float *w, float *const slots[COH_SLOTS_MAX])
{
    enum { PIECE = 1024 };
    const bool is_adaptive = self->kind == COH_RULE_DCASGD_A;
    float mean[PIECE];

    for (int64_t at = 0, some; at < n; at += some) {
        float *const here[COH_SLOTS_MAX] = { slots[0] + at };
        some = n - at < PIECE ? n - at : PIECE;
        if (is_adaptive)
            compensate_adaptively(self, some, gradient + at, scale, seen + at,
                                  w + at, slots[1] + at, mean);
        else
            compensate(self->compensation, some, gradient + at, scale,
                       seen + at, w + at, mean);
        coh_rule_apply(self, rate, t, some, mean, 1, w + at, here);
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
