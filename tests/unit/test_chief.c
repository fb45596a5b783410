/* test_chief.c - reasons, checkpoints and the summary of a run
 * (src/common/chief.h, src/common/journal.h). No MPI. */
#include "common/chief.h"

#include <signal.h>
#include <unistd.h>

#include "support/config_text.h"
#include "support/scratch.h"

static coh_err err;
static coh_config *config;
static coh_model *model;
static coh_plan plan;
static coh_log *log_of;
static coh_signals signals;
static coh_chief *chief;

/* A run of 2 epochs of 100 samples in steps of 25, one group and no server;
 * its console is a file. */
static void begin(const char *more, coh_progress from)
{
    char text[1024];

    snprintf(text, sizeof text, DATA MODEL "train: {batch: 25, epochs: 2}\n%s",
             more);
    config = config_of(text);
    ck_assert_int_eq(coh_model_new(config, &model, &err), COH_OK);
    ck_assert_int_eq(coh_plan_make(config, model, 1, &plan, &err), COH_OK);
    ck_assert_int_eq(coh_log_new('W', 0, false, &log_of, &err), COH_OK);
    const coh_journal_facts facts = { .config = config,
                                      .model = model,
                                      .plan = &plan,
                                      .folder = scratch_folder,
                                      .log = log_of,
                                      .epoch_samples = 100,
                                      .total_samples = 200 };
    const coh_manifest start = { .progress = from,
                                 .parameters = model->parameters,
                                 .parts = 1,
                                 .best_score = -1 };
    ck_assert_int_eq(
        coh_chief_new(&facts, &start, false, &signals, &chief, &err), COH_OK);
}

static void setup(void)
{
    scratch_make();
    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_folder_make(scratch_path("checkpoints"), &err),
                     COH_OK);
    ck_assert_ptr_nonnull(freopen(scratch_path("console"), "w", stderr));
    coh_signals_init(&signals);
}

static void teardown(void)
{
    coh_chief_destroy(&chief);
    coh_log_destroy(&log_of);
    coh_model_destroy(&model);
    coh_config_destroy(&config);
    coh_signals_fini(&signals);
    scratch_remove();
}

static void report(const coh_grant *grant, coh_status status, const char *text)
{
    coh_report r = { .kind = grant->kind,
                     .step = grant->step,
                     .samples = grant->count,
                     .loss = 2.0 * (double)grant->count,
                     .weight = (double)grant->count,
                     .auc = -1,
                     .status = status };
    if (grant->kind != COH_GRANT_TRAIN)
        r.samples = 10, r.weight = 10, r.loss = 5, r.accuracy = 0.75;
    snprintf(r.text, sizeof r.text, "%s", text);
    coh_chief_report(chief, &r);
}

static void ready(void)
{
    const coh_report r = { .kind = COH_REPORT_READY };
    coh_chief_report(chief, &r);
}

/* Save, with the parts gone well or not. */
static void save(coh_status parts)
{
    coh_err why = COH_ERR_INIT;

    ck_assert(coh_chief_must_save(chief));
    ck_assert_int_eq(coh_chief_begin_save(chief, &why), COH_OK);
    if (parts != COH_OK)
        coh_fail(&why, parts, "disk full");
    coh_chief_end_save(chief, parts, &why);
}

/* Do what is granted, `steps` grants or to the end; saves go as `parts`. */
static void work(int steps, coh_status parts)
{
    coh_grant grant;

    while (steps-- > 0 && !coh_chief_is_done(chief)) {
        if (coh_chief_must_save(chief))
            save(parts);
        if (coh_chief_next(chief, 0, &grant) && grant.kind != COH_GRANT_STOP)
            report(&grant, COH_OK, "");
    }
}

static void expect(coh_status status, const char *reason, const char *summary)
{
    ck_assert_int_eq(coh_chief_finish(chief, NULL, NULL, NULL, &err), status);
    ck_assert_str_eq(err.text, reason);
    char *text = scratch_read("summary.json");
    ck_assert_msg(strstr(text, summary) != NULL, "no %s in %s", summary, text);
    free(text);
}

START_TEST(a_run_that_ends_well_says_done)
{
    begin("", (coh_progress){ 0 });
    ready();
    work(100, COH_OK);
    ck_assert(coh_chief_is_done(chief));
    ck_assert(coh_path_exists(scratch_path("checkpoints/step_8/manifest.h5")));
    expect(COH_OK, "", "\"status\": \"done\"");
    char *text = scratch_read("summary.json");
    ck_assert_ptr_nonnull(strstr(text, "\"exit_code\": 0"));
    ck_assert_ptr_nonnull(strstr(text, "\"steps\": 8"));
    ck_assert_ptr_nonnull(strstr(text, "\"samples_seen\": 200"));
    ck_assert_ptr_nonnull(strstr(text, "\"train_loss\": 2"));
    ck_assert_ptr_nonnull(strstr(text, "\"test_accuracy\": 0.75"));
    free(text);
}
END_TEST

