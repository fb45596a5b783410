/* test_status.c - codes and the words that travel with them
 * (src/common/status.h). No MPI. */
#include "common/status.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "support/check_run.h"

static coh_err err;

static void setup(void)
{
    err = COH_ERR_INIT;
}

START_TEST(a_failure_says_what_and_returns_its_code)
{
    ck_assert_int_eq(coh_fail(&err, COH_E_DATA, "%d of %s", 3, "x"),
                     COH_E_DATA);
    ck_assert_int_eq(err.status, COH_E_DATA);
    ck_assert_str_eq(err.text, "3 of x");
    ck_assert_int_eq(coh_fail(NULL, COH_E_IO, "unheard"), COH_E_IO);
}
END_TEST

START_TEST(context_stands_before_the_message)
{
    coh_fail(&err, COH_E_IO, "disk full");
    coh_err_context(&err, "rank %d", 3);
    coh_err_context(&err, "checkpoint");
    ck_assert_str_eq(err.text, "checkpoint: rank 3: disk full");
    ck_assert_int_eq(err.status, COH_E_IO);
    coh_err_context(NULL, "nothing");
}
END_TEST

START_TEST(added_faults_are_lines)
{
    coh_err_add(&err, COH_E_CONFIG, "first");
    ck_assert_int_eq(coh_err_add(&err, COH_E_CONFIG, "second"), COH_E_CONFIG);
    ck_assert_str_eq(err.text, "first\nsecond");
}
END_TEST

START_TEST(what_does_not_fit_is_cut_and_said_so)
{
    const char *mark = "\n(more was cut)";

    for (int i = 0; i < 200; i++)
        coh_err_add(&err, COH_E_CONFIG, "fault %d of a long, long list", i);
    ck_assert_int_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_str_eq(err.text + strlen(err.text) - strlen(mark), mark);
    coh_err_context(&err, "job.yaml");
    ck_assert_int_eq(strlen(err.text), sizeof err.text - 1);
    ck_assert_int_eq(strncmp(err.text, "job.yaml: fault 0", 17), 0);
    ck_assert_str_eq(err.text + strlen(err.text) - strlen(mark), mark);
}
END_TEST

/* Scripts depend on these numbers. */
static const struct {
    coh_status status;
    int code;
} codes[] = {
    { COH_OK, 0 },       { COH_PENDING, 0 },    { COH_STOPPED, 5 },
    { COH_E_FAILED, 1 }, { COH_E_NOMEM, 1 },    { COH_E_IO, 1 },
    { COH_E_CONFIG, 2 }, { COH_E_DATA, 3 },     { COH_E_LAUNCH, 4 },
    { COH_E_PEER, 6 },   { COH_E_DIVERGED, 7 },
};
enum { CODES = sizeof codes / sizeof codes[0] };

START_TEST(every_status_has_its_exit_code_and_a_text)
{
    ck_assert_int_eq(coh_status_exit_code(codes[_i].status), codes[_i].code);
    ck_assert_str_ne(coh_status_name(codes[_i].status), "unknown status");
}
END_TEST

START_TEST(a_value_that_is_no_status_is_a_failure)
{
    ck_assert_str_eq(coh_status_name((coh_status)-99), "unknown status");
    ck_assert_int_eq(coh_status_exit_code((coh_status)-99), 1);
}
END_TEST

START_TEST(a_broken_promise_ends_the_process)
{
    COH_ASSERT(1 + 1 == 2);
    (void)freopen("/dev/null", "w", stderr);
    COH_ASSERT(1 + 1 == 3);
}
END_TEST

static Suite *status_suite(void)
{
    Suite *suite = suite_create("status");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, NULL);
    tcase_add_test(core, a_failure_says_what_and_returns_its_code);
    tcase_add_test(core, context_stands_before_the_message);
    tcase_add_test(core, added_faults_are_lines);
    tcase_add_test(core, what_does_not_fit_is_cut_and_said_so);
    tcase_add_loop_test(core, every_status_has_its_exit_code_and_a_text, 0,
                        CODES);
    tcase_add_test(core, a_value_that_is_no_status_is_a_failure);
    tcase_add_test_raise_signal(core, a_broken_promise_ends_the_process,
                                SIGABRT);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(status_suite)
