/* test_files.c - paths, folders, renames (src/common/files.h). No MPI. */
#include "common/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

static coh_err err;

static void setup(void)
{
    scratch_make();
    err = COH_ERR_INIT;
}

START_TEST(a_path_that_is_too_long_is_refused)
{
    char path[PATH_MAX];

    ck_assert_int_eq(coh_path(path, &err, "%s/%d", "a", 7), COH_OK);
    ck_assert_str_eq(path, "a/7");
    ck_assert_int_eq(coh_path(path, &err, "%*d", PATH_MAX - 1, 1), COH_OK);
    ck_assert_int_eq(coh_path(path, &err, "%*d", PATH_MAX, 1), COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "path too long"));
}
END_TEST

START_TEST(a_folder_is_made_with_those_above_it)
{
    const char *path = scratch_path("a/b//c/");

    ck_assert_int_eq(coh_folder_make(path, &err), COH_OK);
    ck_assert(coh_path_exists(scratch_path("a/b/c")));
    ck_assert_int_eq(coh_folder_make(path, &err), COH_OK); /* it is there */
}
END_TEST

START_TEST(a_relative_folder_is_made_where_we_are)
{
    ck_assert_int_eq(chdir(scratch_folder), 0);
    ck_assert_int_eq(coh_folder_make("x/y", &err), COH_OK);
    ck_assert(coh_path_exists(scratch_path("x/y")));
    ck_assert_int_eq(chdir("/"), 0);
}
END_TEST

static const char *const blocked[] = { "file", "file/x", "file/x/y" };

START_TEST(a_file_in_the_way_of_a_folder_is_named)
{
    scratch_write("file", "");
    ck_assert_int_eq(coh_folder_make(scratch_path(blocked[_i]), &err),
                     COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, scratch_path("file")));
    ck_assert_ptr_nonnull(strstr(err.text, "cannot make folder"));
}
END_TEST

START_TEST(remove_takes_a_folder_with_all_in_it)
{
    ck_assert_int_eq(coh_folder_make(scratch_path("a/b"), &err), COH_OK);
    scratch_write("a/file", "x");
    scratch_write("a/b/file", "x");
    scratch_write("kept", "x");
    ck_assert_int_eq(symlink(scratch_path("kept"), scratch_path("a/link")), 0);
    ck_assert_int_eq(coh_path_remove(scratch_path("a"), &err), COH_OK);
    ck_assert(!coh_path_exists(scratch_path("a")));
    ck_assert(
        coh_path_exists(scratch_path("kept"))); /* links are not followed */
    ck_assert_int_eq(coh_path_remove(scratch_path("kept"), &err), COH_OK);
    ck_assert(!coh_path_exists(scratch_path("kept")));
    ck_assert_int_eq(coh_path_remove(scratch_path("kept"), &err), COH_OK);
}
END_TEST

START_TEST(a_rename_gives_the_new_name)
{
    scratch_write("old", "text");
    ck_assert_int_eq(
        coh_path_rename(scratch_path("old"), scratch_path("new"), &err),
        COH_OK);
    ck_assert(!coh_path_exists(scratch_path("old")));
    ck_assert(coh_path_exists(scratch_path("new")));
    ck_assert_int_eq(
        coh_path_rename(scratch_path("old"), scratch_path("x"), &err),
        COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, scratch_path("old")));
}
END_TEST

START_TEST(files_and_folders_can_be_pushed_to_disk)
{
    scratch_write("file", "text");
    ck_assert_int_eq(coh_path_sync(scratch_path("file"), &err), COH_OK);
    ck_assert_int_eq(coh_path_sync(scratch_folder, &err), COH_OK);
    ck_assert_int_eq(coh_path_sync(scratch_path("none"), &err), COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "none"));
}
END_TEST

static Suite *files_suite(void)
{
    Suite *suite = suite_create("files");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, scratch_remove);
    tcase_add_test(core, a_path_that_is_too_long_is_refused);
    tcase_add_test(core, a_folder_is_made_with_those_above_it);
    tcase_add_test(core, a_relative_folder_is_made_where_we_are);
    tcase_add_loop_test(core, a_file_in_the_way_of_a_folder_is_named, 0, 3);
    tcase_add_test(core, remove_takes_a_folder_with_all_in_it);
    tcase_add_test(core, a_rename_gives_the_new_name);
    tcase_add_test(core, files_and_folders_can_be_pushed_to_disk);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(files_suite)
