/* test_log.c - who reads which line (src/common/log.h). No MPI. */
#include "common/log.h"

#include <regex.h>
#include <unistd.h>

#include "support/scratch.h"

static coh_err err;
static coh_log *log_of;
static int kept_out, kept_err;

/* The console of a test is two files. */
static void setup(void)
{
    scratch_make();
    err = COH_ERR_INIT;
    fflush(stdout);
    kept_out = dup(STDOUT_FILENO);
    kept_err = dup(STDERR_FILENO);
    ck_assert_ptr_nonnull(freopen(scratch_path("out"), "w", stdout));
    ck_assert_ptr_nonnull(freopen(scratch_path("err"), "w", stderr));
}

static void teardown(void)
{
    coh_log_destroy(&log_of);
    fflush(stdout);
    fflush(stderr);
    dup2(kept_out, STDOUT_FILENO);
    dup2(kept_err, STDERR_FILENO);
    close(kept_out);
    close(kept_err);
    scratch_remove();
}

static void begin(char role, int index, bool is_chief)
{
    ck_assert_int_eq(coh_log_new(role, index, is_chief, &log_of, &err), COH_OK);
}

static bool has(const char *file, const char *part)
{
    fflush(stdout);
    fflush(stderr);
    char *text = scratch_read(file);
    const bool is_there = text != NULL && strstr(text, part) != NULL;

    free(text);
    return is_there;
}

static void write_all(void)
{
    coh_log_write(log_of, COH_LOG_ERROR, "an error");
    coh_log_write(log_of, COH_LOG_WARN, "a warning");
    coh_log_write(log_of, COH_LOG_INFO, "some news of %d", 7);
    coh_log_write(log_of, COH_LOG_DEBUG, "a detail");
}

START_TEST(a_line_has_time_role_level_and_text)
{
    regex_t form;

    ck_assert_int_eq(
        regcomp(&form,
                "^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}"
                "\\.[0-9]{3} S12 warn  100% of x\n$",
                REG_EXTENDED | REG_NOSUB),
        0);
    begin('S', 12, false);
    coh_log_write(log_of, COH_LOG_WARN, "%d%% of %s", 100, "x");
    fflush(stderr);
    char *text = scratch_read("err");
    const int found = regexec(&form, text, 0, NULL, 0);
    free(text);
    regfree(&form);
    ck_assert_int_eq(found, 0);
}
END_TEST

START_TEST(errors_and_warnings_of_any_rank_reach_the_console)
{
    begin('W', 3, _i == 1);
    write_all();
    ck_assert(has("err", "an error") && has("err", "a warning"));
    ck_assert(!has("err", "news") && !has("err", "detail"));
    ck_assert(!has("out", "an error") && !has("out", "detail"));
    ck_assert_int_eq(has("out", "some news of 7"), _i == 1);
}
END_TEST

START_TEST(the_file_holds_every_level_from_the_opening_on)
{
    begin('W', 3, false);
    coh_log_write(log_of, COH_LOG_ERROR, "too early");
    coh_log_open(log_of, scratch_folder);
    ck_assert(!coh_path_exists(scratch_path("W3.log"))); /* nothing to say */
    write_all();
    ck_assert(has("W3.log", "an error") && has("W3.log", "a warning"));
    ck_assert(has("W3.log", "some news of 7") && has("W3.log", "a detail"));
    ck_assert(!has("W3.log", "too early"));
}
END_TEST

START_TEST(a_log_that_is_there_is_added_to)
{
    scratch_write("W3.log", "before\n");
    begin('W', 3, false);
    coh_log_open(log_of, scratch_folder);
    write_all();
    ck_assert(has("W3.log", "before\n") && has("W3.log", "an error"));
}
END_TEST

START_TEST(a_file_that_cannot_be_written_is_said_once)
{
    begin('W', 3, false);
    coh_log_open(log_of, scratch_path("none"));
    coh_log_write(log_of, COH_LOG_DEBUG, "first");
    ck_assert(has("err", "cannot write"));
    ck_assert(has("err", "none/W3.log': No such file"));
    ck_assert_ptr_nonnull(freopen(scratch_path("err"), "w", stderr));
    coh_log_write(log_of, COH_LOG_DEBUG, "second");
    ck_assert(!has("err", "cannot write"));
}
END_TEST

START_TEST(a_very_long_line_is_cut_and_still_a_line)
{
    static char text[20000];

    memset(text, 'x', sizeof text - 1);
    begin('W', 3, false);
    coh_log_open(log_of, scratch_folder);
    coh_log_write(log_of, COH_LOG_INFO, "%s", text);
    char *line = scratch_read("W3.log");
    ck_assert_int_lt(strlen(line), 8192);
    ck_assert_int_eq(line[strlen(line) - 1], '\n');
    free(line);
}
END_TEST

START_TEST(progress_is_the_chiefs_and_a_whole_line_off_the_terminal)
{
    begin('W', 0, _i == 1);
    coh_log_progress(log_of, "half way");
    ck_assert_int_eq(has("out", " info  half way\n"), _i == 1);
    ck_assert(!has("out", "\r"));
}
END_TEST

static Suite *log_suite(void)
{
    Suite *suite = suite_create("log");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, a_line_has_time_role_level_and_text);
    tcase_add_loop_test(core, errors_and_warnings_of_any_rank_reach_the_console,
                        0, 2);
    tcase_add_test(core, the_file_holds_every_level_from_the_opening_on);
    tcase_add_test(core, a_log_that_is_there_is_added_to);
    tcase_add_test(core, a_file_that_cannot_be_written_is_said_once);
    tcase_add_test(core, a_very_long_line_is_cut_and_still_a_line);
    tcase_add_loop_test(
        core, progress_is_the_chiefs_and_a_whole_line_off_the_terminal, 0, 2);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(log_suite)
