/* nn_check.h - a network of nn/ against its slow twin.
 *
 * Bounds: log probabilities 1e-4 absolute; each layer's gradient 2e-5 of its
 * largest value. */
#ifndef COH_TESTS_NN_CHECK_H
#define COH_TESTS_NN_CHECK_H

#include "support/nn_nets.h"
#include "support/nn_reference.h"

static const double log_prob_bound = 1e-4, gradient_bound = 2e-5;

/* A layer before the one in question. */
#define BEFORE(n) CONV(.filters = n, .kernel = { 1, 1 }, .bias = true)

/* got[count] against want[count], by the largest of want. */
static inline void check_close(const char *what, const float *got,
                               const double *want, int64_t count, double bound)
{
    double largest = 1e-6;

    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(want[i]));
    for (int64_t i = 0; i < count; i++)
        ck_assert_msg(fabs((double)got[i] - want[i]) <= bound * largest,
                      "%s, element %lld of %lld: %.9g, want %.9g "
                      "(largest %.3g)",
                      what, (long long)i, (long long)count, (double)got[i],
                      want[i], largest);
}

static inline void check_log_probs(const nn_trial *trial, const double *want)
{
    const int64_t n = trial->batch->capacity * trial->model->classes;

    for (int64_t i = 0; i < n; i++)
        ck_assert_double_eq_tol((double)trial->log_probs[i], want[i],
                                log_prob_bound);
}

static inline void check_gradient(const nn_trial *trial, const double *want)
{
    for (int l = 0; l < trial->model->nlayers; l++) {
        const coh_layer *layer = &trial->model->layers[l];
        check_close(layer->spec.name, trial->gradient + layer->weight_first,
                    want + layer->weight_first, layer->weight_count,
                    gradient_bound);
        check_close(layer->spec.name, trial->gradient + layer->bias_first,
                    want + layer->bias_first, layer->bias_count,
                    gradient_bound);
        check_close(layer->spec.name, trial->gradient + layer->statistic_first,
                    want + layer->statistic_first, layer->statistic_count,
                    gradient_bound);
    }
}

/* Case i of a table: every second one on several threads. */
static inline void check_case(const nn_case *cases, int i)
{
    const nn_case *net = &cases[i];
    nn_trial trial = nn_trial_new(net, i % 2 == 0 ? NN_THREADS : 1);
    const int64_t P = trial.model->parameters;
    double *weights = nn_zeros(P), *gradient = nn_zeros(P);
    double *log_probs = nn_zeros(net->batch * trial.model->classes);
    nn_ref ref = { trial.model, trial.batch, weights, gradient, NN_SEED, true };

    for (int64_t k = 0; k < P; k++)
        weights[k] = (double)trial.weights[k];
    nn_trial_train(&trial);
    const double loss = nn_ref_step(&ref, NULL);
    ck_assert_double_eq_tol(trial.sums.loss, loss, 1e-5 * fabs(loss));
    check_gradient(&trial, gradient);

    ref.training = false;
    ref.gradient = NULL;
    nn_trial_infer(&trial);
    const double inferred = nn_ref_step(&ref, log_probs);
    ck_assert_double_eq_tol(trial.sums.loss, inferred, 1e-5 * fabs(inferred));
    check_log_probs(&trial, log_probs);

    free(weights);
    free(gradient);
    free(log_probs);
    nn_trial_end(&trial);
}

/* The slow twin's gradient against nothing but its own loss. */
static inline void check_reference_slope(const nn_case *net)
{
    nn_trial trial = nn_trial_new(net, 1);
    const int64_t P = trial.model->parameters;
    double *weights = nn_zeros(P), *gradient = nn_zeros(P);
    nn_ref ref = { trial.model, trial.batch, weights, gradient, NN_SEED, true };
    const double step = 1e-6;

    for (int64_t i = 0; i < P; i++)
        weights[i] = (double)trial.weights[i];
    nn_ref_step(&ref, NULL);
    ref.gradient = NULL;
    for (int64_t i = 0; i < P; i += 1 + P / 150) {
        const coh_statistic *statistic;
        const double was = weights[i];
        coh_statistics_run(&trial.model->statistics, i, P, &statistic);
        if (statistic != NULL)
            continue; /* what was measured, no gradient */
        weights[i] = was + step;
        const double above = nn_ref_step(&ref, NULL);
        weights[i] = was - step;
        const double slope = (above - nn_ref_step(&ref, NULL)) / (2 * step);
        weights[i] = was;
        ck_assert_double_eq_tol(gradient[i], slope, 1e-6);
    }
    free(weights);
    free(gradient);
    nn_trial_end(&trial);
}

#define COUNT(cases) ((int)(sizeof(cases) / sizeof((cases)[0])))

#endif
