/* test_dataset_synthetic.c - generated images
 * (src/worker/dataset_synthetic.c). No MPI. */
#include "worker/dataset.h"

#include <math.h>

#include "support/check_run.h"
#include "support/data_files.h"

enum { CLASSES = 4, IMAGE = 3 * 16 * 17 };

static data_room room;

static void setup(void)
{
    data_room_init(&room, COH_DATA_SYNTHETIC, (coh_shape){ 3, 16, 17 },
                   CLASSES);
}

static void teardown(void)
{
    data_room_fini(&room);
}

/* image[IMAGE] of one sample of a split. */
static int read_one(coh_split split, int64_t sample, float *image)
{
    coh_dataset *set = NULL;
    ck_assert_int_eq(coh_dataset_open(&room.config, split, room.input, CLASSES,
                                      &set, &room.err),
                     COH_OK);
    coh_batch *batch = data_batch(&room, 1);
    data_read(&room, set, &sample, 1, batch);
    memcpy(image, batch->images, IMAGE * sizeof *image);
    const int label = batch->labels[0];
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
    return label;
}

static double product(const float *a, const float *b)
{
    double sum = 0;
    for (int i = 0; i < IMAGE; i++)
        sum += (double)a[i] * (double)b[i];
    return sum / IMAGE;
}

START_TEST(a_sample_does_not_depend_on_what_was_read_before)
{
    const int64_t samples[3] = { 9, 5, 9 };
    float alone[IMAGE];
    const int label = read_one(COH_SPLIT_TRAIN, 9, alone);
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 3);

    data_read(&room, set, samples, 3, batch);
    ck_assert_int_eq(label, 9 % CLASSES);
    ck_assert_int_eq(batch->labels[1], 5 % CLASSES);
    ck_assert_mem_eq(batch->images, alone, sizeof alone);
    ck_assert_mem_eq(batch->images + 2 * IMAGE, alone, sizeof alone);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

/* Independent noise of deviation 1: products of it average to about 0. */
START_TEST(samples_splits_and_seeds_have_their_own_noise)
{
    float a[IMAGE], other[IMAGE];
    read_one(COH_SPLIT_TRAIN, 1, a);
    ck_assert_double_gt(product(a, a), 0.9);

    read_one(COH_SPLIT_TEST, 1, other);
    ck_assert_double_lt(fabs(product(a, other)), 0.5);
    read_one(COH_SPLIT_TRAIN, 1 + CLASSES, other);
    ck_assert_double_lt(fabs(product(a, other)), 0.5);
    room.config.run.seed = 2;
    read_one(COH_SPLIT_TRAIN, 1, other);
    ck_assert_double_lt(fabs(product(a, other)), 0.5);
}
END_TEST

START_TEST(sizes_are_the_configs)
{
    coh_dataset *set = NULL;
    room.config.data.train_samples = INT64_MAX;
    set = data_open(&room);
    ck_assert_int_eq(coh_dataset_count(set), INT64_MAX);
    coh_dataset_close(&set);
    ck_assert_int_eq(coh_dataset_open(&room.config, COH_SPLIT_VALIDATION,
                                      room.input, CLASSES, &set, &room.err),
                     COH_OK);
    ck_assert_int_eq(coh_dataset_count(set), 10);
    coh_dataset_close(&set);
}
END_TEST

/* What can be learnt from the training set holds on the test set: the mean
 * image of each class, over many samples, tells the classes of others apart
 * far better than chance, but not perfectly. */
START_TEST(classes_can_be_learnt_but_not_by_heart)
{
    enum { EACH = 60, TESTS = 200 };
    static float mean[CLASSES][IMAGE], image[IMAGE];
    int right = 0;
    room.config.data.train_samples = EACH * CLASSES;
    room.config.data.test_samples = TESTS;
    for (int64_t i = 0; i < EACH * CLASSES; i++) {
        const int label = read_one(COH_SPLIT_TRAIN, i, image);
        for (int k = 0; k < IMAGE; k++)
            mean[label][k] += image[k] / EACH;
    }
    for (int64_t i = 0; i < TESTS; i++) {
        const int label = read_one(COH_SPLIT_TEST, i, image);
        int best = 0;
        for (int c = 1; c < CLASSES; c++) {
            if (product(image, mean[c]) > product(image, mean[best]))
                best = c;
        }
        right += best == label;
    }
    ck_assert_int_gt(right, TESTS / 2);
    ck_assert_int_lt(right, TESTS);
}
END_TEST

START_TEST(more_classes_than_the_network_has_are_refused)
{
    coh_dataset *set = NULL;
    room.config.data.classes = CLASSES + 1;
    ck_assert_int_eq(coh_dataset_open(&room.config, COH_SPLIT_TRAIN, room.input,
                                      CLASSES, &set, &room.err),
                     COH_E_CONFIG);
    ck_assert_ptr_nonnull(strstr(room.err.text, "data.classes is 5"));
}
END_TEST

static Suite *dataset_synthetic_suite(void)
{
    Suite *suite = suite_create("dataset_synthetic");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, a_sample_does_not_depend_on_what_was_read_before);
    tcase_add_test(core, samples_splits_and_seeds_have_their_own_noise);
    tcase_add_test(core, sizes_are_the_configs);
    tcase_add_test(core, classes_can_be_learnt_but_not_by_heart);
    tcase_add_test(core, more_classes_than_the_network_has_are_refused);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(dataset_synthetic_suite)
