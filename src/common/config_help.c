/* config_help.c - every key and every layer, for people and as YAML. */
#include "common/config_option.h"

#include <inttypes.h>
#include <string.h>

enum { WIDTH = 79, TEXT_MAX = 1024 };

/* Print text in lines that begin with prefix, broken between words. */
static void print_wrapped(FILE *out, const char *prefix, const char *text)
{
    size_t used = 0;

    while (*text != '\0') {
        const size_t word = strcspn(text, " ");
        if (used > 0 && used + 1 + word > WIDTH) {
            fputc('\n', out);
            used = 0;
        }
        if (used == 0)
            used = (size_t)fprintf(out, "%s%.*s", prefix, (int)word, text);
        else
            used += (size_t)fprintf(out, " %.*s", (int)word, text);
        text += word;
        text += strspn(text, " ");
    }
    fputc('\n', out);
}

/* "1 to 64 batches. batches read ahead", "text. name of the run". */
static void describe(const coh_option *row, char out[TEXT_MAX])
{
    char bounds[COH_BOUNDS_MAX];
    const char *noun = coh_option_noun(row);
    coh_option_bounds(row, bounds);

    const bool is_said = row->type == COH_OPTION_BOOL ||
                         row->type == COH_OPTION_ENUM ||
                         row->type == COH_OPTION_INTS || bounds[0] == '\0';
    snprintf(out, TEXT_MAX, "%s (%s%s%s)", row->help, is_said ? "" : noun,
             is_said ? "" : ", ", bounds[0] == '\0' ? noun : bounds);
}

static void print_default(const coh_option *row, void *base, FILE *out)
{
    if (coh_option_reset(row, base))
        coh_option_write(row, base, out);
    coh_option_clear(row, base);
}

/* --- Layers --------------------------------------------------------------- */

static void print_field(const coh_option *field, const char *prefix, FILE *out)
{
    coh_layer_spec spec = { .line = 0 };
    char text[TEXT_MAX], inner[32];

    describe(field, text);
    fprintf(out, "%s    %s", prefix, field->key);
    if (coh_layer_needs(field)) {
        fputs(", must be given", out);
    } else if (field->type == COH_OPTION_PAIR) {
        if (field->value > 0) /* else the sentence tells what it is */
            fprintf(out, ": %" PRId64, field->value);
    } else {
        fputs(": ", out);
        print_default(field, &spec, out);
    }
    fputc('\n', out);
    snprintf(inner, sizeof inner, "%s        ", prefix);
    print_wrapped(out, inner, text);
}

/* Every layer has it: it is told once, above. */
static bool is_told(const coh_option *field)
{
    return strcmp(field->letters, COH_EVERY_LAYER) == 0;
}

static void print_layers(const char *prefix, FILE *out)
{
    char text[TEXT_MAX];

    for (int i = 0; i < COH_LAYER_KIND_COUNT; i++) {
        snprintf(text, sizeof text, "%s: %s", coh_layer_rows[i].name,
                 coh_layer_rows[i].help);
        print_wrapped(out, prefix, text);
        for (int j = 0; j < COH_LAYER_FIELD_COUNT; j++)
            if (coh_layer_has((coh_layer_kind)i, &coh_layer_fields[j]) &&
                !is_told(&coh_layer_fields[j]))
                print_field(&coh_layer_fields[j], prefix, out);
    }
}

/* --- The page ------------------------------------------------------------- */

static void print_key(const coh_option *row, FILE *out)
{
    coh_config config = { 0 };
    char text[TEXT_MAX];

    fprintf(out, "  %s", row->key);
    if (row->type == COH_OPTION_INTS || row->type == COH_OPTION_LAYERS) {
        fputs(", must be given", out);
    } else {
        fputs(": ", out);
        print_default(row, &config, out);
    }
    fputc('\n', out);
    describe(row, text);
    print_wrapped(out, "      ", text);
}

