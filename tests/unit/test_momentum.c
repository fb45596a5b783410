/* test_momentum.c - momentum by the number of groups
 * (src/common/optim/momentum.h). No MPI. */
#include "common/optim/momentum.h"

#include "common/optim/rule.h"
#include "support/config_text.h"

static char text[COH_MOMENTUM_TEXT];

static coh_config *job(int groups, const char *optimizer)
{
    char yaml[512];

    snprintf(yaml, sizeof yaml,
             DATA MODEL "groups: %d\nservers: 1\nexchange: {placement: "
                        "layer}\noptimizer: {%s}\n",
             groups, optimizer);
    return config_of(yaml);
}

/* groups, mu0; implied, mu, what the rate is multiplied by. */
static const struct {
    int groups;
    double given, implied, value, factor;
} cases[] = {
    { 1, 0.9, 0, 0.9, 1 },        { 2, 0.9, 0.5, 0.4, 6 },
    { 4, 0.9, 0.75, 0.15, 8.5 },  { 8, 0.9, 0.875, 0.025, 9.75 },
    { 10, 0.9, 0.9, 0, 10 },      { 1000, 0.9, 0.999, 0, 10 },
    { 2, 0.25, 0.5, 0, 4.0 / 3 }, { 3, 0, 2.0 / 3, 0, 1 },
    { 2, 0.99, 0.5, 0.49, 10 }, /* 51, capped */
};
enum { CASES = sizeof cases / sizeof cases[0] };

START_TEST(auto_takes_the_implied_momentum_off_and_raises_the_rate)
{
    char optimizer[128];
    snprintf(optimizer, sizeof optimizer, "momentum: %g, momentum_auto: true",
             cases[_i].given);
    coh_config *config = job(cases[_i].groups, optimizer);
    const coh_momentum it = coh_momentum_of(config);

    ck_assert_double_eq_tol(it.implied, cases[_i].implied, 1e-12);
    ck_assert_double_eq_tol(it.value, cases[_i].value, 1e-12);
    ck_assert_double_eq_tol(it.rate_factor, cases[_i].factor, 1e-9);
    ck_assert_float_eq(coh_rule_of(config).momentum, (float)it.value);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(without_auto_nothing_changes)
{
    coh_config *config = job(8, "momentum: 0.9");
    const coh_momentum it = coh_momentum_of(config);

    ck_assert_double_eq(it.value, 0.9);
    ck_assert_double_eq(it.rate_factor, 1);
    ck_assert_double_eq(it.implied, 0.875);
    ck_assert(!coh_momentum_describe(config, text));
    coh_config_destroy(&config);
}
END_TEST

START_TEST(the_cap_is_configured)
{
    coh_config *config = job(4, "momentum_auto: true, momentum_auto_factor: 2");
    const coh_momentum it = coh_momentum_of(config);

    ck_assert_double_eq_tol(it.value, 0.15, 1e-12);
    ck_assert_double_eq(it.rate_factor, 2);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(auto_tells_what_it_made)
{
    coh_config *config = job(4, "rule: nesterov, momentum_auto: true");

    ck_assert(coh_momentum_describe(config, text));
    ck_assert_str_eq(text, "momentum 0.15 instead of 0.9, and every rate x "
                           "8.5: 4 groups act like a momentum of 0.75 "
                           "(optimizer.momentum_auto)");
    ck_assert(!coh_momentum_warn(config, text));
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    int groups;
    const char *optimizer;
    bool warns;
} warnings[] = {
    { 4, "momentum: 0.9", true },
    { 9, "rule: nesterov, momentum: 0.5", true },
    { 4, "rule: lars", true },
    { 4, "rule: dcasgd", true },
    { 4, "rule: dcasgd_a", true },
    { 3, "momentum: 0.9", false },
    { 4, "momentum: 0.4", false },
    { 4, "rule: adam, momentum: 0.9", false },
    { 4, "momentum: 0.9, momentum_auto: true", false },
};
enum { WARNINGS = sizeof warnings / sizeof warnings[0] };

START_TEST(many_groups_with_a_high_momentum_are_warned_of)
{
    coh_config *config = job(warnings[_i].groups, warnings[_i].optimizer);

    ck_assert_int_eq(coh_momentum_warn(config, text), warnings[_i].warns);
    if (_i == 0)
        ck_assert_str_eq(text, "4 groups act like a momentum of 0.75, and "
                               "optimizer.momentum is 0.9 besides: training "
                               "may be slow or diverge; lower it, or write "
                               "momentum_auto: true");
    coh_config_destroy(&config);
}
END_TEST

/* Each group has momentum and weights of its own. */
START_TEST(groups_with_local_steps_imply_no_momentum)
{
    coh_config *config = config_of(DATA MODEL "groups: 8\nservers: 1\n"
                                              "exchange: {every: 4}\n");

    ck_assert_double_eq(coh_momentum_of(config).implied, 0);
    ck_assert(!coh_momentum_warn(config, text));
    coh_config_destroy(&config);
}
END_TEST

static Suite *momentum_suite(void)
{
    Suite *suite = suite_create("momentum");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core,
                        auto_takes_the_implied_momentum_off_and_raises_the_rate,
                        0, CASES);
    tcase_add_test(core, without_auto_nothing_changes);
    tcase_add_test(core, the_cap_is_configured);
    tcase_add_test(core, auto_tells_what_it_made);
    tcase_add_loop_test(core, many_groups_with_a_high_momentum_are_warned_of, 0,
                        WARNINGS);
    tcase_add_test(core, groups_with_local_steps_imply_no_momentum);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(momentum_suite)
