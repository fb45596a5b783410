/* test_loader.c - batches read ahead (src/worker/loader.h). No MPI. */
#include "worker/loader.h"

#include <dirent.h>
#include <unistd.h>

#include "common/rng.h"
#include "support/check_run.h"
#include "support/data_files.h"

static data_room room;
static coh_dataset *set;
static coh_loader *loader;

static void setup(void)
{
    data_room_init(&room, COH_DATA_SYNTHETIC, (coh_shape){ 1, 2, 2 }, 3);
}

static void teardown(void)
{
    coh_loader_destroy(&loader);
    coh_dataset_close(&set);
    data_room_fini(&room);
}

static void start(int64_t samples, int64_t capacity, int64_t depth,
                  bool shuffled)
{
    room.config.data.train_samples = samples;
    set = data_open(&room);
    ck_assert_int_eq(coh_loader_new(set, room.input, capacity, depth, 7,
                                    shuffled, &loader, &room.err),
                     COH_OK);
}

static void ask(uint32_t epoch, int64_t first, int64_t count)
{
    const coh_piece piece = { epoch, first, count };
    ck_assert_int_eq(coh_loader_ask(loader, piece, &room.err), COH_OK);
}

static coh_batch *take(void)
{
    coh_batch *batch = NULL;
    ck_assert_int_eq(coh_loader_take(loader, &batch, &room.err), COH_OK);
    return batch;
}

static const int64_t sizes[][2] = { /* samples, batch */
                                    { 1, 1 },   { 1, 4 },   { 7, 3 },
                                    { 64, 16 }, { 65, 16 }, { 997, 10 },
                                    { 31, 31 }, { 30, 31 }
};
enum { NSIZES = sizeof sizes / sizeof sizes[0] };

/* The sizes with a thread, and then again without. */
START_TEST(an_epoch_shows_every_sample_exactly_once)
{
    const int64_t n = sizes[_i % NSIZES][0], batch_size = sizes[_i % NSIZES][1];
    int seen[1000] = { 0 };
    start(n, batch_size, _i < NSIZES ? 3 : 0, true);

    for (uint32_t epoch = 0; epoch < 2; epoch++) {
        for (int64_t i = 0; i < n; i += batch_size)
            ask(epoch, i, n - i < batch_size ? n - i : batch_size);
        for (int64_t i = 0; i < n; i += batch_size) {
            coh_batch *batch = take();
            ck_assert_uint_eq(batch->epoch, epoch);
            for (int64_t k = 0; k < batch->count; k++) {
                const int64_t sample = batch->samples[k];
                ck_assert_int_eq(sample, coh_rng_permute(7, epoch, n, i + k));
                ck_assert_int_eq(batch->labels[k], sample % 3);
                seen[sample]++;
            }
            coh_loader_give(loader, batch);
        }
        for (int64_t i = 0; i < n; i++)
            ck_assert_int_eq(seen[i], (int)epoch + 1);
    }
}
END_TEST

static const int64_t depths[] = { 4, 1, 0 }; /* 0: no thread */

START_TEST(batches_come_in_the_order_asked)
{
    start(100, 1, depths[_i], false);
    for (int64_t i = 0; i < 100; i++)
        ask(0, i * 37 % 100, 1);
    for (int64_t i = 0; i < 100; i++) {
        coh_batch *batch = take();
        ck_assert_int_eq(batch->samples[0], i * 37 % 100);
        coh_loader_give(loader, batch);
    }
}
END_TEST

START_TEST(all_batches_may_be_held_at_once)
{
    enum { DEPTH = 3 };
    coh_batch *held[DEPTH];
    start(6, 1, DEPTH, false);
    for (int64_t i = 0; i < 6; i++)
        ask(0, i, 1);
    for (int i = 0; i < DEPTH; i++)
        held[i] = take();
    for (int i = 0; i < DEPTH; i++) /* none was used for a later piece */
        ck_assert_int_eq(held[i]->samples[0], i);
    for (int i = DEPTH - 1; i >= 0; i--)
        coh_loader_give(loader, held[i]);
    for (int64_t i = DEPTH; i < 6; i++) {
        coh_batch *batch = take();
        ck_assert_int_eq(batch->samples[0], i);
        coh_loader_give(loader, batch);
    }
}
END_TEST

