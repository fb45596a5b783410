/* test_run_folder.c - who may write where (src/common/run_folder.h). No MPI. */
#include "common/run_folder.h"

#include "support/config_text.h"
#include "support/scratch.h"

static coh_err err;
static coh_config *config;
static coh_run_folder folder;

static coh_config *config_named(const char *name)
{
    char text[512];

    snprintf(text, sizeof text, DATA MODEL "run: {name: %s, out: %s}\n", name,
             scratch_path("runs/deep"));
    return config_of(text);
}

static void setup(void)
{
    scratch_make();
    err = COH_ERR_INIT;
    config = config_named("hep");
}

static void teardown(void)
{
    coh_config_destroy(&config);
    scratch_remove();
}

static coh_status take(const char *resume)
{
    const coh_status status =
        coh_run_folder_choose(config, resume, &folder, &err);
    return status == COH_OK ? coh_run_folder_claim(config, &folder, &err)
                            : status;
}

static void claim(const char *resume)
{
    const coh_status status = take(resume);
    ck_assert_msg(status == COH_OK, "%s", err.text);
}

/* A folder that looks like a checkpoint. */
static void make_checkpoint(const char *name)
{
    char manifest[256];

    snprintf(manifest, sizeof manifest, "%s/manifest.h5", name);
    ck_assert_int_eq(coh_folder_make(scratch_path(name), &err), COH_OK);
    scratch_write(manifest, "");
}

START_TEST(a_new_run_gets_a_folder_with_its_config)
{
    claim(NULL);
    ck_assert_str_eq(folder.path, scratch_path("runs/deep/hep"));
    ck_assert_str_eq(folder.checkpoint, "");
    ck_assert(coh_path_exists(scratch_path("runs/deep/hep/log")));
    ck_assert(coh_path_exists(scratch_path("runs/deep/hep/checkpoints")));
    ck_assert(!coh_path_exists(scratch_path("runs/deep/hep/config.yaml.tmp")));

    coh_config *back = NULL;
    ck_assert_int_eq(coh_config_load(scratch_path("runs/deep/hep/config.yaml"),
                                     NULL, 0, &back, &err),
                     COH_OK);
    ck_assert_str_eq(back->run.name, "hep");
    coh_config_destroy(&back);
}
END_TEST

START_TEST(a_second_run_of_the_name_is_refused_and_changes_nothing)
{
    claim(NULL);
    scratch_write("runs/deep/hep/config.yaml", "mine");
    ck_assert_int_eq(take(NULL), COH_E_CONFIG);
    must_say(&err, scratch_path("runs/deep/hep"));
    must_say(&err, "--resume auto");
    must_say(&err, "run.name");
    char *text = scratch_read("runs/deep/hep/config.yaml");
    ck_assert_str_eq(text, "mine");
    free(text);
}
END_TEST

START_TEST(auto_begins_a_run_that_has_not_begun)
{
    claim("auto");
    ck_assert_str_eq(folder.checkpoint, "");
    ck_assert(coh_path_exists(scratch_path("runs/deep/hep/config.yaml")));
}
END_TEST

START_TEST(auto_goes_on_from_the_newest_checkpoint)
{
    claim(NULL);
    claim("auto");
    ck_assert_str_eq(folder.checkpoint, "");
    make_checkpoint("runs/deep/hep/checkpoints/step_9");
    make_checkpoint("runs/deep/hep/checkpoints/step_10");
    make_checkpoint("runs/deep/hep/checkpoints/step_11.tmp");
    claim("auto");
    ck_assert_str_eq(folder.checkpoint,
                     scratch_path("runs/deep/hep/checkpoints/step_10"));
}
END_TEST

