/* test_rule.c - update rules against a plain loop in double precision
 * (src/common/optim/rule.h). No MPI.
 *
 * Tolerance: a float32 update rounds a few times, so after T updates a weight
 * of size about 1 may be off by some T x 6e-8; 1e-5 is allowed for 50.
 */
#include "common/optim/rule.h"

#include <math.h>

#include "common/rng.h"
#include "support/config_text.h"

enum { N = 2501, UPDATES = 50 }; /* more than two pieces of LAMB's */
static const double tolerance = 1e-5;

static float w[N], m[N], v[N], gradient[N];
static double wd[N], md[N], vd[N];

static void draw(float out[N], uint32_t epoch)
{
    const coh_rng_key key = coh_rng_key_of(1, 77);

    for (int i = 0; i < N; i++) {
        float normal[4];
        coh_rng_normals(key, epoch, (uint64_t)i, 0, normal);
        out[i] = normal[0];
    }
}

static void setup(void)
{
    draw(w, 1000);
    for (int i = 0; i < N; i++) {
        wd[i] = (double)w[i];
        m[i] = v[i] = 0;
        md[i] = vd[i] = 0;
    }
}

static void sgd_step(const coh_rule *rule, double rate, double scale)
{
    for (int i = 0; i < N; i++) {
        const double g =
            (double)gradient[i] * scale + (double)rule->weight_decay * wd[i];
        md[i] = (double)rule->momentum * md[i] + g;
        wd[i] -= rate * md[i];
    }
}

/* With the velocity kept at the point looked ahead to, as in the paper; the
 * weights of the rule are that point: w' = w - r mu v. */
static void nesterov_step(const coh_rule *rule, double rate, double scale)
{
    const double mu = (double)rule->momentum;

    for (int i = 0; i < N; i++) {
        const double g =
            (double)gradient[i] * scale + (double)rule->weight_decay * wd[i];
        const double behind = wd[i] + rate * mu * md[i];
        md[i] = mu * md[i] + g;
        wd[i] = behind - rate * md[i] - rate * mu * md[i];
    }
}

static void adam_step(const coh_rule *rule, double rate, double scale, int t)
{
    const double b1 = (double)rule->beta1, b2 = (double)rule->beta2;
    const bool is_w = rule->kind == COH_RULE_ADAMW;
    const double decay = (double)rule->weight_decay;

    for (int i = 0; i < N; i++) {
        const double g =
            (double)gradient[i] * scale + (is_w ? 0 : decay * wd[i]);
        if (is_w)
            wd[i] -= rate * decay * wd[i];
        md[i] = b1 * md[i] + (1 - b1) * g;
        vd[i] = b2 * vd[i] + (1 - b2) * g * g;
        wd[i] -= rate * (md[i] / (1 - pow(b1, t))) /
                 (sqrt(vd[i] / (1 - pow(b2, t))) + (double)rule->epsilon);
    }
}

static double norm(const double x[N])
{
    double sum = 0;

    for (int i = 0; i < N; i++)
        sum += x[i] * x[i];
    return sqrt(sum);
}

static void lars_step(const coh_rule *rule, double rate, double scale)
{
    const double decay = (double)rule->weight_decay;
    double d[N];

    for (int i = 0; i < N; i++)
        d[i] = (double)gradient[i] * scale;
    const double local =
        (double)rule->trust * norm(wd) / (norm(d) + decay * norm(wd));
    for (int i = 0; i < N; i++) {
        md[i] = (double)rule->momentum * md[i] +
                rate * local * (d[i] + decay * wd[i]);
        wd[i] -= md[i];
    }
}

static void lamb_step(const coh_rule *rule, double rate, double scale, int t)
{
    const double b1 = (double)rule->beta1, b2 = (double)rule->beta2;
    double u[N];

    for (int i = 0; i < N; i++) {
        const double g = (double)gradient[i] * scale;
        md[i] = b1 * md[i] + (1 - b1) * g;
        vd[i] = b2 * vd[i] + (1 - b2) * g * g;
        u[i] = (md[i] / (1 - pow(b1, t))) /
                   (sqrt(vd[i] / (1 - pow(b2, t))) + (double)rule->epsilon) +
               (double)rule->weight_decay * wd[i];
    }
    const double local = rate * norm(wd) / norm(u);
    for (int i = 0; i < N; i++)
        wd[i] -= local * u[i];
}

