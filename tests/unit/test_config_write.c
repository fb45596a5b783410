/* test_config_write.c - what is printed loads again, and says everything. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/options.h"
#include "support/config_text.h"

/* What a printer prints, to free(). */
static char *text_of(void (*print)(FILE *))
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    print(out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

static char *yaml_of(const coh_config *config)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    coh_config_write(config, out);
    ck_assert_int_eq(fclose(out), 0);
    return text;
}

/* --- Comparing, field by field ------------------------------------------ */

static void same_list(const coh_list *a, const coh_list *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        ck_assert_str_eq(a->items[i], b->items[i]);
}

static void same_ints(const coh_ints *a, const coh_ints *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        ck_assert_int_eq(a->items[i], b->items[i]);
}

static void same_names(const coh_names *a, const coh_names *b)
{
    ck_assert_int_eq(a->count, b->count);
    for (int i = 0; i < a->count; i++)
        ck_assert_str_eq(a->items[i], b->items[i]);
}

static void same_layer(const coh_layer_spec *a, const coh_layer_spec *b)
{
    ck_assert_int_eq(a->kind, b->kind);
    ck_assert_int_eq(a->same, b->same);
#define INT(key, field, ...) ck_assert_int_eq(a->field, b->field);
#define PAIR(key, field, ...)                   \
    ck_assert_int_eq(a->field[0], b->field[0]); \
    ck_assert_int_eq(a->field[1], b->field[1]);
#define REAL(key, field, ...) ck_assert(a->field == b->field);
#define TEXT(key, field, ...) ck_assert_str_eq(a->field, b->field);
#define NAMES(key, field, ...) same_names(&a->field, &b->field);
    COH_LAYER_FIELDS(INT, PAIR, REAL, INT, TEXT, PAIR, NAMES)
#undef TEXT
}

static void same_config(const coh_config *a, const coh_config *b)
{
#define TEXT(key, field, ...) ck_assert_str_eq(a->field, b->field);
#define LIST(key, field, ...) same_list(&a->field, &b->field);
#define INTS(key, field, ...) same_ints(&a->field, &b->field);
#define ROOM(key, help)
    COH_OPTIONS(INT, REAL, INT, TEXT, LIST, INTS, INT, ROOM)

    ck_assert_int_eq(a->model.ntargets, b->model.ntargets);
    for (int i = 0; i < a->model.ntargets; i++) {
        ck_assert_str_eq(a->model.targets[i].name, b->model.targets[i].name);
        same_ints(&a->model.targets[i].shape, &b->model.targets[i].shape);
    }
    ck_assert_int_eq(a->model.nlayers, b->model.nlayers);
    for (int i = 0; i < a->model.nlayers; i++)
        same_layer(&a->model.layers[i], &b->model.layers[i]);
}

static void must_survive(const coh_config *config)
{
    char *text = yaml_of(config);
    coh_config *again = config_of(text);

    same_config(config, again);
    coh_config_destroy(&again);
    free(text);
}

/* --- Tests ---------------------------------------------------------------- */

