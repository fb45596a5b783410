/* test_yaml_tree.c - what yaml_tree.h promises. */
#include "common/yaml_tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "support/check_run.h"

static coh_err err;
static coh_yaml_node *root;

static void setup(void)
{
    err = COH_ERR_INIT;
    root = NULL;
}

static void teardown(void)
{
    coh_yaml_destroy(&root);
    ck_assert_ptr_null(root);
}

static void parse(const char *text)
{
    const coh_status status =
        coh_yaml_parse("f", text, strlen(text), &root, &err);
    ck_assert_msg(status == COH_OK, "%s", err.text);
}

START_TEST(nodes_know_their_kind_text_and_place)
{
    parse("a: 1\nb:\n  - \"x\"\n  - y z\n\xC3\xBC\xC3\xBC: {c: ''}\n");

    ck_assert_int_eq(root->kind, COH_YAML_MAPPING);
    ck_assert_int_eq(root->count, 3);
    const coh_yaml_node *a = root->items[0], *b = root->items[1],
                        *u = root->items[2];
    ck_assert_str_eq(a->key, "a");
    ck_assert_str_eq(a->text, "1");
    ck_assert(a->plain);
    ck_assert_int_eq(a->at.line, 1);
    ck_assert_int_eq(a->at.column, 4);
    ck_assert_int_eq(b->kind, COH_YAML_LIST);
    ck_assert_int_eq(b->key_at.line, 2);
    ck_assert_int_eq(b->key_at.column, 1);
    ck_assert_str_eq(b->items[0]->text, "x");
    ck_assert(!b->items[0]->plain);
    ck_assert_int_eq(b->items[1]->at.line, 4);
    ck_assert_int_eq(b->items[1]->at.column, 5);
    ck_assert_int_eq(u->at.column, 5); /* characters, not bytes */
    ck_assert_str_eq(u->items[0]->text, "");
}
END_TEST

START_TEST(a_byte_order_mark_and_crlf_are_fine)
{
    parse("\xEF\xBB\xBF"
          "a: 1\r\nb: 2\r\n");

    ck_assert_str_eq(root->items[0]->text, "1");
    ck_assert_int_eq(root->items[0]->key_at.column, 1);
    ck_assert_int_eq(root->items[1]->key_at.line, 2);
    ck_assert_str_eq(root->items[1]->text, "2");
}
END_TEST

START_TEST(an_alias_is_a_copy_of_its_anchor)
{
    parse("a: &x {k: [1, 2]}\nb: *x\nc: &x 3\nd: *x\n");

    const coh_yaml_node *b = root->items[1], *d = root->items[3];
    ck_assert_str_eq(b->key, "b");
    ck_assert_int_eq(b->at.line, 2);
    ck_assert_str_eq(b->items[0]->key, "k");
    ck_assert_str_eq(b->items[0]->items[1]->text, "2");
    ck_assert_int_eq(b->items[0]->items[1]->at.line, 1); /* as written */
    ck_assert_str_eq(d->text, "3"); /* the last anchor of a name */
}
END_TEST

START_TEST(twice_given_keys_are_all_reported_with_the_tree)
{
    const char *text = "a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n";

    ck_assert_int_eq(coh_yaml_parse("f", text, strlen(text), &root, &err),
                     COH_E_CONFIG);
    ck_assert_str_eq(err.text,
                     "f:3:1: a: given twice, first in line 1; remove one\n"
                     "f:4:11: d: given twice, first in line 4; remove one");
    ck_assert_ptr_nonnull(root);
}
END_TEST

