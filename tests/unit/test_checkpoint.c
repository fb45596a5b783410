/* test_checkpoint.c - whole or not at all (src/common/checkpoint.h). No MPI. */
#include "common/checkpoint.h"

#include <sys/stat.h>
#include <unistd.h>

#include "common/h5file.h"
#include "support/config_text.h"
#include "support/scratch.h"

/* 4 blocks of 16 and one of 3, on two servers. */
enum { PARAMETERS = 67, SERVERS = 2 };
static const coh_plan plan = { .groups = 1,
                               .group_size = 1,
                               .servers = SERVERS,
                               .owners = SERVERS,
                               .parameters = PARAMETERS,
                               .nblocks = 5,
                               .block_count = 16 };
static const coh_rule adam = {
    .kind = COH_RULE_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f
};
static const coh_rule sgd = { .kind = COH_RULE_SGD, .momentum = 0.9f };

static const coh_statistics no_statistics;

static coh_err err;
static coh_config *config;
static coh_shard *shards[SERVERS];
static coh_manifest manifest;

static coh_shard *shard_of(const coh_plan *p, int server, const coh_rule *rule)
{
    coh_shard *shard = NULL;
    ck_assert_int_eq(
        coh_shard_new(p, server, rule, &no_statistics, &shard, &err), COH_OK);
    return shard;
}

/* Two shards with a history: some blocks have more updates than others. */
static void setup(void)
{
    float values[PARAMETERS], gradient[16];

    scratch_make();
    err = COH_ERR_INIT;
    config = config_of(DATA MODEL "optimizer: {rule: adam}\n");
    for (int i = 0; i < PARAMETERS; i++)
        values[i] = 0.1f * (float)i;
    for (int i = 0; i < 16; i++)
        gradient[i] = 1.0f / (float)(i + 3);
    for (int s = 0; s < SERVERS; s++) {
        shards[s] = shard_of(&plan, s, &adam);
        coh_shard_load(shards[s], values);
    }
    for (int b = 0; b < 5; b++) {
        for (int t = 0; t <= b; t++)
            coh_shard_apply(shards[b % SERVERS], b, gradient, 3, 0.1f);
    }
    manifest = (coh_manifest){
        .progress = { 12, 345, 2, 45 },
        .seed = INT64_MAX,
        .parameters = PARAMETERS,
        .fingerprint = 987654321,
        .parts = SERVERS,
        .block_count = 16,
        .rule = COH_RULE_ADAM,
        .best_score = 0.1,
        .best_step = 7,
        .normal = { .channels = 2,
                    .shift = { 0.25f, -1 },
                    .factor = { 3, 0.1f } },
    };
}

static void teardown(void)
{
    for (int s = 0; s < SERVERS; s++)
        coh_shard_destroy(&shards[s]);
    coh_config_destroy(&config);
    scratch_remove();
}

static void must(coh_status status)
{
    ck_assert_msg(status == COH_OK, "%s", err.text);
}

static void save(const char *name)
{
    char tmp[64];
    snprintf(tmp, sizeof tmp, "%s.tmp", name);
    must(coh_checkpoint_begin(scratch_path(tmp), &err));
    for (int s = 0; s < SERVERS; s++)
        must(coh_checkpoint_write_part(scratch_path(tmp), &plan, s, shards[s],
                                       &err));
    must(coh_checkpoint_commit(scratch_path(tmp), scratch_path(name), &manifest,
                               config, &err));
    ck_assert(!coh_path_exists(scratch_path(tmp)));
}

START_TEST(a_part_reads_back_bit_for_bit)
{
    coh_shard *back = shard_of(&plan, _i, &adam);
    const size_t bytes = (size_t)coh_shard_count(back) * sizeof(float);

    save("new");
    must(coh_checkpoint_read_part(scratch_path("new"), &plan, _i, back, &err));
    ck_assert_mem_eq(coh_shard_values(back), coh_shard_values(shards[_i]),
                     bytes);
    for (int i = 0; i < 2; i++)
        ck_assert_mem_eq(coh_shard_slot(back, i), coh_shard_slot(shards[_i], i),
                         bytes);
    for (int b = _i; b < 5; b += SERVERS)
        ck_assert_int_eq(coh_shard_version(back, b), b + 1);
    coh_shard_destroy(&back);
}
END_TEST

