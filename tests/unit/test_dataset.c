/* test_dataset.c - what every kind of data set promises
 * (src/worker/dataset.h). No MPI. */
#include "worker/dataset.h"

#include <math.h>

#include "common/rng.h"
#include "support/check_run.h"
#include "support/data_files.h"

static data_room room;

static void setup(void)
{
    data_room_init(&room, COH_DATA_IDX, (coh_shape){ 1, 1, 2 }, 3);
}

static void teardown(void)
{
    data_room_fini(&room);
}

/* NAME.images and NAME.labels with count samples of [channels, 1, width] float
 * values; sample i is of class i mod 3. */
static void write_floats(const char *name, uint32_t count, uint32_t channels,
                         uint32_t width, const float *values)
{
    const uint32_t dims[4] = { count, channels, 1, width };
    unsigned char bytes[2048], classes[64];
    char file[64];
    const size_t size = (size_t)count * channels * width;

    for (size_t i = 0; i < size; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], 4);
        for (int k = 0; k < 4; k++)
            bytes[4 * i + (size_t)k] = (unsigned char)(bits >> (24 - 8 * k));
    }
    for (uint32_t i = 0; i < count; i++)
        classes[i] = (unsigned char)(i % 3);
    snprintf(file, sizeof file, "%s.images", name);
    idx_write(&room, file, 0x0D, 4, dims, bytes, 4 * size);
    snprintf(file, sizeof file, "%s.labels", name);
    idx_write(&room, file, 0x08, 1, dims, classes, count);
}

static void add_both(const char *pattern)
{
    char name[64];
    snprintf(name, sizeof name, "%s.images", pattern);
    data_add_train(&room, name);
    snprintf(name, sizeof name, "%s.labels", pattern);
    data_add_train_labels(&room, name);
}

/* --- Files ----------------------------------------------------------------- */

START_TEST(files_of_a_pattern_follow_in_byte_order)
{
    const float values[6] = { 0, 1, 2, 3, 4, 5 };
    const int64_t samples[6] = { 5, 4, 3, 2, 1, 0 };
    write_floats("b", 1, 1, 2, values + 2);
    write_floats("B", 1, 1, 2, values);
    write_floats("none", 0, 1, 2, values);
    write_floats("c", 1, 1, 2, values + 4);
    write_floats("a", 3, 1, 2, values);
    add_both("[bBn]*");
    add_both("c");
    add_both("a");
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 6);

    ck_assert_int_eq(coh_dataset_count(set), 6);
    data_read(&room, set, samples, 6, batch);
    const float want[6] = { 4, 2, 0, 4, 2, 0 }; /* a backwards; c, b, B */
    for (int i = 0; i < 6; i++)
        ck_assert_float_eq(batch->images[2 * i], want[i]);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
    ck_assert_ptr_null(set);
}
END_TEST

START_TEST(a_pattern_without_a_file_is_refused)
{
    add_both("x*");
    data_refuse(&room, "data.train: no file matches", "x*.images");
}
END_TEST

START_TEST(a_file_named_twice_is_refused)
{
    const float values[2] = { 0 };
    write_floats("a", 1, 1, 2, values);
    add_both("a");
    add_both("*");
    data_refuse(&room, "data.train: ", "a.images' is named twice");
}
END_TEST

