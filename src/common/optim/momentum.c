/* momentum.c - see momentum.h. */
#include "common/optim/momentum.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/optim/rule.h"

static const int64_t many_groups = 4;
static const double high_momentum = 0.5;

/* Groups whose gradients are applied each for itself, to the same weights. */
static int64_t groups_apart(const coh_config *config)
{
    if (coh_rule_is_local(config))
        return 1;
    switch ((coh_policy_kind)config->policy) {
    case COH_POLICY_ASYNC:
    case COH_POLICY_BOUNDED:
        return config->groups;
    case COH_POLICY_SYNC:
        return 1;
    }
    return 1;
}

bool coh_momentum_counts(const coh_config *config)
{
    return config->optimizer.rule == COH_RULE_SGD ||
           config->optimizer.rule == COH_RULE_NESTEROV ||
           config->optimizer.rule == COH_RULE_LARS ||
           config->optimizer.rule == COH_RULE_DCASGD ||
           config->optimizer.rule == COH_RULE_DCASGD_A;
}

coh_momentum coh_momentum_of(const coh_config *config)
{
    const double given = config->optimizer.momentum;
    coh_momentum it = {
        .implied = 1 - 1 / (double)groups_apart(config),
        .value = given,
        .rate_factor = 1,
    };

    if (config->optimizer.momentum_auto && coh_momentum_counts(config)) {
        it.value = fmax(given - it.implied, 0);
        it.rate_factor = fmin((1 - it.value) / (1 - given),
                              config->optimizer.momentum_auto_factor);
    }
    return it;
}

bool coh_momentum_describe(const coh_config *config,
                           char out[COH_MOMENTUM_TEXT])
{
    const coh_momentum it = coh_momentum_of(config);

    if (!config->optimizer.momentum_auto ||
        it.value >= config->optimizer.momentum)
        return false;
    snprintf(out, COH_MOMENTUM_TEXT,
             "momentum %.4g instead of %.4g, and every rate x %.4g: %" PRId64
             " groups act like a momentum of %.4g (optimizer.momentum_auto)",
             it.value, config->optimizer.momentum, it.rate_factor,
             groups_apart(config), it.implied);
    return true;
}

bool coh_momentum_warn(const coh_config *config, char out[COH_MOMENTUM_TEXT])
{
    const int64_t groups = groups_apart(config);

    if (config->optimizer.momentum_auto || !coh_momentum_counts(config) ||
        groups < many_groups || config->optimizer.momentum < high_momentum)
        return false;
    snprintf(out, COH_MOMENTUM_TEXT,
             "%" PRId64 " groups act like a momentum of %.4g, and "
             "optimizer.momentum is %.4g besides: training may be slow or "
             "diverge; lower it, or write momentum_auto: true",
             groups, coh_momentum_of(config).implied,
             config->optimizer.momentum);
    return true;
}
