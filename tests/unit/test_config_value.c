/* test_config_value.c - what a value may be, and what is said of others. */
#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>

#include "support/config_text.h"

static coh_err err;

/* A configuration with one more line, the third. */
static coh_config *load(const char *line)
{
    char text[1024];
    snprintf(text, sizeof text, DATA MODEL "%s\n", line);
    return config_of(text);
}

static void refuse(const char *line)
{
    char text[1024];
    snprintf(text, sizeof text, DATA MODEL "%s\n", line);
    refuse_sets(text, NULL, 0, &err);
}

static const struct {
    const char *text;
    int64_t value;
} integers[] = {
    { "32", 32 },
    { "+32", 32 },
    { "010", 10 },
    { "1e6", 1000000 },
    { "32.0", 32 },
    { "1.5e3", 1500 },
    { "3200e-2", 32 },
    { "'32'", 32 },
    { "0", 0 },
    { "-0", 0 },
    { "0e99999999999", 0 },
    { "9223372036854775807", INT64_MAX },
    { "5.", 5 },
    { "9.223372036854775807e18", INT64_MAX },
};

START_TEST(an_integer_may_be_written_in_many_ways)
{
    char line[128];
    snprintf(line, sizeof line, "run: {seed: %s}", integers[_i].text);

    coh_config *config = load(line);
    ck_assert_int_eq(config->run.seed, integers[_i].value);
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    const char *text;
    double value;
} reals[] = {
    { "1e-3", 1e-3 },
    { ".001", 1e-3 },
    { "+1e-3", 1e-3 },
    { "1.", 1.0 },
    { "0.1", 0.1 },
    { "1E2", 100.0 },
    { "'2.5'", 2.5 },
    { "07", 7.0 },
    { "1e-310", 1e-310 },
    { "0e-999", 0.0 },
    { "0.1000000000000000055511151231257827", 0.1 },
};