static void reference_step(const coh_rule *rule, double rate, double scale,
                           int t)
{
    switch (rule->kind) {
    case COH_RULE_SGD:
    case COH_RULE_DCASGD:
    case COH_RULE_DCASGD_A:
        sgd_step(rule, rate, scale);
        return;
    case COH_RULE_NESTEROV:
        nesterov_step(rule, rate, scale);
        return;
    case COH_RULE_ADAM:
    case COH_RULE_ADAMW:
        adam_step(rule, rate, scale, t);
        return;
    case COH_RULE_LARS:
        lars_step(rule, rate, scale);
        return;
    case COH_RULE_LAMB:
        lamb_step(rule, rate, scale, t);
        return;
    case COH_RULE_ADD:
    case COH_RULE_ELASTIC:
        return; /* test_local.c */
    }
}

static const coh_rule rules[] = {
    { .kind = COH_RULE_SGD },
    { .kind = COH_RULE_SGD, .momentum = 0.9f },
    { .kind = COH_RULE_SGD, .momentum = 0.9f, .weight_decay = 5e-4f },
    { .kind = COH_RULE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f },
    { .kind = COH_RULE_ADAM,
      .beta1 = 0.5f,
      .beta2 = 0.9f,
      .epsilon = 1e-3f,
      .weight_decay = 1e-2f },
    { .kind = COH_RULE_ADAM, .epsilon = 1e-6f },
    { .kind = COH_RULE_NESTEROV },
    { .kind = COH_RULE_NESTEROV, .momentum = 0.9f, .weight_decay = 5e-4f },
    { .kind = COH_RULE_ADAMW,
      .beta1 = 0.9f,
      .beta2 = 0.999f,
      .epsilon = 1e-8f,
      .weight_decay = 0.5f },
    { .kind = COH_RULE_ADAMW, .beta1 = 0.5f, .beta2 = 0.9f, .epsilon = 1e-3f },
    { .kind = COH_RULE_DCASGD,
      .momentum = 0.9f,
      .weight_decay = 5e-4f,
      .compensation = 4 },
    /* These measure what they are given: */
    { .kind = COH_RULE_LARS, .momentum = 0.9f, .trust = 0.5f },
    { .kind = COH_RULE_LARS,
      .momentum = 0.5f,
      .trust = 2,
      .weight_decay = 0.25f },
    { .kind = COH_RULE_LAMB, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-6f },
    { .kind = COH_RULE_LAMB,
      .beta1 = 0.5f,
      .beta2 = 0.9f,
      .epsilon = 1e-3f,
      .weight_decay = 0.25f },
};
enum { RULES = sizeof rules / sizeof rules[0], ELEMENTWISE = RULES - 4 };

START_TEST(a_rule_follows_its_formula)
{
    const coh_rule *rule = &rules[_i];
    float *const slots[COH_SLOTS_MAX] = { m, v };
    const float rate = 0.01f, scale = 0.125f;

    for (int t = 1; t <= UPDATES; t++) {
        draw(gradient, (uint32_t)t);
        coh_rule_apply(rule, rate, t, N, gradient, scale, w, slots);
        reference_step(rule, (double)rate, (double)scale, t);
    }
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)w[i], wd[i], tolerance);
}
END_TEST

/* Powers of two: exact in float32. w = 1 - 0.5 (2 x 0.5 + 0.25 x 1). */
START_TEST(weight_decay_is_added_to_the_mean_gradient)
{
    const coh_rule rule = { .kind = COH_RULE_SGD,
                            .momentum = 0.5f,
                            .weight_decay = 0.25f };
    float one = 1, slot = 0;
    const float two = 2;
    float *const slots[COH_SLOTS_MAX] = { &slot, NULL };

    coh_rule_apply(&rule, 0.5f, 1, 1, &two, 0.5f, &one, slots);
    ck_assert_float_eq(one, 0.375f);
    ck_assert_float_eq(slot, 1.25f);
}
END_TEST

/* The same powers of two. */
START_TEST(without_momentum_its_slot_is_left_alone)
{
    const coh_rule rule = { .kind = _i == 0 ? COH_RULE_SGD : COH_RULE_NESTEROV,
                            .weight_decay = 0.25f };
    float one = 1, slot = 7;
    const float two = 2;
    float *const slots[COH_SLOTS_MAX] = { &slot, NULL };

    coh_rule_apply(&rule, 0.5f, 1, 1, &two, 0.5f, &one, slots);
    ck_assert_float_eq(one, 0.375f);
    ck_assert_float_eq(slot, 7);
}
END_TEST