START_TEST(a_written_config_loads_to_the_same)
{
    coh_config *config = config_of(
        "groups: 3\ngroup_size: 5\nservers: 2\n"
        "run: {name: r, out: o, seed: 9223372036854775807, time_limit: "
        "3600.5,\n"
        "  report_every: 0.1}\n"
        "train: {batch: 3, group_batch: 7, accumulate: 2,\n"
        "  epochs: 0.3333333333333333,\n"
        "  steps: 11}\n"
        "optimizer: {rule: nesterov, rate: 1e-7, momentum: 0.5, beta1: 0.1,\n"
        "  momentum_auto: yes, momentum_auto_factor: 2, staleness: inverse, "
        "trust: 5,\n"
        "  beta2: 0.2, epsilon: 1.2345678901234567e-9, weight_decay: 3,\n"
        "  clip_norm: 6,\n"
        "  schedule: step, warmup: 4, step_every: 5, step_factor: 0.7,\n"
        "  final_rate: 0.1}\n"
        "data: {kind: hdf5, train: [a, b], train_labels: c, validation: d,\n"
        "  validation_labels: e, test: f, test_labels: [g, h], images: [i, "
        "j],\n"
        "  labels: k, weights: l, axes: nhwc, weights_for: loss, log1p: on,\n"
        "  normalize: max, normalize_over: global, normalize_samples: 12,\n"
        "  classes: 13, train_samples: 14, test_samples: 15, unlabelled: 0.3,\n"
        "  prefetch: 16}\n"
        "exchange: {block: 65536, lag: 1, update: all, placement: layer,\n"
        "  push: bfloat16,\n"
        "  reply: float16, timeout: 17}\n"
        "eval: {every: 18, batch: 19, select: best}\n"
        "checkpoint: {every: 20, keep: 21}\ncompute: {threads: 22}\n"
        "model:\n  input: [3, 224, 128]\n"
        "  targets: [{name: 'no', shape: [1, 2, 3]}, {shape: [4, 5, 6], name: "
        "a}]\n"
        "  layers:\n"
        "    - conv2d: {filters: 9, kernel: [3, 5], stride: [1, 2],\n"
        "        padding: [4, 6], dilation: [7, 8], groups: 3, bias: no}\n"
        "    - maxpool: {kernel: [2, 3], padding: same, name: pool}\n"
        "    - avgpool: {kernel: 2, stride: [3, 1]}\n    - global_avgpool\n"
        "    - relu\n    - leaky_relu: {slope: 0.123456789}\n    - sigmoid\n"
        "    - tanh\n    - flatten\n    - dropout: {rate: 0.1}\n"
        "    - deconv2d: {filters: 9, kernel: 2, stride: 3, padding: same,\n"
        "        output_padding: [1, 2], dilation: 5, groups: 3, bias: no}\n"
        "    - upsample: {scale: [2, 3]}\n"
        "    - crop: {size: [4, 5], offset: [6, 7]}\n    - softmax\n"
        "    - layer_norm: {epsilon: 0.125}\n"
        "    - batch_norm: {epsilon: 0.25, momentum: 0.375}\n"
        "    - add: {from: [tanh1, input]}\n    - concat: {from: [add1, "
        "pool]}\n"
        "    - smooth_l1: {weight: 0.5, target: a, mask: no, mean: no}\n"
        "    - mean_squared_error: {from: relu1, target: input, unlabelled: "
        "yes}\n"
        "    - softmax_cross_entropy: {from: tanh1, ignore: 7, target: a}\n"
        "    - sigmoid_cross_entropy: {from: tanh1, target: a, weight: 2}\n"
        "    - dense: {units: 4, bias: no, name: no, from: flatten1}\n"
        "    - softmax_cross_entropy: {name: 'null'}\n");

    must_survive(config);
    coh_config_destroy(&config);
}
END_TEST

static const char *const awkward[] = {
    "it's",
    "say \"x\"",
    "a: b",
    "a #b",
    "#",
    " lead",
    "trail ",
    "~",
    "no",
    "null",
    "007",
    "a\\nb",
    "a\nb\n",
    "\n",
    "\ttab",
    "*a",
    "&a",
    "!a",
    "@",
    "%",
    "- a",
    "? a",
    "[a",
    "{a}",
    "|",
    ">",
    "...",
    "---",
    "<<",
    "=",
    "\xC3\xBC\xE2\x82\xAC\xF0\x9F\x8E\x93", /* u umlaut, euro, a hat */
    "\xC2\x85\xE2\x80\xA8\xEF\xBB\xBF",     /* next line, separator, BOM */
    "\xC2\x80\x7F\x01\x1B\xEF\xBF\xBF",     /* not allowed but in quotes */
};

START_TEST(an_awkward_text_survives)
{
    coh_config *config = config_of(DATA MODEL);

    free(config->run.out);
    config->run.out = strdup(awkward[_i]);
    config->data.train.items = calloc(1, sizeof(char *));
    config->data.train.items[0] = strdup(awkward[_i]);
    config->data.train.count = 1;
    must_survive(config);
    coh_config_destroy(&config);
}
END_TEST

static const double numbers[] = { 0.1,       1.0 / 3.0, 1e-300,   4.9e-324, 1e9,
                                  1048577.0, 0.3,       123456.7, 1e6 / 7 };

