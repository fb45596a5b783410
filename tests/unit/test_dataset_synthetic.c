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

/* --- targets ------------------------------------------------------------ */

enum { GRID = 8, CELLS = GRID * GRID };

/* Where each target lies in a row: place [2], size [2], object [1], kind [1],
 * map [CLASSES]; then one label for the whole image. */
static const coh_target targets[] = {
    { .name = "place", .shape = { 2, GRID, GRID }, .first = 0 },
    { .name = "size", .shape = { 2, GRID, GRID }, .first = 2 * CELLS },
    { .name = "object",
      .shape = { 1, GRID, GRID },
      .first = 4 * CELLS,
      .classes = 2,
      .is_mask = true },
    { .name = "kind",
      .shape = { 1, GRID, GRID },
      .first = 5 * CELLS,
      .classes = CLASSES },
    { .name = "map",
      .shape = { CLASSES, GRID, GRID },
      .first = 6 * CELLS,
      .is_map = true },
    { .name = "whole",
      .shape = { 1, 1, 1 },
      .first = (6 + CLASSES) * CELLS,
      .classes = CLASSES },
};
enum { T = (6 + CLASSES) * CELLS + 1 };

static const coh_model aimed = { .ntargets = 6,
                                 .targets = (coh_target *)targets,
                                 .target_count = T };

/* A batch of the samples [0, count) of a set with targets. */
static coh_batch *read_targets(int64_t count)
{
    room.config.data.train_samples = 64;
    coh_dataset *set = data_open(&room);
    coh_batch *batch = NULL;
    int64_t samples[64];

    ck_assert_int_eq(coh_dataset_aim(set, &aimed, &room.err), COH_OK);
    ck_assert_int_eq(coh_dataset_targets(set), T);
    ck_assert_int_eq(coh_batch_new(room.input, T, 64, &batch, NULL), COH_OK);
    for (int64_t i = 0; i < count; i++)
        samples[i] = i;
    data_read(&room, set, samples, count, batch);
    coh_dataset_close(&set);
    return batch;
}

START_TEST(targets_tell_of_the_same_objects)
{
    coh_batch *batch = read_targets(40);
    int objects = 0;

    for (int64_t i = 0; i < 40 * CELLS; i++) {
        const float *t = batch->targets + i / CELLS * T;
        const int64_t c = i % CELLS;
        const float kind = t[5 * CELLS + c];
        if (t[4 * CELLS + c] == 0) {
            ck_assert_float_eq(kind, -1);
            ck_assert_float_eq(t[c], 0);
            ck_assert_float_eq(t[6 * CELLS + c], 0);
            continue;
        }
        objects++;
        ck_assert_float_eq(t[4 * CELLS + c], 1);
        ck_assert(kind >= 0 && kind < CLASSES);
        ck_assert(t[c] >= 0 && t[c] < 1 && t[CELLS + c] >= 0);
        /* 1/16 to 1/4 of the image: 1/2 to 2 cells */
        ck_assert(t[2 * CELLS + c] >= -1 && t[2 * CELLS + c] <= 1);
        ck_assert(t[3 * CELLS + c] >= -1 && t[3 * CELLS + c] <= 1);
        for (int k = 0; k < CLASSES; k++)
            ck_assert(k != (int)kind || t[(6 + k) * CELLS + c] == 1);
    }
    ck_assert(objects > 40 && objects <= 4 * 40);
    coh_batch_destroy(&batch);
}
END_TEST

START_TEST(a_target_of_one_cell_is_the_samples_class)
{
    coh_batch *batch = read_targets(40);

    for (int64_t b = 0; b < 40; b++) {
        ck_assert(batch->is_labelled[b]);
        ck_assert_int_eq((int)batch->targets[b * T + T - 1], batch->labels[b]);
    }
    ck_assert(!batch->is_labelled[40]); /* padding */
    ck_assert_float_eq(batch->targets[40 * T + T - 1], 0);
    coh_batch_destroy(&batch);
}
END_TEST

START_TEST(targets_are_a_function_of_seed_and_sample)
{
    coh_batch *one = read_targets(20), *two = read_targets(30);

    ck_assert_mem_eq(one->targets, two->targets, 20 * T * sizeof(float));
    ck_assert_mem_eq(one->images, two->images, 20 * IMAGE * sizeof(float));
    coh_batch_destroy(&two);
    room.config.run.seed = 2;
    two = read_targets(20);
    ck_assert_mem_ne(one->targets, two->targets, 20 * T * sizeof(float));
    coh_batch_destroy(&one);
    coh_batch_destroy(&two);
}
END_TEST

/* Of 64 samples with probability 1/2: 32 +- 4 standard deviations of 4. */
START_TEST(a_share_of_the_training_set_has_no_labels)
{
    int labelled = 0;

    room.config.data.unlabelled = 0.5;
    coh_batch *batch = read_targets(64);
    for (int64_t b = 0; b < 64; b++) {
        labelled += batch->is_labelled[b];
        for (int64_t i = 0; i < T && !batch->is_labelled[b]; i++)
            ck_assert_float_eq(batch->targets[b * T + i], 0);
    }
    ck_assert(labelled > 16 && labelled < 48);
    coh_batch_destroy(&batch);
}
END_TEST

/* An object lifts its channels: the image is not the one without targets. */
START_TEST(objects_are_seen_in_the_image)
{
    float plain[IMAGE];
    coh_batch *batch = read_targets(1);
    int changed = 0;

    read_one(COH_SPLIT_TRAIN, 0, plain);
    for (int i = 0; i < IMAGE; i++)
        changed += batch->images[i] != plain[i];
    ck_assert(changed > 0 && changed < IMAGE);
    coh_batch_destroy(&batch);
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

    TCase *aims = tcase_create("targets");
    tcase_add_checked_fixture(aims, setup, teardown);
    tcase_add_test(aims, targets_tell_of_the_same_objects);
    tcase_add_test(aims, a_target_of_one_cell_is_the_samples_class);
    tcase_add_test(aims, targets_are_a_function_of_seed_and_sample);
    tcase_add_test(aims, a_share_of_the_training_set_has_no_labels);
    tcase_add_test(aims, objects_are_seen_in_the_image);
    suite_add_tcase(suite, aims);
    return suite;
}

CHECK_MAIN(dataset_synthetic_suite)