START_TEST(the_manifest_reads_back)
{
    coh_manifest back;

    save("new");
    must(coh_checkpoint_read_manifest(scratch_path("new"), &back, &err));
    ck_assert_mem_eq(&back, &manifest, sizeof back);
}
END_TEST

START_TEST(counters_of_more_than_32_bits_read_back)
{
    const int64_t edge = (int64_t)1 << 32;
    coh_shard *part = shard_of(&plan, 0, &adam);
    coh_manifest back;

    manifest.progress = (coh_progress){ edge + 1, 17 * edge, edge - 1, edge };
    manifest.best_step = edge + 2;
    manifest.block_count = edge + 3;
    coh_shard_versions(shards[0])[1] = edge + 4;
    save("step_4294967297");
    must(coh_checkpoint_read_manifest(scratch_path("step_4294967297"), &back,
                                      &err));
    ck_assert_mem_eq(&back, &manifest, sizeof back);
    must(coh_checkpoint_read_part(scratch_path("step_4294967297"), &plan, 0,
                                  part, &err));
    ck_assert_int_eq(coh_shard_versions(part)[1], edge + 4);
    coh_shard_destroy(&part);
}
END_TEST

START_TEST(the_config_reads_back_as_it_is_written)
{
    char *text = NULL, *want = NULL;
    size_t length;

    save("new");
    must(coh_checkpoint_read_config(scratch_path("new"), &text, &err));
    FILE *out = open_memstream(&want, &length);
    coh_config_write(config, out);
    fclose(out);
    ck_assert_str_eq(text, want);
    free(text);
    free(want);
}
END_TEST

/* None is none: checkpoints of before have no such text. */
START_TEST(the_choices_read_back_and_may_be_missing)
{
    static const char *const texts[] = { "choices 2\nend\n", "", NULL };
    char *text = NULL;

    manifest.choices = texts[_i];
    save("new");
    must(coh_checkpoint_read_choices(scratch_path("new"), &text, &err));
    ck_assert_str_eq(text, texts[_i] == NULL ? "" : texts[_i]);
    free(text);
}
END_TEST

START_TEST(weights_are_put_together_from_all_parts)
{
    float values[PARAMETERS];

    save("new");
    must(coh_checkpoint_read_weights(scratch_path("new"), &manifest, values,
                                     &err));
    for (int b = 0; b < 5; b++) {
        const coh_range range = coh_plan_block(&plan, b);
        ck_assert_mem_eq(values + range.first,
                         coh_shard_block(shards[b % SERVERS], b),
                         (size_t)range.count * sizeof(float));
    }
}
END_TEST

START_TEST(a_worker_that_owns_all_saves_all)
{
    coh_plan alone = plan;
    float values[PARAMETERS], back[PARAMETERS];
    alone.servers = alone.owners = 0;
    coh_shard *all = shard_of(&alone, -1, &sgd);

    for (int i = 0; i < PARAMETERS; i++)
        values[i] = (float)i;
    coh_shard_load(all, values);
    manifest.parts = 1;
    must(coh_checkpoint_begin(scratch_path("new.tmp"), &err));
    must(coh_checkpoint_write_part(scratch_path("new.tmp"), &alone, 0, all,
                                   &err));
    must(coh_checkpoint_commit(scratch_path("new.tmp"), scratch_path("new"),
                               &manifest, config, &err));
    must(coh_checkpoint_read_weights(scratch_path("new"), &manifest, back,
                                     &err));
    ck_assert_mem_eq(back, values, sizeof back);
    memset(coh_shard_values(all), 0, sizeof back);
    must(coh_checkpoint_read_part(scratch_path("new"), &alone, 0, all, &err));
    ck_assert_mem_eq(coh_shard_values(all), values, sizeof back);
    coh_shard_destroy(&all);
}
END_TEST

