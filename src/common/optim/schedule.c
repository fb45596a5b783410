/* schedule.c - see schedule.h. */
#include "common/optim/schedule.h"

#include <math.h>

#include "common/optim/momentum.h"

static const double pi = 3.14159265358979323846;

int64_t coh_schedule_total(const coh_config *config, int64_t epoch_samples,
                           int64_t step_samples)
{
    const int64_t steps = config->train.steps;
    const int64_t epoch_steps = (epoch_samples - 1) / step_samples + 1;
    const double by_epochs = fmin(
        fmax(round(config->train.epochs * (double)epoch_samples), 1), 0x1p61);
    int64_t whole, by_steps = steps % epoch_steps * step_samples;

    if (steps == 0)
        return llround(by_epochs);
    if (__builtin_mul_overflow(steps / epoch_steps, epoch_samples, &whole) ||
        __builtin_add_overflow(by_steps, whole, &by_steps))
        by_steps = INT64_MAX;
    return config->train.epochs > 0 && by_epochs < (double)by_steps
               ? llround(by_epochs)
               : by_steps;
}

coh_schedule coh_schedule_of(const coh_config *config, int64_t epoch_samples,
                             int64_t step_samples)
{
    const double n = (double)epoch_samples;
    const double factor = coh_momentum_of(config).rate_factor;

    return (coh_schedule){
        .kind = (coh_schedule_kind)config->optimizer.schedule,
        .staleness = (coh_staleness_kind)config->optimizer.staleness,
        .rate = factor * config->optimizer.rate,
        .step_factor = config->optimizer.step_factor,
        .final_rate = factor * config->optimizer.final_rate,
        .warmup = config->optimizer.warmup * n,
        .step_every = config->optimizer.step_every * n,
        .total =
            (double)coh_schedule_total(config, epoch_samples, step_samples),
        .step_samples = (double)step_samples,
    };
}

static double rate_after_warmup(const coh_schedule *self, double samples)
{
    switch (self->kind) {
    case COH_SCHEDULE_CONSTANT:
        break;
    case COH_SCHEDULE_STEP:
        return self->rate *
               pow(self->step_factor, floor(samples / self->step_every));
    case COH_SCHEDULE_COSINE: {
        const double span = self->total - self->warmup;
        double progress = span > 0 ? (samples - self->warmup) / span : 0;
        progress = fmin(fmax(progress, 0), 1);
        return self->final_rate +
               (self->rate - self->final_rate) * (1 + cos(pi * progress)) / 2;
    }
    }
    return self->rate;
}

float coh_schedule_rate(const coh_schedule *self, int64_t samples)
{
    const double now = (double)samples;
    double rate = rate_after_warmup(self, now);

    if (now < self->warmup)
        rate *= fmin(1, (now + self->step_samples) / self->warmup);
    return (float)rate;
}

float coh_schedule_late_rate(const coh_schedule *self, int64_t samples,
                             int64_t staleness)
{
    const float rate = coh_schedule_rate(self, samples);

    if (self->staleness == COH_STALENESS_NONE || staleness <= 1)
        return rate;
    return rate / (float)staleness;
}