/* The first update of Adam is the rate against the sign of the gradient. */
START_TEST(the_first_update_of_adam_is_the_rate)
{
    const coh_rule rule = rules[3];
    float *const slots[COH_SLOTS_MAX] = { m, v };
    float before[N];

    memcpy(before, w, sizeof w);
    draw(gradient, 1);
    coh_rule_apply(&rule, 0.01f, 1, N, gradient, 1, w, slots);
    for (int i = 0; i < N; i++)
        ck_assert_float_eq_tol(w[i] - before[i],
                               gradient[i] > 0 ? -0.01f : 0.01f, 1e-6f);
}
END_TEST

/* Powers of two: exact in float32. v = 0.5 x 4 + 1, w = 8 - 2 (1 + 0.5 x 3). */
START_TEST(nesterov_steps_from_where_the_momentum_leads)
{
    const coh_rule rule = { .kind = COH_RULE_NESTEROV, .momentum = 0.5f };
    float w1 = 8, slot = 4;
    const float one = 1;
    float *const slots[COH_SLOTS_MAX] = { &slot, NULL };

    coh_rule_apply(&rule, 2, 1, 1, &one, 1, &w1, slots);
    ck_assert_float_eq(slot, 3);
    ck_assert_float_eq(w1, 3);
}
END_TEST

/* Without a gradient only decay is left, and the moments see none of it. */
START_TEST(adamw_decays_the_weights_apart_from_the_moments)
{
    const coh_rule rule = { .kind = COH_RULE_ADAMW,
                            .beta1 = 0.9f,
                            .beta2 = 0.999f,
                            .epsilon = 1e-8f,
                            .weight_decay = 0.25f };
    float w1 = 8, m1 = 0, v1 = 0;
    const float zero = 0;
    float *const slots[COH_SLOTS_MAX] = { &m1, &v1 };

    coh_rule_apply(&rule, 0.5f, 1, 1, &zero, 1, &w1, slots);
    ck_assert_float_eq(w1, 7);
    ck_assert_float_eq(m1, 0);
    ck_assert_float_eq(v1, 0);
}
END_TEST

/* Powers of two: exact in float32. |w| = 8, |d| = 2: l = 0.5 x 8 / 2 = 2. */
START_TEST(lars_measures_the_gradient_by_the_weights)
{
    const coh_rule rule = { .kind = COH_RULE_LARS, .trust = 0.5f };
    float two[2] = { 8, 0 }, slot[2] = { 0 };
    const float d[2] = { 0, 4 };
    float *const slots[COH_SLOTS_MAX] = { slot, NULL };

    coh_rule_apply(&rule, 0.25f, 1, 2, d, 0.5f, two, slots);
    ck_assert_float_eq(two[0], 8);
    ck_assert_float_eq(two[1], -1); /* - 0.25 x 2 x 2 */
    ck_assert_float_eq(slot[1], 1); /* the rate is inside */
}
END_TEST

/* However large the gradient: |update| = rate |w|. */
START_TEST(an_update_of_lamb_is_as_long_as_the_rate_says)
{
    const coh_rule rule = rules[RULES - 2];
    float *const slots[COH_SLOTS_MAX] = { m, v };
    double before[N], change[N];

    memcpy(before, wd, sizeof wd);
    draw(gradient, 1);
    coh_rule_apply(&rule, 0.125f, 1, N, gradient, 1000, w, slots);
    for (int i = 0; i < N; i++)
        change[i] = (double)w[i] - before[i];
    ck_assert_double_eq_tol(norm(change), 0.125 * norm(before), 1e-4);
}
END_TEST

/* Nothing to measure by: as without the measure. */
START_TEST(a_layer_of_zeros_still_moves)
{
    const coh_rule lars = { .kind = COH_RULE_LARS, .trust = 0.5f };
    const coh_rule lamb = rules[RULES - 2];
    const float d = 2;
    float zero = 0, slot[2] = { 0 };
    float *const slots[COH_SLOTS_MAX] = { &slot[0], &slot[1] };

    coh_rule_apply(&lars, 0.25f, 1, 1, &d, 1, &zero, slots);
    ck_assert_float_eq(zero, -0.5f);
    zero = slot[0] = 0;
    coh_rule_apply(&lamb, 0.25f, 1, 1, &d, 1, &zero, slots);
    ck_assert_float_eq_tol(zero, -0.25f, 1e-6f);
    zero = slot[0] = slot[1] = 0;
    const float none = 0;
    coh_rule_apply(&lars, 0.25f, 1, 1, &none, 1, &zero, slots);
    coh_rule_apply(&lamb, 0.25f, 1, 1, &none, 1, &zero, slots);
    ck_assert_float_eq(zero, 0);
}
END_TEST

