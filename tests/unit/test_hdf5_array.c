/* test_hdf5_array.c - HDF5 files that must be refused, and lzf
 * (src/worker/hdf5_array.c). No MPI. */
#include "worker/dataset.h"

#include <math.h>
#include <unistd.h>

#include "support/check_run.h"
#include "support/h5_files.h"

/* Four samples of 1x2x2. */
enum { N = 4, IMAGE = 4 };
static const hsize_t image_dims[4] = { N, 1, 2, 2 }, label_dims[1] = { N };
static const float images[N * IMAGE] = { 1, 2,  3,  4,  5,  6,  7,  8,
                                         9, 10, 11, 12, 13, 14, 15, 16 };
static const float labels[N] = { 0, 1, 1, 0 };

static data_room room;

static void setup(void)
{
    data_room_init(&room, COH_DATA_HDF5, (coh_shape){ 1, 2, 2 }, 2);
    data_add_train(&room, "x.h5");
}

static void teardown(void)
{
    data_room_fini(&room);
}

/* A file with good labels. */
static hid_t with_labels(const char *name)
{
    const hid_t file = h5_create(&room, name);
    h5_add(file, "label", H5T_STD_I32LE, 1, label_dims, H5P_DEFAULT, labels);
    return file;
}

/* A whole file. */
static hid_t with_all(const char *name)
{
    const hid_t file = with_labels(name);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, images);
    return file;
}

static void check_content(void)
{
    const int64_t samples[N] = { 0, 1, 2, 3 };
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, N);
    data_read(&room, set, samples, N, batch);
    for (int i = 0; i < N * IMAGE; i++)
        ck_assert_float_eq(batch->images[i], images[i]);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}

START_TEST(another_kind_of_file_is_refused)
{
    data_write(&room, "x.h5", "text", 4);
    data_refuse(&room, "/x.h5", "cannot open as HDF5", "signature");
}
END_TEST

START_TEST(a_cut_file_is_refused)
{
    char path[DATA_PATH_SIZE];
    H5Fclose(with_all("x.h5"));
    ck_assert_int_eq(truncate(data_path(&room, "x.h5", path), 700), 0);
    data_refuse(&room, "/x.h5", "HDF5: ");
}
END_TEST

START_TEST(a_missing_dataset_is_answered_with_what_there_is)
{
    const hid_t file = with_labels("x.h5");
    h5_add(file, "all_events/hist", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT,
           images);
    H5Fclose(file);
    data_refuse(&room, "/x.h5", "no dataset 'data'", "data.images",
                "all_events/hist, label");
    data_add_images(&room, "all_events/hist");
    room.config.data.labels = (char *)"all_events/y";
    data_refuse(&room, "no dataset 'all_events/y'", "data.labels");
}
END_TEST

START_TEST(a_file_of_one_group_an_event_must_be_merged)
{
    const hid_t file = h5_create(&room, "x.h5");
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "event_%d/hist", i);
        h5_add(file, name, H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, images);
    }
    H5Fclose(file);
    data_refuse(&room, "event_N", "merge");
}
END_TEST

START_TEST(a_dataset_of_text_is_refused)
{
    const hid_t file = with_labels("x.h5"), text = H5Tcopy(H5T_C_S1);
    h5_add(file, "data", text, 4, image_dims, H5P_DEFAULT, NULL);
    H5Tclose(text);
    H5Fclose(file);
    data_refuse(&room, "'data'", "neither integers nor floats");
}
END_TEST

START_TEST(what_was_never_written_is_refused)
{
    const hid_t file = with_labels("x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, NULL);
    H5Fclose(file);
    data_refuse(&room, "'data'", "never written");
}
END_TEST

START_TEST(chunks_that_are_missing_are_refused)
{
    const hsize_t chunk[4] = { 1, 1, 2, 2 }, half[4] = { 2, 1, 2, 2 };
    /* as a killed converter leaves it */
    const hid_t file = with_labels("x.h5");
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 4, chunk);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, plist, NULL);
    const hid_t data = H5Dopen2(file, "data", H5P_DEFAULT);
    const hid_t space = H5Dget_space(data);
    const hsize_t start[4] = { 0 };
    const hid_t memory = H5Screate_simple(4, half, NULL);
    H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, half, NULL);
    H5Dwrite(data, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, images);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(data);
    H5Pclose(plist);
    H5Fclose(file);
    data_refuse(&room, "'data'", "only 2 of 4 chunks");
}
END_TEST

