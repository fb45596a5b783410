/* test_json.c - JSON as others read it (src/common/json.h). No MPI. */
#include "common/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check_run.h"

static char *text;
static size_t length;
static FILE *out;
static coh_json json;

static void begin(bool is_line)
{
    out = open_memstream(&text, &length);
    coh_json_init(&json, out, is_line);
}

static void expect(const char *want)
{
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_str_eq(text, want);
    free(text);
}

START_TEST(a_line_holds_one_object)
{
    begin(true);
    coh_json_open(&json, NULL, '{');
    coh_json_int(&json, "step", INT64_MIN);
    coh_json_real(&json, "loss", 0.5);
    coh_json_text(&json, "why", "");
    coh_json_close(&json, '{');
    coh_json_init(&json, out, true);
    coh_json_open(&json, NULL, '{');
    coh_json_close(&json, '{');
    expect("{\"step\": -9223372036854775808, \"loss\": 0.5, "
           "\"why\": \"\"}\n{}\n");
}
END_TEST

START_TEST(objects_and_lists_nest)
{
    begin(false);
    coh_json_open(&json, NULL, '{');
    coh_json_open(&json, "rows", '[');
    coh_json_open(&json, NULL, '[');
    coh_json_int(&json, NULL, 1);
    coh_json_int(&json, NULL, 2);
    coh_json_close(&json, '[');
    coh_json_open(&json, NULL, '{');
    coh_json_close(&json, '{');
    coh_json_close(&json, '[');
    coh_json_open(&json, "none", '[');
    coh_json_close(&json, '[');
    coh_json_int(&json, "last", 3);
    coh_json_close(&json, '{');
    expect("{\n  \"rows\": [\n    [\n      1,\n      2\n    ],\n    {}\n  ],"
           "\n  \"none\": [],\n  \"last\": 3\n}\n");
}
END_TEST

START_TEST(quotes_backslashes_and_control_characters_are_escaped)
{
    begin(true);
    coh_json_open(&json, NULL, '[');
    coh_json_text(&json, NULL, "a\"b\\c\n\t\x01/\xc3\xa9");
    coh_json_close(&json, '[');
    expect("[\"a\\\"b\\\\c\\u000a\\u0009\\u0001/\xc3\xa9\"]\n");
}
END_TEST

START_TEST(keys_are_escaped_too)
{
    begin(true);
    coh_json_open(&json, NULL, '{');
    coh_json_int(&json, "a\"b", 1);
    coh_json_close(&json, '{');
    expect("{\"a\\\"b\": 1}\n");
}
END_TEST

START_TEST(numbers_that_are_none_become_null)
{
    begin(true);
    coh_json_open(&json, NULL, '[');
    coh_json_real(&json, NULL, NAN);
    coh_json_real(&json, NULL, INFINITY);
    coh_json_real(&json, NULL, -INFINITY);
    coh_json_real(&json, NULL, 1e300);
    coh_json_close(&json, '[');
    expect("[null, null, null, 1e+300]\n");
}
END_TEST

/* Nine digits tell every float from its neighbours. */
START_TEST(a_float_comes_back_as_it_was)
{
    const float value = 0.1f + 1e-8f;
    float back;

    begin(true);
    coh_json_open(&json, NULL, '[');
    coh_json_real(&json, NULL, value);
    coh_json_close(&json, '[');
    fclose(out);
    ck_assert_int_eq(sscanf(text, "[%f]", &back), 1);
    ck_assert_float_eq(back, value);
    free(text);
}
END_TEST

static Suite *json_suite(void)
{
    Suite *suite = suite_create("json");
    TCase *core = tcase_create("core");
    tcase_add_test(core, a_line_holds_one_object);
    tcase_add_test(core, objects_and_lists_nest);
    tcase_add_test(core, quotes_backslashes_and_control_characters_are_escaped);
    tcase_add_test(core, keys_are_escaped_too);
    tcase_add_test(core, numbers_that_are_none_become_null);
    tcase_add_test(core, a_float_comes_back_as_it_was);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(json_suite)