/* The vector may be cut anywhere: each element's bits are its own. */
START_TEST(an_update_in_pieces_gives_the_same_bits)
{
    const coh_rule *rule = &rules[_i];
    float w2[N], m2[N] = { 0 }, v2[N] = { 0 };
    float *const all[COH_SLOTS_MAX] = { m, v };
    const int cuts[] = { 0, 1, 18, 35, 1000, N };

    memcpy(w2, w, sizeof w);
    for (int t = 1; t <= 3; t++) {
        draw(gradient, (uint32_t)t);
        coh_rule_apply(rule, 0.1f, t, N, gradient, 0.3f, w, all);
        for (int c = 0; c < 5; c++) {
            const int at = cuts[c];
            float *const slots[COH_SLOTS_MAX] = { m2 + at, v2 + at };
            coh_rule_apply(rule, 0.1f, t, cuts[c + 1] - at, gradient + at, 0.3f,
                           w2 + at, slots);
        }
    }
    ck_assert_mem_eq(w, w2, sizeof w);
    ck_assert_mem_eq(m, m2, sizeof m);
    ck_assert_mem_eq(v, v2, sizeof v);
}
END_TEST

/* --- A delay ------------------------------------------------------------ */

static const coh_rule late_rules[] = {
    { .kind = COH_RULE_DCASGD, .compensation = 0.5f },
    { .kind = COH_RULE_DCASGD,
      .compensation = 2,
      .momentum = 0.9f,
      .weight_decay = 5e-4f },
    { .kind = COH_RULE_DCASGD_A,
      .compensation = 2,
      .beta2 = 0.95f,
      .epsilon = 1e-7f },
    { .kind = COH_RULE_DCASGD_A,
      .compensation = 0.25f,
      .beta2 = 0,
      .epsilon = 1e-3f,
      .momentum = 0.5f,
      .weight_decay = 5e-4f },
};
enum { LATE_RULES = sizeof late_rules / sizeof late_rules[0] };

static void late_step(const coh_rule *rule, double rate, double scale,
                      const float *seen)
{
    for (int i = 0; i < N; i++) {
        const double d = (double)gradient[i] * scale;
        double lambda = (double)rule->compensation;
        if (rule->kind == COH_RULE_DCASGD_A) {
            vd[i] =
                (double)rule->beta2 * vd[i] + (1 - (double)rule->beta2) * d * d;
            lambda /= sqrt(vd[i] + (double)rule->epsilon);
        }
        const double g = d + lambda * d * d * (wd[i] - (double)seen[i]) +
                         (double)rule->weight_decay * wd[i];
        md[i] = (double)rule->momentum * md[i] + g;
        wd[i] -= rate * md[i];
    }
}

/* The weights that a gradient comes from are those of three updates before. */
START_TEST(a_late_gradient_is_corrected_as_the_formula_says)
{
    enum { DELAY = 3 };
    static float seen[DELAY][N];
    const coh_rule *rule = &late_rules[_i];
    float *const slots[COH_SLOTS_MAX] = { m, v };
    const float rate = 0.05f, scale = 0.125f;

    for (int k = 0; k < DELAY; k++)
        memcpy(seen[k], w, sizeof w);
    for (int t = 1; t <= UPDATES; t++) {
        draw(gradient, (uint32_t)t);
        late_step(rule, (double)rate, (double)scale, seen[t % DELAY]);
        coh_rule_apply_late(rule, rate, t, N, gradient, scale, seen[t % DELAY],
                            w, slots);
        memcpy(seen[t % DELAY], w, sizeof w);
    }
    for (int i = 0; i < N; i++)
        ck_assert_double_eq_tol((double)w[i], wd[i], 2 * tolerance);
}
END_TEST

/* Powers of two: exact in float32. w = 4 - 0.25 (2 + 0.5 x 2 x 2 x (4 - 1)). */
START_TEST(what_changed_since_is_weighed_by_the_gradient_squared)
{
    const coh_rule rule = { .kind = COH_RULE_DCASGD, .compensation = 0.5f };
    const float d = 8, seen = 1;
    float four = 4, slot = 7;
    float *const slots[COH_SLOTS_MAX] = { &slot, NULL };

    coh_rule_apply_late(&rule, 0.25f, 1, 1, &d, 0.25f, &seen, &four, slots);
    ck_assert_float_eq(four, 2);
    ck_assert_float_eq(slot, 7);
}
END_TEST

