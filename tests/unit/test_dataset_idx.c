/* test_dataset_idx.c - idx files (src/worker/dataset_idx.c). No MPI. */
#include "worker/dataset.h"

#include <unistd.h>

#include <zlib.h>

#include "support/check_run.h"
#include "support/data_files.h"

/* Three images of 1x2x2, and their labels. */
static const uint32_t image_dims[3] = { 3, 2, 2 }, label_dims[1] = { 3 };
static const unsigned char images[12] = { 0,  1,  2,   3,   10, 11,
                                          12, 13, 255, 254, 0,  7 };
static const unsigned char labels[3] = { 0, 2, 1 };

static data_room room;

static void setup(void)
{
    data_room_init(&room, COH_DATA_IDX, (coh_shape){ 1, 2, 2 }, 3);
    idx_write(&room, "images", 0x08, 3, image_dims, images, sizeof images);
    idx_write(&room, "labels", 0x08, 1, label_dims, labels, sizeof labels);
    data_add_train(&room, "images");
    data_add_train_labels(&room, "labels");
}

static void teardown(void)
{
    data_room_fini(&room);
}

/* The set holds images and labels as written above. */
static void check_content(void)
{
    const int64_t samples[4] = { 2, 0, 1, 2 };
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 4);

    ck_assert_int_eq(coh_dataset_count(set), 3);
    data_read(&room, set, samples, 4, batch);
    for (int row = 0; row < 4; row++) {
        for (int i = 0; i < 4; i++)
            ck_assert_float_eq(batch->images[4 * row + i],
                               images[4 * samples[row] + i]);
        ck_assert_int_eq(batch->labels[row], labels[samples[row]]);
        ck_assert_int_eq(batch->samples[row], samples[row]);
    }
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}

/* Pack a file of the room in place. */
static void pack(const char *name)
{
    char path[DATA_PATH_SIZE];
    unsigned char bytes[4096];
    FILE *file = fopen(data_path(&room, name, path), "rb");
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    gzFile gz = gzopen(path, "wb");
    ck_assert_int_eq(gzwrite(gz, bytes, (unsigned)size), (int)size);
    ck_assert_int_eq(gzclose(gz), Z_OK);
}

/* Change byte `at` of a file (from its end if negative), or cut there. */
static void damage(const char *name, long at, bool cut)
{
    char path[DATA_PATH_SIZE];
    FILE *file = fopen(data_path(&room, name, path), "r+b");
    fseek(file, at, at < 0 ? SEEK_END : SEEK_SET);
    const long where = ftell(file);
    const int was = fgetc(file);
    fseek(file, where, SEEK_SET);
    if (!cut)
        fputc(was ^ 0x55, file);
    fclose(file);
    if (cut)
        ck_assert_int_eq(truncate(path, where), 0);
}

START_TEST(bytes_come_as_their_values)
{
    check_content();
}
END_TEST

START_TEST(gzip_is_read_as_well)
{
    pack("images");
    pack("labels");
    check_content();
}
END_TEST

START_TEST(rank_4_has_channels)
{
    const uint32_t dims[4] = { 3, 4, 1, 1 };
    idx_write(&room, "images", 0x08, 4, dims, images, sizeof images);
    room.input = (coh_shape){ 4, 1, 1 };
    check_content();
}
END_TEST

/* 1 and -2 as the four other types have them, and a third value of 0. */
static const struct {
    int type;
    size_t size;
    unsigned char bytes[24];
} types[] = {
    { 0x09, 3, { 1, 0xfe, 0 } },
    { 0x0B, 6, { 0, 1, 0xff, 0xfe, 0, 0 } },
    { 0x0C, 12, { 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xfe } },
    { 0x0D, 12, { 0x3f, 0x80, 0, 0, 0xc0, 0 } },
    { 0x0E, 24, { 0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0 } },
};