/* x.h5 whose data lies in FOLDER/raw. */
static void write_external(void)
{
    char raw[DATA_PATH_SIZE];
    const hid_t file = with_labels("x.h5");
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, data_path(&room, "raw", raw), 0, sizeof images);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, plist, images);
    H5Pclose(plist);
    H5Fclose(file);
}

START_TEST(external_data_is_read_where_it_is_whole)
{
    char raw[DATA_PATH_SIZE];
    write_external();
    check_content();
    ck_assert_int_eq(truncate(data_path(&room, "raw", raw), 60), 0);
    data_refuse(&room, "external file", "/raw", "cut short");
    unlink(raw);
    data_refuse(&room, "external file", "/raw", "missing");
}
END_TEST

/* x.h5 whose data is that of source.h5, samples [0, mapped). */
static void write_virtual(hsize_t mapped)
{
    const hsize_t start[4] = { 0 }, part[4] = { mapped, 1, 2, 2 };
    H5Fclose(with_all("source.h5"));
    const hid_t file = with_labels("x.h5");
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    const hid_t here = H5Screate_simple(4, image_dims, NULL);
    const hid_t there = H5Screate_simple(4, image_dims, NULL);
    H5Sselect_hyperslab(here, H5S_SELECT_SET, start, NULL, part, NULL);
    H5Sselect_hyperslab(there, H5S_SELECT_SET, start, NULL, part, NULL);
    H5Pset_virtual(plist, here, "source.h5", "data", there);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, plist, NULL);
    H5Sclose(there);
    H5Sclose(here);
    H5Pclose(plist);
    H5Fclose(file);
}

START_TEST(virtual_data_is_read_where_it_is_whole)
{
    const hsize_t short_dims[4] = { N - 1, 1, 2, 2 };
    char path[DATA_PATH_SIZE];
    write_virtual(N);
    check_content();

    hid_t file = h5_create(&room, "source.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, short_dims, H5P_DEFAULT, images);
    H5Fclose(file);
    data_refuse(&room, "virtual", "source.h5", "too small");
    file = h5_create(&room, "source.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, NULL);
    H5Fclose(file);
    data_refuse(&room, "source.h5", "never written");
    unlink(data_path(&room, "source.h5", path));
    data_refuse(&room, "virtual", "source.h5", "missing");
    write_virtual(N - 1);
    data_refuse(&room, "virtual", "only 12 of its 16");
}
END_TEST

/* One chunk of 64 bytes as lzf packs it: 16 floats, of which the test knows
 * the first; the rest are copies of it. */
static const unsigned char packed[] = {
    3,    0,  0, 0x80, 0x3f, /* four bytes as they are: 1.0f */
    0xe0, 51, 3              /* 2 + 7 + 51 bytes from 4 back */
};

static void write_lzf(const void *bytes, size_t size)
{
    const hsize_t origin[4] = { 0 };
    const unsigned values[3] = { 4, 0x0105, sizeof images };
    const hid_t file = with_labels("x.h5");
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 4, image_dims);
    /* optional, as nobody here can pack */
    H5Pset_filter(plist, 32000, H5Z_FLAG_OPTIONAL, 3, values);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, plist, NULL);
    const hid_t data = H5Dopen2(file, "data", H5P_DEFAULT);
    ck_assert_int_ge(H5Dwrite_chunk(data, H5P_DEFAULT, 0, origin, size, bytes),
                     0);
    H5Dclose(data);
    H5Pclose(plist);
    H5Fclose(file);
}

START_TEST(lzf_is_unpacked)
{
    const int64_t samples[N] = { 3, 2, 1, 0 };
    write_lzf(packed, sizeof packed);
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, N);
    data_read(&room, set, samples, N, batch);
    for (int i = 0; i < N * IMAGE; i++)
        ck_assert_float_eq(batch->images[i], 1.0f);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(damaged_lzf_fails_when_read)
{
    const int64_t sample = 1;
    write_lzf(packed, sizeof packed - 1);
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 1);
    ck_assert_int_eq(coh_dataset_read(set, &sample, 1, batch, &room.err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(room.err.text, "x.h5"));
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(an_unknown_filter_is_refused_by_number)
{
    const hid_t file = with_labels("x.h5");
    const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(plist, 4, image_dims);
    H5Pset_filter(plist, 32123, H5Z_FLAG_OPTIONAL, 0, NULL);
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, plist, images);
    H5Pclose(plist);
    H5Fclose(file);
    data_refuse(&room, "'data'", "filter 32123", "h5repack");
}
END_TEST

START_TEST(labels_must_be_as_many_as_images)
{
    const hsize_t three[1] = { 3 };
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, images);
    h5_add(file, "label", H5T_STD_I32LE, 1, three, H5P_DEFAULT, labels);
    H5Fclose(file);
    data_refuse(&room, "'label'", "is [3]", "4 images", "[4,1]");
}
END_TEST