START_TEST(an_existing_name_is_no_pattern)
{
    const float values[2] = { 7, 8 };
    write_floats("a[1]", 1, 1, 2, values);
    add_both("a[1]");
    coh_dataset *set = data_open(&room);
    ck_assert_int_eq(coh_dataset_count(set), 1);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(files_of_two_shapes_are_refused_with_both)
{
    const float values[6] = { 0 };
    write_floats("a", 1, 1, 2, values);
    write_floats("b", 1, 2, 3, values);
    add_both("*");
    data_refuse(&room, "/b.images", "2x1x3", "/a.images", "1x1x2");
}
END_TEST

START_TEST(a_shape_that_is_not_the_models_is_refused)
{
    const float values[6] = { 0 };
    write_floats("b", 1, 2, 3, values);
    add_both("b");
    data_refuse(&room, "/b.images", "[2, 1, 3]", "model.input is [1, 1, 2]");
}
END_TEST

START_TEST(no_files_are_an_empty_set)
{
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 2);
    ck_assert_int_eq(coh_dataset_count(set), 0);
    data_read(&room, set, NULL, 0, batch);
    ck_assert_int_eq(batch->count, 0);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(validation_without_files_is_the_test_set)
{
    coh_dataset *set = NULL;
    const float values[6] = { 0 };
    char path[DATA_PATH_SIZE];
    write_floats("t", 3, 1, 2, values);
    data_add(&room.config.data.test, &room.test,
             data_path(&room, "t.images", path));
    data_add(&room.config.data.test_labels, &room.test_labels,
             data_path(&room, "t.labels", path));
    ck_assert_int_eq(coh_dataset_open(&room.config, COH_SPLIT_VALIDATION,
                                      room.input, 3, &set, &room.err),
                     COH_OK);
    ck_assert_int_eq(coh_dataset_count(set), 3);
    coh_dataset_close(&set);
}
END_TEST

/* --- Batches --------------------------------------------------------------- */

START_TEST(rows_without_a_sample_are_padding)
{
    const float values[6] = { 1, 2, 3, 4, 5, 6 };
    const int64_t all[3] = { 0, 1, 2 };
    write_floats("a", 3, 1, 2, values);
    add_both("a");
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 3);

    data_read(&room, set, all, 3, batch);
    data_read(&room, set, all + 2, 1, batch); /* over a full batch */
    ck_assert_int_eq(batch->count, 1);
    ck_assert_float_eq(batch->images[1], 6);
    ck_assert_int_eq(batch->labels[0], 2);
    ck_assert_float_eq(batch->loss_weights[0], 1);
    for (int row = 1; row < 3; row++) {
        ck_assert_float_eq(batch->images[2 * row], 0);
        ck_assert_float_eq(batch->images[2 * row + 1], 0);
        ck_assert_int_eq(batch->labels[row], 0);
        ck_assert_float_eq(batch->loss_weights[row], 0);
        ck_assert_float_eq(batch->metric_weights[row], 0);
        ck_assert_int_eq(batch->samples[row], -1);
    }
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(images_begin_at_a_cache_line)
{
    coh_batch *batch = data_batch(&room, 3);
    ck_assert_uint_eq((uintptr_t)batch->images % 64, 0);
    coh_batch_destroy(&batch);
    coh_batch_destroy(&batch);
    ck_assert_ptr_null(batch);
}
END_TEST

START_TEST(a_batch_that_cannot_be_is_refused)
{
    coh_batch *batch = NULL;
    ck_assert_int_eq(coh_batch_new((coh_shape){ 1 << 20, 1 << 20, 1 << 10 }, 0,
                                   1 << 20, &batch, &room.err),
                     COH_E_NOMEM);
    ck_assert_ptr_null(batch);
}
END_TEST

/* --- Normalisation --------------------------------------------------------- */

/* Two channels of two values, three samples. */
static const float pixels[12] = { 1,   2,   100, 100, -3,  4,
                                  100, 100, 5,   0,   100, 100 };

static coh_dataset *open_pixels(void)
{
    room.input = (coh_shape){ 2, 1, 2 };
    write_floats("a", 3, 2, 2, pixels);
    add_both("a");
    return data_open(&room);
}

static coh_normal measure(coh_dataset *set, coh_normalize how,
                          coh_normalize_over over)
{
    coh_normal normal;
    room.config.data.normalize = (int)how;
    room.config.data.normalize_over = (int)over;
    ck_assert_int_eq(coh_dataset_measure(set, &room.config, &normal, &room.err),
                     COH_OK);
    return normal;
}

START_TEST(max_divides_by_the_largest_size)
{
    coh_dataset *set = open_pixels();
    const coh_normal a = measure(set, COH_NORMALIZE_MAX, COH_NORMALIZE_CHANNEL);
    ck_assert_int_eq(a.channels, 2);
    ck_assert_float_eq(a.shift[0], 0);
    ck_assert_float_eq(a.factor[0], 1.0f / 5);
    ck_assert_float_eq(a.factor[1], 1.0f / 100);
    const coh_normal b = measure(set, COH_NORMALIZE_MAX, COH_NORMALIZE_GLOBAL);
    ck_assert_int_eq(b.channels, 1);
    ck_assert_float_eq(b.factor[0], 1.0f / 100);
    const coh_normal c =
        measure(set, COH_NORMALIZE_NONE, COH_NORMALIZE_CHANNEL);
    ck_assert_int_eq(c.channels, 0);
    coh_dataset_close(&set);
}
END_TEST

/* Channel 0 is 1 2 -3 4 5 0: mean 1.5, mean square 55/6. */
START_TEST(standard_takes_mean_and_deviation)
{
    coh_dataset *set = open_pixels();
    const coh_normal a =
        measure(set, COH_NORMALIZE_STANDARD, COH_NORMALIZE_CHANNEL);
    ck_assert_float_eq_tol(a.shift[0], 1.5f, 1e-6f);
    ck_assert_float_eq_tol(a.factor[0], 1 / sqrtf(55.0f / 6 - 2.25f), 1e-6f);
    ck_assert_float_eq(a.shift[1], 100);
    ck_assert_float_eq(a.factor[1], 1); /* all alike: nothing to divide by */
    coh_dataset_close(&set);
}
END_TEST

START_TEST(what_is_measured_is_applied)
{
    const int64_t samples[3] = { 0, 1, 2 };
    coh_dataset *set = open_pixels();
    coh_batch *batch = data_batch(&room, 3);
    const coh_normal normal =
        measure(set, COH_NORMALIZE_STANDARD, (coh_normalize_over)_i);
    coh_dataset_normalize(set, &normal);

    data_read(&room, set, samples, 3, batch);
    double sum = 0, squares = 0;
    for (int i = 0; i < 12; i++) {
        const int c = normal.channels == 1 ? 0 : i / 2 % 2;
        ck_assert_float_eq(batch->images[i],
                           (pixels[i] - normal.shift[c]) * normal.factor[c]);
        sum += (double)batch->images[i];
        squares += (double)batch->images[i] * (double)batch->images[i];
    }
    ck_assert_double_eq_tol(sum, 0, 1e-5);
    ck_assert_double_eq_tol(squares, normal.channels == 1 ? 12 : 6, 1e-5);

    /* measuring again sees the raw values, and changes nothing */
    const coh_normal again =
        measure(set, COH_NORMALIZE_STANDARD, (coh_normalize_over)_i);
    ck_assert_float_eq(again.shift[0], normal.shift[0]);
    data_read(&room, set, samples, 1, batch);
    ck_assert_float_eq(batch->images[0],
                       (1 - normal.shift[0]) * normal.factor[0]);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

/* Deviation 1 beside a mean of 1e6: sums of squares in float would lose it. */
START_TEST(a_small_deviation_beside_a_large_mean_is_found)
{
    float values[60];
    for (int i = 0; i < 60; i++)
        values[i] = 1e6f + (i % 2 == 0 ? 1.0f : -1.0f);
    write_floats("a", 30, 1, 2, values);
    add_both("a");
    coh_dataset *set = data_open(&room);
    const coh_normal normal =
        measure(set, COH_NORMALIZE_STANDARD, COH_NORMALIZE_CHANNEL);
    ck_assert_float_eq(normal.shift[0], 1e6f);
    ck_assert_float_eq_tol(normal.factor[0], 1, 1e-6f);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(only_the_asked_samples_are_measured)
{
    coh_dataset *set = open_pixels();
    room.config.data.normalize_samples = 1;
    const coh_normal normal =
        measure(set, COH_NORMALIZE_MAX, COH_NORMALIZE_CHANNEL);
    const int64_t first = coh_rng_permute(1, 0, 3, 0);
    const float largest =
        fmaxf(fabsf(pixels[4 * first]), fabsf(pixels[4 * first + 1]));
    ck_assert_float_eq(normal.factor[0], 1 / largest);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(a_channel_of_zeros_is_left_alone)
{
    const float values[4] = { 0 };
    write_floats("a", 2, 1, 2, values);
    add_both("a");
    coh_dataset *set = data_open(&room);
    const coh_normal normal =
        measure(set, COH_NORMALIZE_MAX, COH_NORMALIZE_CHANNEL);
    ck_assert_float_eq(normal.factor[0], 1);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(a_value_that_normalisation_makes_infinite_is_refused_by_sample)
{
    const float values[4] = { 0, 1e-30f, 0, 1e30f };
    const int64_t samples[2] = { 0, 1 };
    write_floats("a", 2, 1, 2, values);
    add_both("a");
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 2);
    const coh_normal normal = { .channels = 1, .factor = { 1e30f } };

    coh_dataset_normalize(set, &normal);
    data_read(&room, set, samples, 1, batch);
    ck_assert_float_eq_tol(batch->images[1], 1, 1e-6f);
    ck_assert_int_eq(coh_dataset_read(set, samples, 2, batch, &room.err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(room.err.text, "sample 1"));
    ck_assert_ptr_nonnull(strstr(room.err.text, "data.normalize"));
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(log1p_comes_before_normalisation)
{
    const float values[4] = { 0, 1, 3, -0.5f };
    const int64_t samples[2] = { 0, 1 };
    write_floats("a", 2, 1, 2, values);
    add_both("a");
    room.config.data.log1p = true;
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 2);
    const coh_normal normal =
        measure(set, COH_NORMALIZE_MAX, COH_NORMALIZE_CHANNEL);
    ck_assert_float_eq_tol(normal.factor[0], 1 / logf(4), 1e-6f);
    coh_dataset_normalize(set, &normal);
    data_read(&room, set, samples, 2, batch);
    ck_assert_float_eq(batch->images[0], 0);
    ck_assert_float_eq_tol(batch->images[1], 0.5f, 1e-6f);
    ck_assert_float_eq_tol(batch->images[2], 1, 1e-6f);
    ck_assert_float_eq_tol(batch->images[3], -0.5f, 1e-6f);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(log1p_of_minus_one_is_refused_by_sample)
{
    const float values[4] = { 0, 1, 3, -1 };
    const int64_t samples[2] = { 0, 1 };
    write_floats("a", 2, 1, 2, values);
    add_both("a");
    room.config.data.log1p = true;
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 2);
    ck_assert_int_eq(coh_dataset_read(set, samples, 2, batch, &room.err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(room.err.text, "sample 1"));
    ck_assert_ptr_nonnull(strstr(room.err.text, "data.log1p"));
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

static Suite *dataset_suite(void)
{
    Suite *suite = suite_create("dataset");

    TCase *files = tcase_create("files");
    tcase_add_checked_fixture(files, setup, teardown);
    tcase_add_test(files, files_of_a_pattern_follow_in_byte_order);
    tcase_add_test(files, a_pattern_without_a_file_is_refused);
    tcase_add_test(files, a_file_named_twice_is_refused);
    tcase_add_test(files, an_existing_name_is_no_pattern);
    tcase_add_test(files, files_of_two_shapes_are_refused_with_both);
    tcase_add_test(files, a_shape_that_is_not_the_models_is_refused);
    tcase_add_test(files, no_files_are_an_empty_set);
    tcase_add_test(files, validation_without_files_is_the_test_set);
    suite_add_tcase(suite, files);

    TCase *batches = tcase_create("batches");
    tcase_add_checked_fixture(batches, setup, teardown);
    tcase_add_test(batches, rows_without_a_sample_are_padding);
    tcase_add_test(batches, images_begin_at_a_cache_line);
    tcase_add_test(batches, a_batch_that_cannot_be_is_refused);
    suite_add_tcase(suite, batches);

    TCase *normal = tcase_create("normalisation");
    tcase_add_checked_fixture(normal, setup, teardown);
    tcase_add_test(normal, max_divides_by_the_largest_size);
    tcase_add_test(normal, standard_takes_mean_and_deviation);
    tcase_add_loop_test(normal, what_is_measured_is_applied, 0, 2);
    tcase_add_test(normal, a_small_deviation_beside_a_large_mean_is_found);
    tcase_add_test(normal, only_the_asked_samples_are_measured);
    tcase_add_test(normal, a_channel_of_zeros_is_left_alone);
    tcase_add_test(normal, log1p_comes_before_normalisation);
    tcase_add_test(
        normal, a_value_that_normalisation_makes_infinite_is_refused_by_sample);
    tcase_add_test(normal, log1p_of_minus_one_is_refused_by_sample);
    suite_add_tcase(suite, normal);
    return suite;
}

CHECK_MAIN(dataset_suite)