START_TEST(a_number_may_be_written_in_many_ways)
{
    char line[128];
    snprintf(line, sizeof line, "optimizer: {final_rate: %s}", reals[_i].text);

    coh_config *config = load(line);
    ck_assert(config->optimizer.final_rate == reals[_i].value);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(numbers_do_not_hang_on_the_language)
{
    const char *const german[] = { "de_DE.UTF-8", "de_DE.utf8", "de_DE",
                                   "fr_FR.UTF-8" };
    for (size_t i = 0; i < sizeof german / sizeof german[0]; i++)
        if (setlocale(LC_ALL, german[i]) != NULL)
            break; /* where none is installed the C locale is tested */

    coh_config *config = load("optimizer: {rate: 0.125}");
    ck_assert(config->optimizer.rate == 0.125);
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    coh_config_write(config, out);
    ck_assert_int_eq(fclose(out), 0);
    ck_assert_ptr_nonnull(strstr(text, "rate: 0.125\n"));
    free(text);
    coh_config_destroy(&config);
    refuse("optimizer: {rate: '0,125'}");
    must_say(&err, "'0,125' is not a number; 0 to 1e+06");
    setlocale(LC_ALL, "C");
}
END_TEST

static const struct {
    const char *text;
    bool value;
} booleans[] = {
    { "true", true }, { "True", true },  { "TRUE", true },   { "yes", true },
    { "on", true },   { "'yes'", true }, { "false", false }, { "False", false },
    { "no", false },  { "NO", false },   { "off", false },   { "Off", false },
};

START_TEST(a_boolean_has_three_pairs_of_words)
{
    char text[256];
    snprintf(text, sizeof text, "data: {kind: synthetic, log1p: %s}\n" MODEL,
             booleans[_i].text);

    coh_config *config = config_of(text);
    ck_assert_int_eq(config->data.log1p, booleans[_i].value);
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    const char *text, *value;
} texts[] = {
    { "007", "007" },
    { "1e3", "1e3" },
    { "no", "no" },
    { "'~'", "~" },
    { "\"null\"", "null" },
    { "'a: b'", "a: b" },
    { "\"\\u00fc\"", "\xC3\xBC" },
    { "~", "runs" },
    { "null", "runs" },
    { "", "runs" },
};

START_TEST(a_text_is_taken_as_it_stands_and_null_is_the_default)
{
    char line[128];
    snprintf(line, sizeof line, "run:\n  out: %s", texts[_i].text);

    coh_config *config = load(line);
    ck_assert_str_eq(config->run.out, texts[_i].value);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(null_is_the_default_of_any_key_and_room)
{
    coh_config *config = config_of(
        "groups: ~\ntrain: {batch: null, epochs: ~}\noptimizer:\n"
        "data: {kind: synthetic, images: ~, log1p: ~, axes: ~}\n" MODEL);
    ck_assert_int_eq(config->groups, 1);
    ck_assert_int_eq(config->train.batch, 32);
    ck_assert(config->train.epochs == 10.0);
    ck_assert_str_eq(config->data.images.items[0], "data");
    coh_config_destroy(&config);
}
END_TEST

START_TEST(a_list_may_be_one_text)
{
    coh_config *config = config_of(
        "data: {kind: hdf5, train: a.h5, test: ['b.h5', 007], validation: [],\n"
        "       images: [tracks, hcal, ecal]}\n" MODEL);
    ck_assert_int_eq(config->data.train.count, 1);
    ck_assert_str_eq(config->data.train.items[0], "a.h5");
    ck_assert_int_eq(config->data.test.count, 2);
    ck_assert_str_eq(config->data.test.items[1], "007");
    ck_assert_int_eq(config->data.validation.count, 0);
    ck_assert_int_eq(config->data.images.count, 3);
    ck_assert_str_eq(config->data.images.items[2], "ecal");
    coh_config_destroy(&config);

    config = config_of(DATA MODEL);
    ck_assert_int_eq(config->data.images.count, 1);
    ck_assert_str_eq(config->data.images.items[0], "data");
    ck_assert_int_eq(config->model.input.count, 3);
    ck_assert_int_eq(config->model.input.items[1], 28);
    coh_config_destroy(&config);
}
END_TEST

/* The line stands third, behind DATA and MODEL. */
static const struct {
    const char *line, *message;
} bad_values[] = {
    { "groups: 0", "job.yaml:3:9: groups: '0' is too small; 1 to 1000000 "
                   "groups" },
    { "groups: 1000001", "groups: '1000001' is too large; 1 to 1000000" },
    { "groups: -1", "groups: '-1' is too small" },
    { "groups: 1_000", "groups: '1_000' is not an integer" },
    { "groups: 0x10", "groups: '0x10' is not an integer" },
    { "groups: ten", "groups: 'ten' is not an integer; 1 to 1000000 groups" },
    { "groups: 1.5", "groups: '1.5' is not whole" },
    { "groups: 1e-1", "groups: '1e-1' is not whole" },
    { "groups: ''", "groups: '' is not an integer" },
    { "groups: '1 2'", "groups: '1 2' is not an integer" },
    { "groups: true", "groups: 'true' is not an integer" },
    { "groups: [1]", "job.yaml:3:9: groups: a list stands where one value is "
                     "wanted (integer); 1 to 1000000 groups" },
    { "groups: {a: 1}", "groups: a mapping stands where one value is wanted" },
    { "run: {seed: 9223372036854775808}", "does not fit into 64 bits; 0 or "
                                          "more" },
    { "run: {seed: 1e19}", "does not fit into 64 bits" },
    { "run: {seed: 1e999999999999999999999}", "does not fit into 64 bits" },
    { "run: {seed: -9223372036854775808}", "is too small" },
    { "train: {epochs: 1e-3s}", "job.yaml:3:17: train.epochs: '1e-3s' is not "
                                "a number; 0 to 1e+09 epochs" },
    { "train: {epochs: nan}", "train.epochs: 'nan' is not a number" },
    { "train: {epochs: .nan}", "train.epochs: '.nan' is not a number" },
    { "train: {epochs: inf}", "train.epochs: 'inf' is not a number" },
    { "train: {epochs: 0x1p3}", "train.epochs: '0x1p3' is not a number" },
    { "train: {epochs: 1_0}", "train.epochs: '1_0' is not a number" },
    { "train: {epochs: 1e}", "train.epochs: '1e' is not a number" },
    { "train: {epochs: '.'}", "train.epochs: '.' is not a number" },
    { "train: {epochs: --1}", "train.epochs: '--1' is not a number" },
    { "train: {epochs: 1e999}", "'1e999' is too large for a double" },
    { "train: {epochs: 1e-999}", "'1e-999' is too small for a double" },
    { "train: {epochs: -1}", "'-1' is too small; 0 to 1e+09 epochs" },
    { "optimizer: {momentum: 1}", "'1' is too large; 0 to 0.999999" },
    { "train: {epochs: [1]}", "(number)" },
    { "policy: asynch", "job.yaml:3:9: policy: 'asynch' is none of async, "
                        "bounded, sync; did you mean async?" },
    { "optimizer: {rule: Adam}", "'Adam' is none of sgd, nesterov, adam, "
                                 "adamw, lars, lamb, dcasgd, dcasgd_a; "
                                 "did you mean adam?" },
    { "optimizer: {rule: lion}", "'lion' is none of sgd, nesterov, adam, "
                                 "adamw, lars, lamb" },
    { "optimizer: {rule: [sgd]}", "a list stands where one value is wanted "
                                  "(name); sgd, nesterov" },
    { "run: {out: [a]}", "run.out: a list stands where one value is wanted "
                         "(text)" },
    { "run: {out: {a: b}}", "run.out: a mapping stands" },
};

START_TEST(a_bad_value_is_refused_with_place_value_and_bounds)
{
    refuse(bad_values[_i].line);
    must_say(&err, bad_values[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_rooms[] = {
    { "data: {kind: synthetic, log1p: maybe}\n" MODEL,
      "data.log1p: 'maybe' is neither; true or false" },
    { "data: {kind: synthetic, log1p: 1}\n" MODEL,
      "data.log1p: '1' is neither; true or false" },
    { "data: {kind: synthetic, train: [a, [b]]}\n" MODEL,
      "job.yaml:1:36: data.train: a list stands where one value is wanted" },
    { "data: {kind: synthetic, train: {a: b}}\n" MODEL,
      "data.train: a mapping stands where one value is wanted (list of "
      "texts)" },
    { "data: {kind: synthetic, train: [a, '']}\n" MODEL,
      "data.train: an empty text; remove it, or write []" },
    { DATA "model: {input: [1, 28], layers: [softmax_cross_entropy]}\n",
      "model.input: 2 given; 3 integers, each 1 to 1000000" },
    { DATA "model: {input: [1, 2, 3, 4], layers: [softmax_cross_entropy]}\n",
      "model.input: 4 given" },
    { DATA "model: {input: 28, layers: [softmax_cross_entropy]}\n",
      "model.input: wants a list, e.g. [1, 28, 28]; 3 integers" },
    { DATA "model: {input: [1, 0, 28], layers: [softmax_cross_entropy]}\n",
      "job.yaml:2:20: model.input: '0' is too small; 3 integers" },
    { DATA "model: {input: [1, [2], 28], layers: [softmax_cross_entropy]}\n",
      "model.input: a list stands where one value is wanted" },
};

START_TEST(a_bad_list_or_boolean_is_refused)
{
    refuse_sets(bad_rooms[_i].text, NULL, 0, &err);
    must_say(&err, bad_rooms[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

START_TEST(a_long_or_odd_value_stays_on_its_line)
{
    refuse("groups: \"a\\nb\\tc\"");
    must_say(&err, "groups: 'a b c' is not an integer");
    refuse("groups: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    must_say(&err, "xxx...' is not an integer");
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof table[0])

static Suite *config_value_suite(void)
{
    Suite *suite = suite_create("config_value");

    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, an_integer_may_be_written_in_many_ways, 0,
                        COUNT(integers));
    tcase_add_loop_test(core, a_number_may_be_written_in_many_ways, 0,
                        COUNT(reals));
    tcase_add_test(core, numbers_do_not_hang_on_the_language);
    tcase_add_loop_test(core, a_boolean_has_three_pairs_of_words, 0,
                        COUNT(booleans));
    tcase_add_loop_test(core,
                        a_text_is_taken_as_it_stands_and_null_is_the_default, 0,
                        COUNT(texts));
    tcase_add_test(core, null_is_the_default_of_any_key_and_room);
    tcase_add_test(core, a_list_may_be_one_text);
    suite_add_tcase(suite, core);

    TCase *bad = tcase_create("bad");
    tcase_add_loop_test(bad, a_bad_value_is_refused_with_place_value_and_bounds,
                        0, COUNT(bad_values));
    tcase_add_loop_test(bad, a_bad_list_or_boolean_is_refused, 0,
                        COUNT(bad_rooms));
    tcase_add_test(bad, a_long_or_odd_value_stays_on_its_line);
    suite_add_tcase(suite, bad);
    return suite;
}

CHECK_MAIN(config_value_suite)
