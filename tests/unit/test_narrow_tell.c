/* test_narrow_tell.c - what 16 bits did to values, told
 * (src/common/narrow_tell.h). No MPI. */
#include "common/narrow_tell.h"

#include "support/config_text.h"

static coh_config *config;
static char text[COH_NARROW_TEXT];

static void begin(const char *exchange)
{
    char all[1024];

    snprintf(all, sizeof all, DATA MODEL "servers: 1\nexchange: {%s}\n",
             exchange);
    config = config_of(all);
}

static void teardown(void)
{
    coh_config_destroy(&config);
}

static char *written(const coh_narrow_sums *sums)
{
    char *out = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&out, &size);
    coh_json json;

    coh_json_init(&json, file, true);
    coh_json_open(&json, NULL, '{');
    coh_narrow_write(config, sums, &json);
    coh_json_close(&json, '{');
    ck_assert_int_eq(fclose(file), 0);
    return out;
}

START_TEST(what_is_narrow_is_in_the_summary)
{
    const coh_narrow_sums sums = { { 10, 1, 2 }, { 30, 3, 4 } };

    begin("push: float16, reply: bfloat16");
    char *out = written(&sums);
    ck_assert_str_eq(out,
                     "{\"narrowed\": {\"push\": {\"format\": \"float16\", "
                     "\"values\": 10, \"infinite\": 1, \"zeroed\": 2}, "
                     "\"reply\": {\"format\": \"bfloat16\", \"values\": 30, "
                     "\"infinite\": 3, \"zeroed\": 4}}}\n");
    free(out);
}
END_TEST

START_TEST(what_is_float32_is_not)
{
    const coh_narrow_sums sums = { { 10, 0, 0 }, { 0, 0, 0 } };

    begin("push: bfloat16");
    char *out = written(&sums);
    ck_assert_ptr_null(strstr(out, "reply"));
    free(out);
    coh_config_destroy(&config);
    begin("timeout: 9");
    out = written(&sums);
    ck_assert_str_eq(out, "{}\n");
    free(out);
}
END_TEST

START_TEST(one_infinite_value_is_warned_of)
{
    const coh_narrow_sums sums = { { 0, 0, 0 }, { 70000, 1, 0 } };

    begin("reply: bfloat16");
    ck_assert(coh_narrow_warn(config, &sums, text));
    ck_assert_str_eq(text, "of 70000 values answered as bfloat16, 1 became "
                           "infinite and 0 became 0; write exchange: {reply: "
                           "float32}");
}
END_TEST

START_TEST(a_few_zeros_are_not)
{
    coh_narrow_sums sums = { { 70000, 0, 70 }, { 0, 0, 0 } };

    begin("push: float16");
    ck_assert(!coh_narrow_warn(config, &sums, text));
    sums.pushed.zeroed = 71;
    ck_assert(coh_narrow_warn(config, &sums, text));
    ck_assert_str_eq(text, "of 70000 values pushed as float16, 0 became "
                           "infinite and 71 became 0; write exchange: {push: "
                           "float32}, or bfloat16");
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("narrow_tell");
    TCase *core = tcase_create("core");

    tcase_add_checked_fixture(core, NULL, teardown);
    tcase_add_test(core, what_is_narrow_is_in_the_summary);
    tcase_add_test(core, what_is_float32_is_not);
    tcase_add_test(core, one_infinite_value_is_warned_of);
    tcase_add_test(core, a_few_zeros_are_not);
    suite_add_tcase(s, core);
    return s;
}

CHECK_MAIN(suite)