START_TEST(plain_weights_are_good_for_evaluation_but_not_to_resume)
{
    float values[PARAMETERS] = { 1, 2, 3 }, back[PARAMETERS];

    manifest.parts = 1;
    must(coh_checkpoint_begin(scratch_path("best.tmp"), &err));
    must(coh_checkpoint_write_weights(scratch_path("best.tmp"), values,
                                      PARAMETERS, &err));
    must(coh_checkpoint_commit(scratch_path("best.tmp"), scratch_path("best"),
                               &manifest, config, &err));
    must(coh_checkpoint_read_weights(scratch_path("best"), &manifest, back,
                                     &err));
    ck_assert_mem_eq(back, values, sizeof back);
    ck_assert_int_eq(coh_checkpoint_read_part(scratch_path("best"), &plan, 0,
                                              shards[0], &err),
                     COH_E_CONFIG);
}
END_TEST

START_TEST(a_server_that_owns_nothing_has_a_part)
{
    coh_plan many = plan;
    many.servers = many.owners = 9;
    coh_shard *empty = shard_of(&many, 7, &adam);

    must(coh_checkpoint_begin(scratch_path("new.tmp"), &err));
    must(coh_checkpoint_write_part(scratch_path("new.tmp"), &many, 7, empty,
                                   &err));
    must(coh_checkpoint_read_part(scratch_path("new.tmp"), &many, 7, empty,
                                  &err));
    coh_shard_destroy(&empty);
}
END_TEST

START_TEST(a_checkpoint_of_the_same_name_is_replaced)
{
    coh_manifest back;

    save("step_5");
    scratch_write("step_5/part_9.h5", "of another run");
    manifest.seed = 3;
    save("step_5");
    must(coh_checkpoint_read_manifest(scratch_path("step_5"), &back, &err));
    ck_assert_int_eq(back.seed, 3);
    ck_assert(!coh_path_exists(scratch_path("step_5/part_9.h5")));
    ck_assert(!coh_path_exists(scratch_path("step_5.old.tmp")));
}
END_TEST

START_TEST(before_it_is_whole_nobody_takes_it_for_a_checkpoint)
{
    char found[PATH_MAX];

    must(coh_checkpoint_begin(scratch_path("step_3.tmp"), &err));
    must(coh_checkpoint_write_part(scratch_path("step_3.tmp"), &plan, 0,
                                   shards[0], &err));
    ck_assert_int_eq(coh_checkpoint_newest(scratch_folder, found, &err),
                     COH_PENDING);
}
END_TEST

START_TEST(begin_removes_what_a_died_run_left)
{
    must(coh_folder_make(scratch_path("new.tmp"), &err));
    scratch_write("new.tmp/part_7.h5", "half");
    save("new");
    ck_assert(!coh_path_exists(scratch_path("new/part_7.h5")));
}
END_TEST

/* Names in the order of their numbers, not of their letters. */
static void make_some(void)
{
    char found[PATH_MAX];

    ck_assert_int_eq(coh_checkpoint_newest(scratch_folder, found, &err),
                     COH_PENDING);
    save("step_9");
    save("step_100");
    save("step_20");
    must(coh_folder_make(scratch_path("step_300"), &err)); /* no manifest */
    must(coh_folder_make(scratch_path("step_400.tmp"), &err));
    scratch_write("step_400.tmp/manifest.h5", "unfinished");
    must(coh_folder_make(scratch_path("step_x"), &err));
    scratch_write("step_x/manifest.h5", "of somebody else");
}

START_TEST(the_newest_is_the_one_with_the_highest_step)
{
    char found[PATH_MAX];

    make_some();
    must(coh_checkpoint_newest(scratch_folder, found, &err));
    ck_assert_str_eq(found, scratch_path("step_100"));
}
END_TEST

START_TEST(without_a_folder_there_is_no_newest)
{
    char found[PATH_MAX];

    ck_assert_int_eq(coh_checkpoint_newest(scratch_path("none"), found, &err),
                     COH_PENDING);
}
END_TEST

START_TEST(prune_keeps_the_newest_and_removes_what_is_unfinished)
{
    make_some(); /* step_300 has no manifest: not counted, and left alone */
    coh_checkpoint_prune(scratch_folder, 2);
    ck_assert(coh_path_exists(scratch_path("step_100")));
    ck_assert(coh_path_exists(scratch_path("step_20")));
    ck_assert(!coh_path_exists(scratch_path("step_9")));
    ck_assert(!coh_path_exists(scratch_path("step_400.tmp")));
    ck_assert(coh_path_exists(scratch_path("step_x")));
}
END_TEST

