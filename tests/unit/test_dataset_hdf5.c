/* test_dataset_hdf5.c - HDF5 files (src/worker/dataset_hdf5.c). No MPI.
 * What is refused is in test_hdf5_array.c. */
#include "worker/dataset.h"

#include <unistd.h>

#include "support/check_run.h"
#include "support/h5_files.h"

/* N = 5 samples of 2x3x4: small integers, which every type can hold. */
enum { N = 5, C = 2, H = 3, W = 4, PLANE = H * W, IMAGE = C * PLANE };
static const hsize_t nchw[4] = { N, C, H, W }, nhwc[4] = { N, H, W, C };
static const hsize_t one[1] = { N }, column[2] = { N, 1 };
static const float labels[N] = { 0, 1, 2, 1, 0 };
static const float weights[N] = { 1, 0.5f, 2, -1, 4 };
static float images[N * IMAGE];

static data_room room;

static float value(int sample, int c, int i)
{
    return (float)((sample * 31 + c * 17 + i * 5) % 100);
}

static void setup(void)
{
    data_room_init(&room, COH_DATA_HDF5, (coh_shape){ C, H, W }, 3);
    for (int n = 0; n < N; n++) {
        for (int c = 0; c < C; c++) {
            for (int i = 0; i < PLANE; i++)
                images[n * IMAGE + c * PLANE + i] = value(n, c, i);
        }
    }
}

static void teardown(void)
{
    data_room_fini(&room);
}

/* x.h5 with `data` of the given type and `label`. */
static void write_plain(hid_t type, hid_t plist)
{
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", type, 4, nchw, plist, images);
    h5_add(file, "label", H5T_STD_I32LE, 1, one, H5P_DEFAULT, labels);
    H5Fclose(file);
}

/* The training set holds the N samples, in any order of asking. */
static void check_content(void)
{
    static const int64_t samples[7] = { 4, 1, 2, 3, 0, 1, 4 };
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 7);

    ck_assert_int_eq(coh_dataset_count(set), N);
    data_read(&room, set, samples, 7, batch);
    for (int row = 0; row < 7; row++) {
        for (int i = 0; i < IMAGE; i++)
            ck_assert_float_eq(batch->images[row * IMAGE + i],
                               images[samples[row] * IMAGE + i]);
        ck_assert_int_eq(batch->labels[row], (int)labels[samples[row]]);
    }
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}

START_TEST(every_type_and_order_is_read)
{
    const hid_t half = h5_half(H5T_ORDER_LE), turned = h5_half(H5T_ORDER_BE);
    const hid_t types[] = {
        half,           turned,         H5T_IEEE_F32LE, H5T_IEEE_F32BE,
        H5T_IEEE_F64LE, H5T_IEEE_F64BE, H5T_STD_U8LE,   H5T_STD_I8BE,
        H5T_STD_U16BE,  H5T_STD_I16LE,  H5T_STD_I32BE,  H5T_STD_U32LE,
        H5T_STD_I64BE,  H5T_STD_U64LE,
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        write_plain(types[i], H5P_DEFAULT);
        data_add_train(&room, "x.h5");
        check_content();
        room.config.data.train.count = 0;
    }
    H5Tclose(half);
    H5Tclose(turned);
}
END_TEST

START_TEST(chunks_of_any_shape_are_read)
{
    static const hsize_t chunks[][4] = {
        { 1, C, H, W }, { N, C, H, W }, { 2, 1, 2, 3 }, { 3, 2, 1, 1 }
    };
    for (size_t i = 0; i < sizeof chunks / sizeof chunks[0]; i++) {
        const hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
        H5Pset_chunk(plist, 4, chunks[i]);
        H5Pset_deflate(plist, 4);
        write_plain(H5T_IEEE_F32LE, plist);
        H5Pclose(plist);
        data_add_train(&room, "x.h5");
        check_content();
        room.config.data.train.count = 0;
    }
}
END_TEST

START_TEST(channels_last_becomes_channels_first)
{
    float turned[N * IMAGE];
    for (int n = 0; n < N; n++) {
        for (int c = 0; c < C; c++) {
            for (int i = 0; i < PLANE; i++)
                turned[n * IMAGE + i * C + c] = value(n, c, i);
        }
    }
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", _i == 0 ? H5T_IEEE_F32LE : H5T_IEEE_F64BE, 4, nhwc,
           H5P_DEFAULT, turned);
    h5_add(file, "label", H5T_STD_I32LE, 1, one, H5P_DEFAULT, labels);
    H5Fclose(file);
    data_add_train(&room, "x.h5");

    data_refuse(&room, "[3, 4, 2]", "[2, 3, 4]", "data.axes");
    room.config.data.axes = COH_AXES_NHWC;
    check_content();
}
END_TEST

/* all_events/hist and all_events/histEM [N,H,W], all_events/y. */
START_TEST(several_arrays_are_channels)
{
    const hsize_t nhw[3] = { N, H, W };
    float plane[N * PLANE];
    const hid_t file = h5_create(&room, "x.h5");
    static const char *const names[C] = { "all_events/hist",
                                          "all_events/histEM" };
    for (int c = 0; c < C; c++) {
        for (int k = 0; k < N * PLANE; k++)
            plane[k] = value(k / PLANE, c, k % PLANE);
        /* one staged, one direct */
        h5_add(file, names[c], c == _i ? H5T_IEEE_F64BE : H5T_IEEE_F64LE, 3,
               nhw, H5P_DEFAULT, plane);
        data_add_images(&room, names[c]);
    }
    h5_add(file, "all_events/y", H5T_IEEE_F64LE, 1, one, H5P_DEFAULT, labels);
    H5Fclose(file);
    room.config.data.labels = (char *)"all_events/y";
    data_add_train(&room, "x.h5");
    check_content();
}
END_TEST