static const struct {
    const char *text, *place, *part;
} bad_texts[] = {
    { "", "f:1:1: ", "nothing but blanks and comments" },
    { "# a\n\n# b\n", "f:4:1: ", "nothing but blanks and comments" },
    { "a: 1\n---\nb: 2\n", "f:2:1: ", "a second document" },
    { "a: 1\n...\nb: 2\n", "f:3:1: ", "one document" },
    { "a:\n\tb: 1\n", "f:2:1: ", "tab used for indentation; use spaces" },
    { "a:\n  b: 1\n\tc: 1\n", "f:3:1: ", "tab used for indentation" },
    { "a:\n  \tb: 1\n", "f:2:3: ", "tab used for indentation" },
    { "a: &x {b: 1}\nc:\n  <<: *x\n", "f:3:3: ", "merge keys" },
    { "? [a]\n: b\n", "f:1:3: ", "cannot be a key" },
    { "&x a: b\n", "f:1:1: ", "put it in a line of its own" },
    { "a: !!int 3\n", "f:1:4: ", "tags (!) are not known" },
    { "a: !x [3]\n", "f:1:4: ", "tags (!) are not known" },
    { "a: *x\n", "f:1:4: ", "no anchor &x" },
    { "a: *.h5\n", "f:1:5: ", "quote a text that begins with *" },
    { "a: @x\n", "f:1:4: ", "quote a text that begins with @" },
    { "a: b: c\n", "f:1:5: ", "quote a text that holds ': '" },
    { "a:\n  b:1\n  c: 1\n", "f:3:4: ", "a space after each colon" },
    { "a:\n  - b\n c: 1\n", "f:3:2: ", "indented as its neighbours" },
    { "a: \"x\n", "f:2:1: ", "left open" },
    { "a: [1, 2\nb: 3\n", "f:2:2: ", "left open" },
    { "a: \"\\0\"\n", "f:1:4: ", "NUL" },
    { "a: caf\xE9\n", "f:1:7: ", "byte 0xe9 is no text" },
    { "a: 1\nb: \xC3\xBC\x01\n", "f:2:5: ", "byte 0x01 is no text" },
    { "\xFF\xFE"
      "a",
      "f:1:1: ", "UTF-8" },
    { "a: \xED\xA0\x80\n", "f:1:4: ", "is no text" }, /* a surrogate */
    { "a: \xC0\xAF\n", "f:1:4: ", "is no text" },     /* overlong */
};

START_TEST(a_bad_text_is_refused_with_its_place_and_a_way_out)
{
    const char *text = bad_texts[_i].text;

    ck_assert_int_eq(coh_yaml_parse("f", text, strlen(text), &root, &err),
                     COH_E_CONFIG);
    ck_assert_ptr_null(root);
    ck_assert_msg(strncmp(err.text, bad_texts[_i].place,
                          strlen(bad_texts[_i].place)) == 0,
                  "not %s: %s", bad_texts[_i].place, err.text);
    ck_assert_msg(strstr(err.text, bad_texts[_i].part) != NULL,
                  "no '%s' in: %s", bad_texts[_i].part, err.text);
    ck_assert_ptr_null(strchr(err.text, '\n'));
}
END_TEST

START_TEST(a_nul_byte_is_refused)
{
    ck_assert_int_eq(coh_yaml_parse("f", "a: b\n\0", 6, &root, &err),
                     COH_E_CONFIG);
    ck_assert_str_eq(err.text, "f:2:1: byte 0x00 is no text; a configuration "
                               "is YAML in UTF-8");
}
END_TEST

START_TEST(an_odd_key_stays_on_its_line)
{
    const char *text = "\"a\\n\\e\": 1\n\"a\\n\\e\": 2\n";

    ck_assert_int_eq(coh_yaml_parse("f", text, strlen(text), &root, &err),
                     COH_E_CONFIG);
    ck_assert_str_eq(err.text,
                     "f:2:1: a  : given twice, first in line 1; remove one");
}
END_TEST

START_TEST(without_a_name_messages_begin_with_the_column)
{
    ck_assert_int_eq(coh_yaml_parse(NULL, "[a", 2, &root, &err), COH_E_CONFIG);
    ck_assert_int_eq(strncmp(err.text, "column ", 7), 0);
}
END_TEST

START_TEST(the_message_may_be_unwanted)
{
    ck_assert_int_eq(coh_yaml_parse("f", "[a", 2, &root, NULL), COH_E_CONFIG);
}
END_TEST

/* --- Hostile texts: the forked child has 2 s and 200 MB for each. --------- */

static char *repeat(const char *head, const char *unit, int times,
                    const char *tail)
{
    const size_t h = strlen(head), u = strlen(unit), t = strlen(tail);
    char *text = malloc(h + u * (size_t)times + t + 1);

    ck_assert_ptr_nonnull(text);
    memcpy(text, head, h);
    for (int i = 0; i < times; i++)
        memcpy(text + h + u * (size_t)i, unit, u);
    memcpy(text + h + u * (size_t)times, tail, t + 1);
    return text;
}