/* To the same bits, whatever lambda; and with lambda 0 whatever the delay. */
START_TEST(without_a_delay_it_is_sgd)
{
    const coh_rule sgd = { .kind = COH_RULE_SGD,
                           .momentum = 0.5f,
                           .weight_decay = 5e-4f };
    coh_rule rule = sgd;
    static float w2[N], m2[N], seen[N];
    float *const slots[COH_SLOTS_MAX] = { m, v };
    float *const slots2[COH_SLOTS_MAX] = { m2, NULL };

    rule.kind = _i == 2 ? COH_RULE_DCASGD_A : COH_RULE_DCASGD;
    rule.epsilon = 1e-7f;
    rule.compensation = _i == 0 ? 0 : 4;
    memcpy(w2, w, sizeof w);
    memset(m2, 0, sizeof m2);
    for (int t = 1; t <= 3; t++) {
        draw(gradient, (uint32_t)t);
        memcpy(seen, _i == 0 ? gradient : w, sizeof seen);
        coh_rule_apply_late(&rule, 0.1f, t, N, gradient, 0.3f, seen, w, slots);
        coh_rule_apply(&sgd, 0.1f, t, N, gradient, 0.3f, w2, slots2);
    }
    ck_assert_mem_eq(w, w2, sizeof w);
    ck_assert_mem_eq(m, m2, sizeof m);
}
END_TEST

/* Powers of two: exact in float32. w = 0.75 + 0.25 x 8 / 4. */
START_TEST(an_average_moves_towards_the_mean_of_what_was_measured)
{
    const float eight = 8;
    float one = 1;

    coh_rule_average(0.75f, 1, &eight, 0.25f, &one);
    ck_assert_float_eq(one, 1.25f);
}
END_TEST

START_TEST(a_rule_is_what_the_config_says)
{
    coh_config *config = config_of(
        DATA MODEL "optimizer: {rule: adam, beta1: 0.5, beta2: 0.25, epsilon: "
                   "0.125, weight_decay: 2, momentum: 0.75, trust: 4, "
                   "compensation: 8}\n");
    const coh_rule rule = coh_rule_of(config);

    ck_assert_int_eq(rule.kind, COH_RULE_ADAM);
    ck_assert_float_eq(rule.beta1, 0.5f);
    ck_assert_float_eq(rule.beta2, 0.25f);
    ck_assert_float_eq(rule.epsilon, 0.125f);
    ck_assert_float_eq(rule.weight_decay, 2);
    ck_assert_float_eq(rule.momentum, 0.75f);
    ck_assert_float_eq(rule.trust, 4);
    ck_assert_float_eq(rule.compensation, 8);
    ck_assert_int_eq(coh_rule_slots(&rule), 2);
    ck_assert_int_eq(coh_rule_slots(&rules[0]), 1);
    ck_assert_int_eq(coh_rule_slots(&rules[RULES - 4]), 1);
    ck_assert_int_eq(coh_rule_slots(&rules[RULES - 1]), 2);
    ck_assert_int_eq(coh_rule_slots(&late_rules[0]), 1);
    ck_assert_int_eq(coh_rule_slots(&late_rules[2]), 2);
    ck_assert(!coh_rule_takes_layers(config));
    coh_config_destroy(&config);
}
END_TEST

static Suite *rule_suite(void)
{
    Suite *suite = suite_create("rule");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_loop_test(core, a_rule_follows_its_formula, 0, RULES);
    tcase_add_test(core, weight_decay_is_added_to_the_mean_gradient);
    tcase_add_loop_test(core, without_momentum_its_slot_is_left_alone, 0, 2);
    tcase_add_test(core, the_first_update_of_adam_is_the_rate);
    tcase_add_test(core, nesterov_steps_from_where_the_momentum_leads);
    tcase_add_test(core, adamw_decays_the_weights_apart_from_the_moments);
    tcase_add_loop_test(core, an_update_in_pieces_gives_the_same_bits, 0,
                        ELEMENTWISE);
    tcase_add_test(core, lars_measures_the_gradient_by_the_weights);
    tcase_add_test(core, an_update_of_lamb_is_as_long_as_the_rate_says);
    tcase_add_test(core, a_layer_of_zeros_still_moves);
    tcase_add_loop_test(core, a_late_gradient_is_corrected_as_the_formula_says,
                        0, LATE_RULES);
    tcase_add_test(core, what_changed_since_is_weighed_by_the_gradient_squared);
    tcase_add_loop_test(core, without_a_delay_it_is_sgd, 0, 3);
    tcase_add_test(core,
                   an_average_moves_towards_the_mean_of_what_was_measured);
    tcase_add_test(core, a_rule_is_what_the_config_says);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(rule_suite)