START_TEST(a_piece_of_nothing_is_a_batch_of_padding)
{
    start(5, 2, 1, true);
    ask(3, 5, 0);
    coh_batch *batch = take();
    ck_assert_int_eq(batch->count, 0);
    ck_assert_uint_eq(batch->epoch, 3);
    ck_assert_float_eq(batch->loss_weights[0], 0);
    coh_loader_give(loader, batch);
}
END_TEST

/* Sample 1 of four has no logarithm. */
START_TEST(an_unreadable_piece_fails_in_its_place_and_once)
{
    const uint32_t image_dims[3] = { 4, 2, 2 }, label_dims[1] = { 4 };
    const signed char images[16] = { 1, 1, 1, 1, 1, -1, 1, 1,
                                     1, 1, 1, 1, 1, 1,  1, 1 };
    const unsigned char labels[4] = { 0, 1, 2, 0 };
    coh_batch *batch = NULL;
    idx_write(&room, "images", 0x09, 3, image_dims, images, sizeof images);
    idx_write(&room, "labels", 0x08, 1, label_dims, labels, sizeof labels);
    data_add_train(&room, "images");
    data_add_train_labels(&room, "labels");
    room.config.data.kind = COH_DATA_IDX;
    room.config.data.log1p = true;
    /* one batch: the failed piece must give it back */
    start(0, 1, 1 - _i, false);

    for (int64_t i = 0; i < 4; i++)
        ask(0, i, 1);
    for (int64_t i = 0; i < 4; i++) {
        if (i == 1) {
            ck_assert_int_eq(coh_loader_take(loader, &batch, &room.err),
                             COH_E_DATA);
            ck_assert_ptr_nonnull(strstr(room.err.text, "sample 1"));
            continue;
        }
        batch = take();
        ck_assert_int_eq(batch->samples[0], i);
        coh_loader_give(loader, batch);
    }
}
END_TEST

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    ck_assert_ptr_nonnull(tasks);
    while (readdir(tasks) != NULL)
        count++;
    closedir(tasks);
    return count;
}

START_TEST(nothing_is_read_ahead_without_a_thread)
{
    const int before = count_threads();
    start(6, 2, _i, true);
    ask(0, 0, 2);
    if (_i == 0)
        ck_assert_int_eq(count_threads(), before);
    else /* a sanitizer may begin one of its own with the first */
        ck_assert_int_gt(count_threads(), before);
    coh_loader_give(loader, take());
}
END_TEST

/* With what: 0 nothing, 1 pieces asked, 2 a batch held, 3 reading; from 4 on
 * the same without a thread. */
START_TEST(a_loader_may_be_destroyed_at_any_moment)
{
    const int with = _i % 4;
    if (with == 3)
        room.input = (coh_shape){ 3, 400, 400 };
    start(1000, 2, _i < 4 ? 2 : 0, true);
    for (int64_t i = 0; i < 500 && with > 0; i++)
        ask(0, 2 * i, 2);
    if (with == 2)
        (void)take();
    if (with == 3)
        usleep(1000);
    coh_loader_destroy(&loader);
    ck_assert_ptr_null(loader);
}
END_TEST

static Suite *loader_suite(void)
{
    Suite *suite = suite_create("loader");
    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_loop_test(core, an_epoch_shows_every_sample_exactly_once, 0,
                        2 * NSIZES);
    tcase_add_loop_test(core, batches_come_in_the_order_asked, 0,
                        sizeof depths / sizeof depths[0]);
    tcase_add_test(core, all_batches_may_be_held_at_once);
    tcase_add_test(core, a_piece_of_nothing_is_a_batch_of_padding);
    tcase_add_loop_test(core, an_unreadable_piece_fails_in_its_place_and_once,
                        0, 2);
    tcase_add_loop_test(core, nothing_is_read_ahead_without_a_thread, 0, 2);
    tcase_add_loop_test(core, a_loader_may_be_destroyed_at_any_moment, 0, 8);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(loader_suite)