START_TEST(a_number_keeps_every_bit)
{
    coh_config *config = config_of(DATA MODEL);

    config->run.time_limit = numbers[_i];
    must_survive(config);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(the_reference_loads_and_holds_the_defaults)
{
    char *text = text_of(coh_config_reference);
    coh_config *reference = config_of(text);
    coh_config *plain = config_of(DATA MODEL);

    /* What the example sets, and kind, which the small file sets. */
    ck_assert_int_eq(reference->data.kind, COH_DATA_IDX);
    ck_assert_int_eq(reference->data.train.count, 1);
    ck_assert_int_eq(reference->data.test_labels.count, 1);
    ck_assert_int_eq(reference->model.nlayers, 8);
    reference->data.kind = COH_DATA_SYNTHETIC;
    coh_list *const lists[] = { &reference->data.train,
                                &reference->data.train_labels,
                                &reference->data.test,
                                &reference->data.test_labels };
    for (int i = 0; i < 4; i++) {
        free(lists[i]->items[0]);
        lists[i]->count = 0;
    }
    free(reference->model.layers);
    reference->model.layers = NULL;
    reference->model.nlayers = plain->model.nlayers = 0;
    same_config(reference, plain);

    coh_config_destroy(&reference);
    coh_config_destroy(&plain);
    free(text);
}
END_TEST

/* A line that begins with `key:` after blanks. */
static bool has_key(const char *text, const char *key)
{
    const size_t length = strlen(key);

    for (const char *at = text; (at = strstr(at, key)) != NULL; at += length) {
        const char *begin = at;
        while (begin > text && begin[-1] == ' ')
            begin--;
        if ((begin == text || begin[-1] == '\n') && at[length] == ':')
            return true;
    }
    return false;
}

START_TEST(the_reference_has_every_key_in_narrow_lines)
{
    char *text = text_of(coh_config_reference);
#define KEY(key, ...) \
    ck_assert_msg(has_key(text, strrchr("." key, '.') + 1), "no %s", key);
    COH_OPTIONS(KEY, KEY, KEY, KEY, KEY, KEY, KEY, KEY)
    ck_assert(has_key(text, "layers"));

    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) < 80, "%s", line);
    free(text);
}
END_TEST

/* `make reference` writes it; tests run in the folder of the Makefile. */
START_TEST(the_reference_in_the_tree_is_the_one_printed)
{
    char *text = text_of(coh_config_reference);
    FILE *file = fopen("config/reference.yaml", "rb");
    ck_assert_msg(file != NULL, "config/reference.yaml: cannot be read");

    char *stored = calloc(1, strlen(text) + 2);
    const size_t length = fread(stored, 1, strlen(text) + 1, file);
    ck_assert_msg(length == strlen(text) && strcmp(stored, text) == 0,
                  "config/reference.yaml is old: make reference");
    (void)fclose(file);
    free(stored);
    free(text);
}
END_TEST

START_TEST(the_help_has_every_key_layer_and_sentence)
{
    char *text = text_of(coh_config_help);
#define NAMED(key, ...) \
    ck_assert_msg(strstr(text, "\n  " key) != NULL, "no %s", key);
#define NO_ROOM(key, help) ck_assert_ptr_nonnull(strstr(text, "\n" key ": "));
    COH_OPTIONS(NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NAMED, NO_ROOM)
#define LAYER(key, id, letter, help) NAMED(key)
    COH_LAYER_KINDS(LAYER)
#define FIELD(key, ...) ck_assert_ptr_nonnull(strstr(text, key));
    COH_LAYER_FIELDS(FIELD, FIELD, FIELD, FIELD, FIELD, FIELD, FIELD)

    ck_assert_ptr_nonnull(strstr(text, "train.batch: 32\n"));
    ck_assert_ptr_nonnull(strstr(text, "(integer, 1 to 1000000 samples)"));
    ck_assert_ptr_nonnull(strstr(text, "(balanced, layer)"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        ck_assert_msg(strlen(line) < 80, "%s", line);
    free(text);
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof table[0])

static Suite *config_write_suite(void)
{
    Suite *suite = suite_create("config_write");

    TCase *core = tcase_create("core");
    tcase_add_test(core, a_written_config_loads_to_the_same);
    tcase_add_loop_test(core, an_awkward_text_survives, 0, COUNT(awkward));
    tcase_add_loop_test(core, a_number_keeps_every_bit, 0, COUNT(numbers));
    suite_add_tcase(suite, core);

    TCase *pages = tcase_create("pages");
    tcase_add_test(pages, the_reference_loads_and_holds_the_defaults);
    tcase_add_test(pages, the_reference_has_every_key_in_narrow_lines);
    tcase_add_test(pages, the_reference_in_the_tree_is_the_one_printed);
    tcase_add_test(pages, the_help_has_every_key_layer_and_sentence);
    suite_add_tcase(suite, pages);
    return suite;
}

CHECK_MAIN(config_write_suite)
