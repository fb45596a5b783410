/* test_h5file.c - named vectors in HDF5 (src/common/h5file.h). No MPI. */
#include "common/h5file.h"

#include <unistd.h>

#include "support/scratch.h"

static coh_err err;
static coh_h5file *file;

static void setup(void)
{
    scratch_make();
    err = COH_ERR_INIT;
    file = NULL;
}

static const float floats[4] = { 1.5f, -0.0f, 1e-45f, 3e38f };
static const double doubles[2] = { 0.1, -1e300 };
static const int64_t ints[6] = { INT64_MIN, -1, 0, 1, 2, INT64_MAX };
static const char text[] = "caf\xc3\xa9: {a: 1}\n";

static void write_all(void)
{
    ck_assert_int_eq(coh_h5_create(scratch_path("a.h5"), &file, &err), COH_OK);
    ck_assert_int_eq(
        coh_h5_write(file, "floats", COH_H5_F32, 4, 1, floats, &err), COH_OK);
    ck_assert_int_eq(
        coh_h5_write(file, "doubles", COH_H5_F64, 2, 1, doubles, &err), COH_OK);
    ck_assert_int_eq(coh_h5_write(file, "ints", COH_H5_I64, 2, 3, ints, &err),
                     COH_OK);
    ck_assert_int_eq(coh_h5_write(file, "text", COH_H5_TEXT,
                                  (int64_t)sizeof text, 1, text, &err),
                     COH_OK);
    ck_assert_int_eq(
        coh_h5_write(file, "nothing", COH_H5_F32, 0, 1, floats, &err), COH_OK);
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
    ck_assert_ptr_null(file);
}

static void open_it(void)
{
    ck_assert_int_eq(coh_h5_open(scratch_path("a.h5"), &file, &err), COH_OK);
}

START_TEST(what_is_written_reads_back_bit_for_bit)
{
    float f[4];
    double d[2];
    int64_t i[6];
    char t[sizeof text];

    write_all();
    open_it();
    ck_assert_int_eq(coh_h5_read(file, "floats", COH_H5_F32, 4, f, &err), 0);
    ck_assert_int_eq(coh_h5_read(file, "doubles", COH_H5_F64, 2, d, &err), 0);
    ck_assert_int_eq(coh_h5_read(file, "ints", COH_H5_I64, 6, i, &err), 0);
    ck_assert_int_eq(
        coh_h5_read(file, "text", COH_H5_TEXT, sizeof text, t, &err), 0);
    ck_assert_int_eq(coh_h5_read(file, "nothing", COH_H5_F32, 0, f, &err), 0);
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
    ck_assert_mem_eq(f, floats, sizeof f);
    ck_assert_mem_eq(d, doubles, sizeof d);
    ck_assert_mem_eq(i, ints, sizeof i);
    ck_assert_mem_eq(t, text, sizeof t);
}
END_TEST

START_TEST(the_size_is_the_number_of_elements)
{
    int64_t size = -1;

    write_all();
    open_it();
    ck_assert_int_eq(coh_h5_size(file, "ints", &size, &err), COH_OK);
    ck_assert_int_eq(size, 6);
    ck_assert_int_eq(coh_h5_size(file, "nothing", &size, &err), COH_OK);
    ck_assert_int_eq(size, 0);
    ck_assert_int_eq(coh_h5_size(file, "none", &size, &err), COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "none"));
    ck_assert_ptr_nonnull(strstr(err.text, "a.h5"));
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
}
END_TEST

START_TEST(another_number_of_elements_is_refused_with_both)
{
    float f[8];

    write_all();
    open_it();
    ck_assert_int_eq(coh_h5_read(file, "floats", COH_H5_F32, 8, f, &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "has 4 elements, expected 8"));
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
}
END_TEST

START_TEST(a_file_that_is_none_is_bad_data)
{
    scratch_write("a.h5", "not HDF5");
    ck_assert_int_eq(coh_h5_open(scratch_path("a.h5"), &file, &err),
                     COH_E_DATA);
    ck_assert_int_eq(coh_h5_open(scratch_path("b.h5"), &file, &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "b.h5': No such file"));
    ck_assert_ptr_null(file);
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK); /* NULL is fine */
}
END_TEST

START_TEST(a_cut_file_is_bad_data)
{
    write_all();
    ck_assert_int_eq(truncate(scratch_path("a.h5"), 1500), 0);
    ck_assert_int_eq(coh_h5_open(scratch_path("a.h5"), &file, &err),
                     COH_E_DATA);
}
END_TEST

START_TEST(a_file_that_cannot_be_made_says_why)
{
    scratch_write("file", "");
    ck_assert_int_eq(coh_h5_create(scratch_path("file/a.h5"), &file, &err),
                     COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "Not a directory"));
    ck_assert_ptr_null(file);
}
END_TEST

START_TEST(create_replaces_what_was_there)
{
    int64_t size;

    write_all();
    ck_assert_int_eq(coh_h5_create(scratch_path("a.h5"), &file, &err), COH_OK);
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
    open_it();
    ck_assert_int_eq(coh_h5_size(file, "ints", &size, &err), COH_E_DATA);
    ck_assert_int_eq(coh_h5_close(&file, &err), COH_OK);
}
END_TEST

static Suite *h5file_suite(void)
{
    Suite *suite = suite_create("h5file");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, scratch_remove);
    tcase_add_test(core, what_is_written_reads_back_bit_for_bit);
    tcase_add_test(core, the_size_is_the_number_of_elements);
    tcase_add_test(core, create_replaces_what_was_there);
    tcase_add_test(core, another_number_of_elements_is_refused_with_both);
    tcase_add_test(core, a_file_that_is_none_is_bad_data);
    tcase_add_test(core, a_cut_file_is_bad_data);
    tcase_add_test(core, a_file_that_cannot_be_made_says_why);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(h5file_suite)