START_TEST(a_disk_that_fails_leaves_the_older_checkpoint)
{
    char found[PATH_MAX];
    coh_manifest back;

    save("step_1");
    scratch_write("file", "");
    ck_assert_int_eq(
        coh_checkpoint_begin(scratch_path("file/step_2.tmp"), &err), COH_E_IO);
    ck_assert_int_eq(coh_checkpoint_write_part(scratch_path("file"), &plan, 0,
                                               shards[0], &err),
                     COH_E_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "part_0.h5"));
    ck_assert_int_eq(coh_checkpoint_commit(scratch_path("step_2.tmp"),
                                           scratch_path("step_1"), &manifest,
                                           config, &err),
                     COH_E_IO);
    ck_assert_int_eq(coh_status_exit_code(COH_E_IO), 1);
    must(coh_checkpoint_newest(scratch_folder, found, &err));
    must(coh_checkpoint_read_manifest(found, &back, &err));
}
END_TEST

START_TEST(a_missing_part_is_named)
{
    float values[PARAMETERS];

    save("new");
    ck_assert_int_eq(unlink(scratch_path("new/part_1.h5")), 0);
    ck_assert_int_eq(coh_checkpoint_read_part(scratch_path("new"), &plan, 1,
                                              shards[1], &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "part_1.h5': No such file"));
    ck_assert_int_eq(coh_checkpoint_read_weights(scratch_path("new"), &manifest,
                                                 values, &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "part_1.h5"));
    ck_assert_int_eq(coh_status_exit_code(COH_E_DATA), 3);
}
END_TEST

START_TEST(a_part_too_few_is_noticed)
{
    float values[PARAMETERS];

    save("new");
    manifest.parts = 1;
    ck_assert_int_eq(coh_checkpoint_read_weights(scratch_path("new"), &manifest,
                                                 values, &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "35 of 67 parameters"));
}
END_TEST

/* One part whose table of blocks is `rows`. */
static void write_odd_part(const int64_t *rows, int64_t nrows)
{
    float values[PARAMETERS] = { 0 };
    coh_h5file *file = NULL;

    must(coh_folder_make(scratch_path("odd"), &err));
    must(coh_h5_create(scratch_path("odd/part_0.h5"), &file, &err));
    must(coh_h5_write(file, "values", COH_H5_F32, PARAMETERS, 1, values, &err));
    must(coh_h5_write(file, "blocks", COH_H5_I64, nrows, 3, rows, &err));
    must(coh_h5_close(&file, &err));
}

static const int64_t odd_rows[][3] = {
    { 0, PARAMETERS - 1, 0 }, /* too few */
    { 0, PARAMETERS + 1, 0 }, /* more than there are */
    { 1, PARAMETERS, 0 },     /* past the end */
    { -1, PARAMETERS, 0 },    { 0, -1, 0 }, { INT64_MAX, PARAMETERS, 0 },
};
enum { ODD_ROWS = sizeof odd_rows / sizeof odd_rows[0] };

START_TEST(a_table_of_blocks_that_lies_is_bad_data)
{
    float values[PARAMETERS];

    manifest.parts = 1;
    write_odd_part(odd_rows[_i], 1);
    ck_assert_int_eq(coh_checkpoint_read_weights(scratch_path("odd"), &manifest,
                                                 values, &err),
                     COH_E_DATA);
    must_say(&err, "table of blocks is damaged");
}
END_TEST

/* Whatever a truncated or torn file holds: a message, and no crash. */
START_TEST(a_cut_file_is_refused_at_every_length)
{
    struct stat info;
    float values[PARAMETERS];
    coh_manifest back;

    save("new");
    ck_assert_int_eq(stat(scratch_path("new/part_0.h5"), &info), 0);
    ck_assert_int_eq(
        truncate(scratch_path("new/part_0.h5"), info.st_size * _i / 8), 0);
    ck_assert_int_eq(coh_checkpoint_read_part(scratch_path("new"), &plan, 0,
                                              shards[0], &err),
                     COH_E_DATA);
    ck_assert_ptr_nonnull(strstr(err.text, "part_0.h5"));
    ck_assert_int_eq(coh_checkpoint_read_weights(scratch_path("new"), &manifest,
                                                 values, &err),
                     COH_E_DATA);
    ck_assert_int_eq(stat(scratch_path("new/manifest.h5"), &info), 0);
    ck_assert_int_eq(
        truncate(scratch_path("new/manifest.h5"), info.st_size * _i / 8), 0);
    ck_assert_int_eq(
        coh_checkpoint_read_manifest(scratch_path("new"), &back, &err),
        COH_E_DATA);
}
END_TEST