START_TEST(a_resumed_run_has_a_train_loss_before_its_first_epoch_ends)
{
    begin("", (coh_progress){ 5, 125, 1, 25 });
    ready();
    work(2, COH_OK);
    coh_chief_fail(chief, COH_STOPPED, "enough");
    work(100, COH_OK);
    expect(COH_STOPPED, "enough", "\"train_loss\": 2,");
}
END_TEST

START_TEST(steps_of_more_than_32_bits_are_told_as_they_are)
{
    begin("", (coh_progress){ (int64_t)1 << 32, 125, 1, 25 });
    ready();
    work(100, COH_OK);
    ck_assert(coh_path_exists(
        scratch_path("checkpoints/step_4294967299/manifest.h5")));
    expect(COH_OK, "", "\"steps\": 4294967299");
    char *lines = scratch_read("metrics.jsonl");
    ck_assert_ptr_nonnull(strstr(lines, "\"step\": 4294967296"));
    ck_assert_ptr_nonnull(strstr(lines, "\"step\": 4294967298"));
    free(lines);
}
END_TEST

START_TEST(a_failure_is_the_reason)
{
    coh_grant grant;

    begin("", (coh_progress){ 0 });
    ready();
    ck_assert(coh_chief_next(chief, 0, &grant));
    report(&grant, COH_E_DATA, "file 7 is damaged");
    coh_chief_fail(chief, COH_E_FAILED, "a later one");
    work(100, COH_OK);
    expect(COH_E_DATA, "file 7 is damaged", "\"exit_code\": 3");
}
END_TEST

START_TEST(a_failure_after_a_signal_is_the_reason)
{
    coh_grant grant;

    begin("", (coh_progress){ 0 });
    ready();
    ck_assert(coh_chief_next(chief, 0, &grant));
    kill(getpid(), SIGTERM);
    coh_chief_watch(chief);
    coh_chief_watch(chief);
    report(&grant, COH_E_DATA, "file 7 is damaged");
    work(100, COH_OK);
    ck_assert(!coh_path_exists(scratch_path("checkpoints/step_1")));
    expect(COH_E_DATA, "file 7 is damaged", "\"exit_code\": 3");
}
END_TEST

START_TEST(a_checkpoint_that_failed_hides_no_later_reason)
{
    begin("checkpoint: {every: 0.25}\n", (coh_progress){ 0 });
    ready();
    work(4, COH_E_IO);
    coh_chief_fail(chief, COH_STOPPED, "signal 15");
    work(100, COH_OK);
    expect(COH_STOPPED, "signal 15", "\"reason\": \"signal 15\"");
}
END_TEST

START_TEST(a_checkpoint_that_failed_is_forgiven_when_the_last_is_written)
{
    begin("checkpoint: {every: 0.25}\n", (coh_progress){ 0 });
    ready();
    work(4, COH_E_IO);
    work(100, COH_OK);
    expect(COH_OK, "", "\"reason\": \"\"");
}
END_TEST

START_TEST(a_last_checkpoint_that_fails_makes_the_run_fail)
{
    begin("", (coh_progress){ 0 });
    ready();
    work(100, COH_E_IO);
    expect(COH_E_IO, "the last checkpoint was not written: disk full",
           "\"exit_code\": 1");
}
END_TEST

/* 0.001 of 100 samples: after every step, not never. */
START_TEST(an_interval_below_a_sample_is_every_step)
{
    begin("checkpoint: {every: 0.001, keep: 100}\n", (coh_progress){ 0 });
    ready();
    work(100, COH_OK);
    ck_assert(coh_path_exists(scratch_path("checkpoints/step_1")));
    ck_assert(coh_path_exists(scratch_path("checkpoints/step_7")));
    expect(COH_OK, "", "step_8");
}
END_TEST

static Suite *chief_suite(void)
{
    Suite *suite = suite_create("chief");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, a_run_that_ends_well_says_done);
    tcase_add_test(core,
                   a_resumed_run_has_a_train_loss_before_its_first_epoch_ends);
    tcase_add_test(core, steps_of_more_than_32_bits_are_told_as_they_are);
    tcase_add_test(core, a_failure_is_the_reason);
    tcase_add_test(core, a_failure_after_a_signal_is_the_reason);
    tcase_add_test(core, a_checkpoint_that_failed_hides_no_later_reason);
    tcase_add_test(
        core, a_checkpoint_that_failed_is_forgiven_when_the_last_is_written);
    tcase_add_test(core, a_last_checkpoint_that_fails_makes_the_run_fail);
    tcase_add_test(core, an_interval_below_a_sample_is_every_step);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(chief_suite)
