/* test_utf8.c - what utf8.h promises. */
#include "common/utf8.h"

#include <string.h>

#include "support/check_run.h"

static const struct {
    const char *text;
    int length;
    uint32_t point;
} characters[] = {
    { "a", 1, 'a' },
    { "\x7F", 1, 0x7F },
    { "\xC2\x80", 2, 0x80 },
    { "\xDF\xBF", 2, 0x7FF },
    { "\xE0\xA0\x80", 3, 0x800 },
    { "\xED\x9F\xBF", 3, 0xD7FF },
    { "\xEF\xBF\xBD", 3, 0xFFFD },
    { "\xF0\x90\x80\x80", 4, 0x10000 },
    { "\xF4\x8F\xBF\xBF", 4, 0x10FFFF },
    { "", 0, 0 },
    { "\x80", 0, 0 },     /* a tail alone */
    { "\xC3", 0, 0 },     /* a head alone */
    { "\xE2\x82", 0, 0 }, /* cut short */
    { "\xC3(", 0, 0 },    /* a wrong tail */
    { "\xC1\xBF", 0, 0 }, /* overlong, as the next two */
    { "\xE0\x9F\xBF", 0, 0 },
    { "\xF0\x8F\xBF\xBF", 0, 0 },
    { "\xED\xA0\x80", 0, 0 },     /* a surrogate */
    { "\xF4\x90\x80\x80", 0, 0 }, /* past the last */
    { "\xFF", 0, 0 },
};

START_TEST(a_character_is_decoded_or_refused)
{
    const char *text = characters[_i].text;
    uint32_t point = 0;

    ck_assert_int_eq(coh_utf8_decode(text, strlen(text), &point),
                     characters[_i].length);
    ck_assert_uint_eq(point, characters[_i].point);
}
END_TEST

START_TEST(a_clip_is_short_printable_and_whole)
{
    ck_assert_str_eq(coh_utf8_clip("short").text, "short");
    ck_assert_str_eq(coh_utf8_clip("a\n\x1B\xC2\x9B\xFF").text, "a   ?");

    char text[100];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(strlen(coh_utf8_clip(text).text), 63);

    strcpy(text + 59, "\xC3\xBC!"); /* would be cut in two at 60 */
    ck_assert_str_eq(coh_utf8_clip(text).text + 58, "x...");
    text[60] = '\0';
    ck_assert_int_eq(strlen(coh_utf8_clip(text).text), 60);
}
END_TEST

static Suite *utf8_suite(void)
{
    Suite *suite = suite_create("utf8");
    TCase *core = tcase_create("core");

    tcase_add_loop_test(core, a_character_is_decoded_or_refused, 0,
                        sizeof characters / sizeof characters[0]);
    tcase_add_test(core, a_clip_is_short_printable_and_whole);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(utf8_suite)