/* Value 2 of the labels or weights, and the word to be said. */
static const struct {
    const char *name;
    float bad;
    const char *word;
} bad_values[] = {
    { "label", 2, "label 2" },
    { "label", -1, "label -1" },
    { "label", 0.5f, "label 0.5" },
    { "label", NAN, "label" },
    { "weight", NAN, "finite" },
    { "weight", INFINITY, "finite" },
    { "weight", -1, "data.weights_for" },
};

START_TEST(a_bad_label_or_weight_is_named_by_sample)
{
    float wrong[N] = { 0, 1, bad_values[_i].bad, 0 };
    const bool is_label = strcmp(bad_values[_i].name, "label") == 0;
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, images);
    h5_add(file, "label", H5T_IEEE_F32LE, 1, label_dims, H5P_DEFAULT,
           is_label ? wrong : labels);
    h5_add(file, "weight", H5T_IEEE_F32LE, 1, label_dims, H5P_DEFAULT, wrong);
    H5Fclose(file);
    room.config.data.weights = (char *)(is_label ? "" : "weight");
    room.config.data.weights_for = COH_WEIGHTS_FOR_LOSS;
    data_refuse(&room, "/x.h5", "sample 2", bad_values[_i].word);
}
END_TEST

START_TEST(several_arrays_must_be_of_one_shape)
{
    const hsize_t a[3] = { N, 2, 2 }, b[3] = { N, 1, 4 };
    const hid_t file = with_labels("x.h5");
    h5_add(file, "a", H5T_IEEE_F32LE, 3, a, H5P_DEFAULT, images);
    h5_add(file, "b", H5T_IEEE_F32LE, 3, b, H5P_DEFAULT, images);
    H5Fclose(file);
    data_add_images(&room, "a");
    data_add_images(&room, "b");
    data_refuse(&room, "'a' is [4,2,2]", "'b' is [4,1,4]");
}
END_TEST

START_TEST(an_image_that_is_not_finite_fails_when_read)
{
    const int64_t samples[2] = { 0, 2 };
    float wrong[N * IMAGE];
    memcpy(wrong, images, sizeof wrong);
    wrong[2 * IMAGE + 3] = _i == 0 ? NAN : -INFINITY;
    const hid_t file = with_labels("x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, image_dims, H5P_DEFAULT, wrong);
    H5Fclose(file);
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 2);

    data_read(&room, set, samples, 1, batch);
    ck_assert_int_eq(coh_dataset_read(set, samples, 2, batch, &room.err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(room.err.text, "x.h5"));
    ck_assert_ptr_nonnull(strstr(room.err.text, "sample 2"));
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(hdf5_keeps_the_error_printer_it_had)
{
    H5E_auto2_t before, after;
    void *data;
    H5Eget_auto2(H5E_DEFAULT, &before, &data);
    data_write(&room, "x.h5", "text", 4);
    data_refuse(&room, "HDF5");
    H5Eget_auto2(H5E_DEFAULT, &after, &data);
    ck_assert(before != NULL && before == after);
}
END_TEST

static Suite *hdf5_array_suite(void)
{
    Suite *suite = suite_create("hdf5_array");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, another_kind_of_file_is_refused);
    tcase_add_test(core, a_cut_file_is_refused);
    tcase_add_test(core, a_missing_dataset_is_answered_with_what_there_is);
    tcase_add_test(core, a_file_of_one_group_an_event_must_be_merged);
    tcase_add_test(core, a_dataset_of_text_is_refused);
    tcase_add_test(core, what_was_never_written_is_refused);
    tcase_add_test(core, chunks_that_are_missing_are_refused);
    tcase_add_test(core, external_data_is_read_where_it_is_whole);
    tcase_add_test(core, virtual_data_is_read_where_it_is_whole);
    tcase_add_test(core, lzf_is_unpacked);
    tcase_add_test(core, damaged_lzf_fails_when_read);
    tcase_add_test(core, an_unknown_filter_is_refused_by_number);
    tcase_add_test(core, labels_must_be_as_many_as_images);
    tcase_add_loop_test(core, a_bad_label_or_weight_is_named_by_sample, 0,
                        sizeof bad_values / sizeof bad_values[0]);
    tcase_add_test(core, several_arrays_must_be_of_one_shape);
    tcase_add_loop_test(core, an_image_that_is_not_finite_fails_when_read, 0,
                        2);
    tcase_add_test(core, hdf5_keeps_the_error_printer_it_had);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(hdf5_array_suite)