START_TEST(every_type_is_big_endian)
{
    const uint32_t dims[3] = { 3, 1, 1 };
    const int64_t samples[3] = { 0, 1, 2 };
    idx_write(&room, "images", types[_i].type, 3, dims, types[_i].bytes,
              types[_i].size);
    room.input = (coh_shape){ 1, 1, 1 };
    coh_dataset *set = data_open(&room);
    coh_batch *batch = data_batch(&room, 3);

    data_read(&room, set, samples, 3, batch);
    ck_assert_float_eq(batch->images[0], 1.0f);
    ck_assert_float_eq(batch->images[1], -2.0f);
    ck_assert_float_eq(batch->images[2], 0.0f);
    coh_batch_destroy(&batch);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(another_kind_of_file_is_refused)
{
    data_write(&room, "images", "\x89HDF\r\n\x1a\n", 8);
    data_refuse(&room, "images", "89 48 44 46", "not an idx file");
}
END_TEST

START_TEST(a_cut_file_is_refused)
{
    if (_i == 1)
        pack("images");
    damage("images", -3, true);
    data_refuse(&room, "images", _i == 1 ? "unexpected end" : "cut short");
}
END_TEST

START_TEST(a_file_without_bytes_is_refused)
{
    data_write(&room, "images", "", 0);
    data_refuse(&room, "images", "cut short");
}
END_TEST

START_TEST(bytes_after_the_end_are_refused)
{
    unsigned char bytes[64] = { 0 };
    const size_t head = idx_header(0x08, 3, image_dims, bytes);
    data_write(&room, "images", bytes, head + sizeof images + 1);
    if (_i == 1)
        pack("images");
    data_refuse(&room, "images", "bytes follow");
}
END_TEST

START_TEST(a_wrong_checksum_is_refused)
{
    pack("images");
    damage("images", -8, false);
    data_refuse(&room, "images", "damaged gzip data");
}
END_TEST

/* The memory that 2^59 bytes need cannot be had: the message shows that
 * nobody tried. */
START_TEST(a_header_that_lies_allocates_nothing)
{
    const uint32_t dims[3] = { 1u << 31, 1u << 16, 1u << 12 };
    idx_write(&room, "images", 0x08, 3, dims, images, sizeof images);
    if (_i == 1)
        pack("images");
    data_refuse(&room, "images", _i == 1 ? "cut short" : "bytes");
}
END_TEST

START_TEST(a_header_beyond_64_bits_is_refused)
{
    const uint32_t dims[3] = { UINT32_MAX, UINT32_MAX, UINT32_MAX };
    idx_write(&room, "images", 0x08, 3, dims, images, sizeof images);
    data_refuse(&room, "images", "more elements than any file");
}
END_TEST

START_TEST(images_and_labels_must_be_as_many)
{
    const uint32_t two[1] = { 2 };
    idx_write(&room, "labels", 0x08, 1, two, labels, 2);
    data_refuse(&room, "3 images", "2 labels", "/labels");
}
END_TEST

START_TEST(a_label_beyond_the_classes_is_named)
{
    room.classes = 2;
    data_refuse(&room, "/labels", "sample 1", "label 2", "0 to 1");
}
END_TEST

START_TEST(swapped_files_are_noticed)
{
    idx_write(&room, "images", 0x08, 1, label_dims, labels, sizeof labels);
    data_refuse(&room, "1 dimension;", "swapped");
}
END_TEST

START_TEST(targets_are_refused_with_what_to_do)
{
    coh_target target = { .name = "box", .shape = { 1, 1, 1 } };
    const coh_model model = { .ntargets = 1,
                              .targets = &target,
                              .target_count = 1 };
    const coh_model none = { 0 };
    coh_dataset *set = data_open(&room);

    ck_assert_int_eq(coh_dataset_aim(set, &model, &room.err), COH_E_CONFIG);
    ck_assert_ptr_nonnull(strstr(room.err.text, "has the target box"));
    ck_assert_ptr_nonnull(strstr(room.err.text, "data.kind: synthetic"));
    ck_assert_int_eq(coh_dataset_aim(set, &none, &room.err), COH_OK);
    coh_dataset_close(&set);
}
END_TEST

START_TEST(each_images_file_needs_a_labels_file)
{
    room.config.data.train_labels.count = 0;
    data_refuse(&room, "data.train names 1", "data.train_labels 0");
}
END_TEST

static Suite *dataset_idx_suite(void)
{
    Suite *suite = suite_create("dataset_idx");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, bytes_come_as_their_values);
    tcase_add_test(core, gzip_is_read_as_well);
    tcase_add_test(core, rank_4_has_channels);
    tcase_add_loop_test(core, every_type_is_big_endian, 0,
                        sizeof types / sizeof types[0]);
    suite_add_tcase(suite, core);

    TCase *edges = tcase_create("edges");
    tcase_add_checked_fixture(edges, setup, teardown);
    tcase_add_test(edges, another_kind_of_file_is_refused);
    tcase_add_loop_test(edges, a_cut_file_is_refused, 0, 2);
    tcase_add_test(edges, a_file_without_bytes_is_refused);
    tcase_add_loop_test(edges, bytes_after_the_end_are_refused, 0, 2);
    tcase_add_test(edges, a_wrong_checksum_is_refused);
    tcase_add_loop_test(edges, a_header_that_lies_allocates_nothing, 0, 2);
    tcase_add_test(edges, a_header_beyond_64_bits_is_refused);
    tcase_add_test(edges, images_and_labels_must_be_as_many);
    tcase_add_test(edges, a_label_beyond_the_classes_is_named);
    tcase_add_test(edges, swapped_files_are_noticed);
    tcase_add_test(edges, targets_are_refused_with_what_to_do);
    tcase_add_test(edges, each_images_file_needs_a_labels_file);
    suite_add_tcase(suite, edges);
    return suite;
}

CHECK_MAIN(dataset_idx_suite)