static void limit_memory(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    const struct rlimit limit = { 200 << 20, 200 << 20 };
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

static const struct {
    const char *head, *unit;
    int times;
    const char *tail, *part;
} hostile[] = {
    { "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n"
      "c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\n"
      "e: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n"
      "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g]\n",
      "", 0, "", "more than 100000 values" },
    { "a: &a '", "xxxxxxxxxx", 100000, "'\nb: [*a,*a,*a,*a,*a,*a,*a,*a]\n",
      "more than 4 MiB of text" },
    { "a: &a [*a]\n", "", 0, "", "inside what it stands for" },
    { "&a {b: {c: *a}}\n", "", 0, "", "inside what it stands for" },
    { "a: &a ", "[", 40, "x", "left open" },
    { "", "[", 100000, "", "more than 64" },
    { "", "{a: ", 100000, "", "more than 64" },
    { "", "- ", 100000, "x", "more than 64" },
    { "", "? ", 100000, "x", "more than 64" },
    { "a: [", "x,", 1000000, "]", "more than 100000 values" },
    { "", "a: b\n", 1200000, "", "more than 4 MiB" },
    { "", "\n", 4000000, "", "nothing but blanks" },
    { "", "---\n", 1000000, "", "a second document" },
    { "a: \"", "x\n", 1000000, "", "left open" },
};

START_TEST(a_hostile_text_is_refused_soon_and_in_little_memory)
{
    char *text = repeat(hostile[_i].head, hostile[_i].unit, hostile[_i].times,
                        hostile[_i].tail);

    limit_memory();
    ck_assert_int_eq(coh_yaml_parse("f", text, strlen(text), &root, &err),
                     COH_E_CONFIG);
    ck_assert_msg(strstr(err.text, hostile[_i].part) != NULL, "no '%s' in: %s",
                  hostile[_i].part, err.text);
    free(text);
}
END_TEST

/* An alias inside deep nesting may not lead deeper than allowed. */
START_TEST(aliases_count_for_the_depth)
{
    char *inner = repeat("a: &a ", "[", 40, "");
    char *closed = repeat(inner, "]", 40, "\nb: ");
    char *outer = repeat(closed, "[", 40, "*a");
    char *text = repeat(outer, "]", 40, "\n");

    ck_assert_int_eq(coh_yaml_parse("f", text, strlen(text), &root, &err),
                     COH_E_CONFIG);
    ck_assert_ptr_nonnull(strstr(err.text, "more than 64"));
    free(inner);
    free(closed);
    free(outer);
    free(text);
}
END_TEST

START_TEST(sixty_four_levels_are_not_too_deep)
{
    char *open = repeat("", "[", 64, "x");
    char *text = repeat(open, "]", 64, "\n");

    parse(text);
    free(open);
    free(text);
}
END_TEST

static Suite *yaml_tree_suite(void)
{
    Suite *suite = suite_create("yaml_tree");

    TCase *core = tcase_create("core");
    tcase_add_checked_fixture(core, setup, teardown);
    tcase_add_test(core, nodes_know_their_kind_text_and_place);
    tcase_add_test(core, a_byte_order_mark_and_crlf_are_fine);
    tcase_add_test(core, an_alias_is_a_copy_of_its_anchor);
    tcase_add_test(core, twice_given_keys_are_all_reported_with_the_tree);
    tcase_add_loop_test(core,
                        a_bad_text_is_refused_with_its_place_and_a_way_out, 0,
                        sizeof bad_texts / sizeof bad_texts[0]);
    tcase_add_test(core, a_nul_byte_is_refused);
    tcase_add_test(core, an_odd_key_stays_on_its_line);
    tcase_add_test(core, without_a_name_messages_begin_with_the_column);
    tcase_add_test(core, the_message_may_be_unwanted);
    suite_add_tcase(suite, core);

    TCase *limits = tcase_create("limits");
    tcase_add_checked_fixture(limits, setup, teardown);
    tcase_set_timeout(limits, 2);
    tcase_add_loop_test(limits,
                        a_hostile_text_is_refused_soon_and_in_little_memory, 0,
                        sizeof hostile / sizeof hostile[0]);
    tcase_add_test(limits, aliases_count_for_the_depth);
    tcase_add_test(limits, sixty_four_levels_are_not_too_deep);
    suite_add_tcase(suite, limits);
    return suite;
}

CHECK_MAIN(yaml_tree_suite)