START_TEST(another_topology_is_refused_with_the_mending)
{
    coh_plan other = plan;
    if (_i == 0)
        other.servers = other.owners = 3;
    if (_i == 1)
        other.block_count = 32, other.nblocks = 3;
    if (_i == 2)
        other.parameters = 64, other.nblocks = 4;
    coh_shard *shard = shard_of(&other, 0, &adam);

    save("new");
    ck_assert_int_eq(
        coh_checkpoint_read_part(scratch_path("new"), &other, 0, shard, &err),
        COH_E_CONFIG);
    ck_assert_ptr_nonnull(
        strstr(err.text, "servers, exchange.placement and block"));
    ck_assert_ptr_nonnull(strstr(err.text, scratch_path("new")));
    ck_assert_int_eq(coh_status_exit_code(COH_E_CONFIG), 2);
    coh_shard_destroy(&shard);
}
END_TEST

START_TEST(another_update_rule_is_refused)
{
    coh_shard *shard = shard_of(&plan, 0, &sgd);

    save("new");
    ck_assert_int_eq(
        coh_checkpoint_read_part(scratch_path("new"), &plan, 0, shard, &err),
        COH_E_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "optimizer.rule"));
    must(coh_checkpoint_begin(scratch_path("x.tmp"), &err));
    must(coh_checkpoint_write_part(scratch_path("x.tmp"), &plan, 0, shard,
                                   &err));
    ck_assert_int_eq(coh_checkpoint_read_part(scratch_path("x.tmp"), &plan, 0,
                                              shards[0], &err),
                     COH_E_CONFIG);
    coh_shard_destroy(&shard);
}
END_TEST

static Suite *checkpoint_suite(void)
{
    Suite *suite = suite_create("checkpoint");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_loop_test(core, a_part_reads_back_bit_for_bit, 0, SERVERS);
    tcase_add_test(core, the_manifest_reads_back);
    tcase_add_test(core, counters_of_more_than_32_bits_read_back);
    tcase_add_test(core, the_config_reads_back_as_it_is_written);
    tcase_add_loop_test(core, the_choices_read_back_and_may_be_missing, 0, 3);
    tcase_add_test(core, weights_are_put_together_from_all_parts);
    tcase_add_test(core, a_worker_that_owns_all_saves_all);
    tcase_add_test(core,
                   plain_weights_are_good_for_evaluation_but_not_to_resume);
    tcase_add_test(core, a_server_that_owns_nothing_has_a_part);
    suite_add_tcase(suite, core);

    TCase *names = tcase_create("names");
    tcase_add_checked_fixture(names, setup, teardown);
    tcase_add_test(names, a_checkpoint_of_the_same_name_is_replaced);
    tcase_add_test(names, before_it_is_whole_nobody_takes_it_for_a_checkpoint);
    tcase_add_test(names, begin_removes_what_a_died_run_left);
    tcase_add_test(names, the_newest_is_the_one_with_the_highest_step);
    tcase_add_test(names, without_a_folder_there_is_no_newest);
    tcase_add_test(names,
                   prune_keeps_the_newest_and_removes_what_is_unfinished);
    suite_add_tcase(suite, names);

    TCase *faults = tcase_create("faults");
    tcase_add_checked_fixture(faults, setup, teardown);
    tcase_add_test(faults, a_disk_that_fails_leaves_the_older_checkpoint);
    tcase_add_test(faults, a_missing_part_is_named);
    tcase_add_test(faults, a_part_too_few_is_noticed);
    tcase_add_loop_test(faults, a_table_of_blocks_that_lies_is_bad_data, 0,
                        ODD_ROWS);
    tcase_add_loop_test(faults, a_cut_file_is_refused_at_every_length, 0, 8);
    tcase_add_loop_test(faults, another_topology_is_refused_with_the_mending, 0,
                        3);
    tcase_add_test(faults, another_update_rule_is_refused);
    suite_add_tcase(suite, faults);
    return suite;
}

CHECK_MAIN(checkpoint_suite)