START_TEST(a_single_array_of_rank_3_is_one_channel)
{
    const hsize_t nhw[3] = { N, C * H, W };
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 3, nhw, H5P_DEFAULT, images);
    h5_add(file, "label", H5T_STD_I32LE, 1, one, H5P_DEFAULT, labels);
    H5Fclose(file);
    room.input = (coh_shape){ 1, C * H, W };
    room.config.data.axes = _i;
    data_add_train(&room, "x.h5");
    check_content();
}
END_TEST

START_TEST(labels_and_weights_may_be_columns_of_floats)
{
    const int64_t samples[N] = { 0, 1, 2, 3, 4 };
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, "data", H5T_IEEE_F32LE, 4, nchw, H5P_DEFAULT, images);
    h5_add(file, "label", H5T_IEEE_F64BE, 2, column, H5P_DEFAULT, labels);
    h5_add(file, "weight", H5T_IEEE_F64LE, 2, column, H5P_DEFAULT, weights);
    H5Fclose(file);
    room.config.data.weights = (char *)"weight";
    data_add_train(&room, "x.h5");
    check_content();

    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, N);
    data_read(&room, set, samples, N, batch);
    for (int i = 0; i < N; i++) {
        ck_assert_float_eq(batch->metric_weights[i], weights[i]);
        ck_assert_float_eq(batch->loss_weights[i], 1.0f);
    }
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

/* FILE::GROUP, and the suffix of FILE::*_val. */
static const struct {
    const char *file, *images, *labels;
} places[] = {
    { "x.h5::train", "train/data", "train/label" },
    { "x.h5::train/*", "train/data", "train/label" },
    { "x.h5::*_val", "data_val", "label_val" },
    { "*.h5::a/b", "a/b/data", "a/b/label" },
};

START_TEST(a_group_or_suffix_may_be_named_with_the_file)
{
    const hid_t file = h5_create(&room, "x.h5");
    h5_add(file, places[_i].images, H5T_IEEE_F32LE, 4, nchw, H5P_DEFAULT,
           images);
    h5_add(file, places[_i].labels, H5T_STD_I32LE, 1, one, H5P_DEFAULT, labels);
    H5Fclose(file);
    data_add_train(&room, places[_i].file);
    check_content();
}
END_TEST

START_TEST(a_file_closed_by_an_swmr_writer_opens)
{
    char path[DATA_PATH_SIZE];
    write_plain(H5T_IEEE_F32LE, H5P_DEFAULT);
    const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
    const hid_t file =
        H5Fopen(data_path(&room, "x.h5", path), H5F_ACC_RDWR, access);
    ck_assert_int_ge(H5Fstart_swmr_write(file), 0);
    H5Fclose(file);
    H5Pclose(access);
    data_add_train(&room, "x.h5");
    check_content();
}
END_TEST

/* As many as this process has open now. */
static int open_files(void)
{
    int count = 0;
    for (int fd = 0; fd < 1024; fd++)
        count += lseek(fd, 0, SEEK_CUR) >= 0;
    return count;
}

START_TEST(a_set_of_many_files_keeps_few_open)
{
    enum { FILES = 70 };
    const hsize_t dims[4] = { 1, 1, 1, 1 }, single[1] = { 1 };
    int64_t samples[FILES];
    room.input = (coh_shape){ 1, 1, 1 };
    for (int i = 0; i < FILES; i++) {
        char name[32];
        const float number = (float)i, label = (float)(i % 3);
        snprintf(name, sizeof name, "%03d.h5", i);
        const hid_t file = h5_create(&room, name);
        h5_add(file, "data", H5T_IEEE_F32LE, 4, dims, H5P_DEFAULT, &number);
        h5_add(file, "label", H5T_STD_U8LE, 1, single, H5P_DEFAULT, &label);
        H5Fclose(file);
        samples[i] = FILES - 1 - i;
    }
    data_add_train(&room, "*.h5");
    const int before = open_files();
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, FILES);

    for (int pass = 0; pass < 2; pass++) {
        data_read(&room, set, samples, FILES, batch);
        for (int i = 0; i < FILES; i++)
            ck_assert_float_eq(batch->images[i], (float)samples[i]);
        ck_assert_int_le(open_files(), before + 64);
    }
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
    ck_assert_int_eq(open_files(), before);
}
END_TEST

static Suite *dataset_hdf5_suite(void)
{
    Suite *suite = suite_create("dataset_hdf5");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, every_type_and_order_is_read);
    tcase_add_test(core, chunks_of_any_shape_are_read);
    tcase_add_loop_test(core, channels_last_becomes_channels_first, 0, 2);
    tcase_add_loop_test(core, several_arrays_are_channels, 0, 3);
    tcase_add_loop_test(core, a_single_array_of_rank_3_is_one_channel, 0, 2);
    tcase_add_test(core, labels_and_weights_may_be_columns_of_floats);
    tcase_add_loop_test(core, a_group_or_suffix_may_be_named_with_the_file, 0,
                        sizeof places / sizeof places[0]);
    tcase_add_test(core, a_file_closed_by_an_swmr_writer_opens);
    tcase_add_test(core, a_set_of_many_files_keeps_few_open);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(dataset_hdf5_suite)
