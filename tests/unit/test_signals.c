/* test_signals.c - the wish to end (src/common/signals.h). No MPI. */
#include "common/signals.h"

#include <signal.h>
#include <unistd.h>

#include "support/check_run.h"

static const int wishes[] = { SIGTERM, SIGINT, SIGUSR2 };
enum { WISHES = sizeof wishes / sizeof wishes[0] };

START_TEST(a_signal_is_kept_until_it_is_asked_for)
{
    coh_signals signals;

    coh_signals_init(&signals);
    ck_assert_int_eq(coh_signals_poll(&signals), 0);
    kill(getpid(), wishes[_i]);
    ck_assert_int_eq(coh_signals_poll(&signals), wishes[_i]);
    ck_assert_int_eq(coh_signals_poll(&signals), wishes[_i]);
    coh_signals_fini(&signals);
}
END_TEST

START_TEST(the_first_signal_stays)
{
    coh_signals signals;

    coh_signals_init(&signals);
    kill(getpid(), SIGUSR2);
    ck_assert_int_eq(coh_signals_poll(&signals), SIGUSR2);
    kill(getpid(), SIGTERM);
    ck_assert_int_eq(coh_signals_poll(&signals), SIGUSR2);
    ck_assert_int_eq(signals.received, SIGUSR2);
    coh_signals_fini(&signals);
}
END_TEST

START_TEST(sigusr1_is_ignored)
{
    coh_signals signals;

    coh_signals_init(&signals);
    kill(getpid(), SIGUSR1);
    ck_assert_int_eq(coh_signals_poll(&signals), 0);
    coh_signals_fini(&signals);
}
END_TEST

static Suite *signals_suite(void)
{
    Suite *suite = suite_create("signals");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, a_signal_is_kept_until_it_is_asked_for, 0,
                        WISHES);
    tcase_add_test(core, the_first_signal_stays);
    tcase_add_test(core, sigusr1_is_ignored);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(signals_suite)