START_TEST(a_run_or_a_checkpoint_can_be_named)
{
    make_checkpoint("other/checkpoints/step_3");
    make_checkpoint("other/checkpoints/step_4");
    claim(scratch_path("other"));
    ck_assert_str_eq(folder.checkpoint,
                     scratch_path("other/checkpoints/step_4"));
    ck_assert_str_eq(folder.path, scratch_path("runs/deep/hep"));
}
END_TEST

START_TEST(another_runs_checkpoint_does_not_take_over_a_folder)
{
    make_checkpoint("other/checkpoints/step_3");
    claim(scratch_path("other/checkpoints/step_3"));
    ck_assert_str_eq(folder.checkpoint,
                     scratch_path("other/checkpoints/step_3"));
    ck_assert_int_eq(take(scratch_path("other/checkpoints/step_3")),
                     COH_E_CONFIG);
    must_say(&err, "exists");
}
END_TEST

START_TEST(a_run_goes_on_in_its_folder_from_its_newest_checkpoint_only)
{
    claim(NULL);
    make_checkpoint("runs/deep/hep/checkpoints/step_9");
    make_checkpoint("runs/deep/hep/checkpoints/step_10");
    claim(scratch_path("runs/deep/hep"));
    claim(scratch_path("runs/deep/hep/checkpoints/step_10"));
    ck_assert_int_eq(take(scratch_path("runs/deep/hep/checkpoints/step_9")),
                     COH_E_CONFIG);
}
END_TEST

START_TEST(a_folder_without_a_checkpoint_is_refused_and_claims_nothing)
{
    ck_assert_int_eq(take(scratch_path("none")), COH_E_CONFIG);
    must_say(&err, "none': no checkpoint there");
    ck_assert(!coh_path_exists(scratch_path("runs")));
}
END_TEST

START_TEST(find_tells_runs_checkpoints_and_others_apart)
{
    char found[PATH_MAX];

    make_checkpoint("run/checkpoints/step_3");
    ck_assert_int_eq(coh_run_folder_find(scratch_path("run"), found, &err),
                     COH_OK);
    ck_assert_str_eq(found, scratch_path("run/checkpoints/step_3"));
    ck_assert_int_eq(coh_run_folder_find(scratch_path("run/checkpoints/step_3"),
                                         found, &err),
                     COH_OK);
    ck_assert_str_eq(found, scratch_path("run/checkpoints/step_3"));
    ck_assert_int_eq(coh_run_folder_find(scratch_path("no"), found, &err),
                     COH_PENDING);
}
END_TEST

START_TEST(a_folder_that_cannot_be_made_says_why)
{
    scratch_write("runs", "a file in the way");
    ck_assert_int_eq(take(NULL), COH_E_IO);
    must_say(&err, scratch_path("runs"));
    must_say(&err, "Not a directory");
}
END_TEST

static Suite *run_folder_suite(void)
{
    Suite *suite = suite_create("run_folder");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, a_new_run_gets_a_folder_with_its_config);
    tcase_add_test(core,
                   a_second_run_of_the_name_is_refused_and_changes_nothing);
    suite_add_tcase(suite, core);

    TCase *resume = tcase_create("resume");
    tcase_add_checked_fixture(resume, setup, teardown);
    tcase_add_test(resume, auto_begins_a_run_that_has_not_begun);
    tcase_add_test(resume, auto_goes_on_from_the_newest_checkpoint);
    tcase_add_test(resume, a_run_or_a_checkpoint_can_be_named);
    tcase_add_test(resume, another_runs_checkpoint_does_not_take_over_a_folder);
    tcase_add_test(resume,
                   a_run_goes_on_in_its_folder_from_its_newest_checkpoint_only);
    tcase_add_test(resume,
                   a_folder_without_a_checkpoint_is_refused_and_claims_nothing);
    tcase_add_test(resume, find_tells_runs_checkpoints_and_others_apart);
    tcase_add_test(resume, a_folder_that_cannot_be_made_says_why);
    suite_add_tcase(suite, resume);
    return suite;
}

CHECK_MAIN(run_folder_suite)