void coh_config_help(FILE *out)
{
    char text[TEXT_MAX];

    fputs("A configuration is a YAML file. Each key is shown with its default."
          "\nWhat stands before the dot is a room:\n\n"
          "    train:\n        batch: 64\n\n"
          "and --set train.batch=64 on the command line overrides the file; "
          "*.h5 needs no\nquotes there, lists are written [a, b]. Nothing, ~ "
          "or null as a value gives\nthe default.\n\n",
          out);
    for (int i = 0; i < COH_OPTION_COUNT; i++) {
        if (coh_options[i].type == COH_OPTION_ROOM) {
            snprintf(text, sizeof text, "%s: %s", coh_options[i].key,
                     coh_options[i].help);
            fputc('\n', out);
            print_wrapped(out, "", text);
        } else {
            print_key(&coh_options[i], out);
        }
    }
    fputs(
        "\nLayers. One is a name, or a name with fields:\n\n"
        "    layers:\n"
        "      - conv2d: {filters: 32, kernel: 3, padding: same}\n"
        "      - relu\n\n"
        "Each may also have a name: {name: first, filters: 32, kernel: 3}; "
        "without, it\nis its kind and number: conv2d1, relu1, conv2d2.\n\n"
        "A layer takes the output of the one before it, the first the images, "
        "unless\nfrom names others that stand before it (input: the "
        "images):\n\n"
        "      - conv2d: {from: relu1, filters: 32, kernel: 1}\n"
        "      - add: {from: [conv2d2, maxpool1]}\n\n"
        "An output that no layer takes must be a loss.\n\n",
        out);
    print_layers("  ", out);
}

/* --- The reference -------------------------------------------------------- */

#define FOLDER "/usr/share/datasets/fashion-mnist/"

/* What stands in the reference where a default cannot run. */
static const struct {
    const char *key, *yaml;
} examples[] = {
    { "data.train", FOLDER "train-images-idx3-ubyte.gz" },
    { "data.train_labels", FOLDER "train-labels-idx1-ubyte.gz" },
    { "data.test", FOLDER "t10k-images-idx3-ubyte.gz" },
    { "data.test_labels", FOLDER "t10k-labels-idx1-ubyte.gz" },
    { "model.input", "[1, 28, 28]" },
    { "model.layers", "\n"
                      "    - conv2d: {filters: 16, kernel: 5, padding: same}\n"
                      "    - relu\n"
                      "    - maxpool: {kernel: 2}\n"
                      "    - conv2d: {filters: 32, kernel: 5, padding: same}\n"
                      "    - relu\n"
                      "    - maxpool: {kernel: 2}\n"
                      "    - dense: {units: 10}\n"
                      "    - softmax_cross_entropy" },
};

static const char *example_of(const coh_option *row)
{
    for (size_t i = 0; i < sizeof examples / sizeof examples[0]; i++)
        if (strcmp(examples[i].key, row->key) == 0)
            return examples[i].yaml;
    return NULL;
}

static void print_reference(const coh_option *row, FILE *out)
{
    const char *word = coh_option_word(row->key);
    const char *indent = word == row->key ? "" : "  ";
    const char *example = example_of(row);
    coh_config config = { 0 };
    char text[TEXT_MAX], prefix[8];

    describe(row, text);
    snprintf(prefix, sizeof prefix, "%s# ", indent);
    print_wrapped(out, prefix, text);
    if (row->type == COH_OPTION_LAYERS)
        print_layers("  #   ", out);
    fprintf(out, "%s%s:%s", indent, word,
            example != NULL && example[0] == '\n' ? "" : " ");
    if (example != NULL)
        fputs(example, out);
    else
        print_default(row, &config, out);
    fputc('\n', out);
}

void coh_config_reference(FILE *out)
{
    char text[TEXT_MAX];

    fputs("# Every key of a configuration with its default, printed by\n"
          "# `cohort help config --yaml`. The files and the network are an "
          "example.\n\n",
          out);
    for (int i = 0; i < COH_OPTION_COUNT; i++) {
        const coh_option *row = &coh_options[i];
        if (row->type == COH_OPTION_ROOM) {
            snprintf(text, sizeof text, "%s", row->help);
            fputc('\n', out);
            print_wrapped(out, "# ", text);
            fprintf(out, "%s:\n", row->key);
        } else {
            print_reference(row, out);
        }
    }
}
