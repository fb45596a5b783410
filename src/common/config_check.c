/* config_check.c - what more than one key decides, see config_option.h.
 *
 * A check is silent where a value it needs was refused already: one mistake
 * gives one line.
 */
#include "common/config_option.h"

#include <inttypes.h>
#include <limits.h>
#include <string.h>

#include "common/optim/momentum.h"
#include "common/optim/rule.h"

#define AT(field) offsetof(coh_config, field)

static int index_of(size_t offset)
{
    int i = 0;
    while (i < COH_OPTION_COUNT && (coh_options[i].type == COH_OPTION_ROOM ||
                                    coh_options[i].offset != offset))
        i++;
    COH_ASSERT(i < COH_OPTION_COUNT);
    return i;
}

static bool is_sound(const coh_reader *self, size_t offset)
{
    return self->marks[index_of(offset)].state != COH_MARK_FAULTY;
}

/* A fault of the key whose field lies at offset, in the line where its value
 * stands, or in `line` if that is not 0. */
static void refuse(coh_reader *self, size_t offset, int line, const char *what)
{
    const int i = index_of(offset);
    coh_yaml_place at = self->marks[i].at;

    if (line != 0)
        at = (coh_yaml_place){ line, 0 };
    self->set = self->marks[i].set;
    coh_reader_fault(self, at, coh_options[i].key, "%s", what);
    self->set = NULL;
}

static void check_run(coh_reader *self)
{
    const char *name = self->config->run.name;

    if (name[0] == '\0' || strchr(name, '/') != NULL ||
        strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
        strlen(name) > NAME_MAX ||
        coh_yaml_text_length(name, strlen(name)) < strlen(name)) {
        char what[256];
        snprintf(what, sizeof what,
                 "'%s' cannot name a folder; write a plain name without /, of "
                 "at most %d bytes, e.g. name: hep1",
                 coh_utf8_clip(name).text, NAME_MAX);
        refuse(self, AT(run.name), 0, what);
    }
    if (self->config->run.out[0] == '\0')
        refuse(self, AT(run.out), 0,
               "empty; write the folder that holds the runs, e.g. out: runs");
}

static void check_training(coh_reader *self)
{
    const coh_config *config = self->config;
    char what[128];

    if (config->groups > 1 && config->servers == 0 &&
        is_sound(self, AT(groups)) && is_sound(self, AT(servers))) {
        snprintf(what, sizeof what,
                 "0, but %" PRId64 " groups need at least one to meet at; "
                 "write servers: 1, or groups: 1",
                 config->groups);
        refuse(self, AT(servers), 0, what);
    }
    if (config->testing.slow_group >= config->groups &&
        is_sound(self, AT(groups)) && is_sound(self, AT(testing.slow_group))) {
        snprintf(what, sizeof what,
                 "%" PRId64 ", but groups: %" PRId64 " are numbered from 0",
                 config->testing.slow_group, config->groups);
        refuse(self, AT(testing.slow_group), 0, what);
    }
    if (config->testing.slow_server >= 0 &&
        config->testing.slow_server >= config->servers &&
        is_sound(self, AT(servers)) &&
        is_sound(self, AT(testing.slow_server))) {
        snprintf(what, sizeof what,
                 "%" PRId64 ", but servers: %" PRId64 " are numbered from 0",
                 config->testing.slow_server, config->servers);
        refuse(self, AT(testing.slow_server), 0, what);
    }
    if (!(config->optimizer.rate > 0.0) && is_sound(self, AT(optimizer.rate)))
        refuse(self, AT(optimizer.rate), 0,
               "0 trains nothing; it must be above 0, e.g. rate: 0.01");
    if (!(config->train.epochs > 0.0) && config->train.steps == 0 &&
        is_sound(self, AT(train.epochs)) && is_sound(self, AT(train.steps)))
        refuse(self, AT(train.epochs), 0,
               "0 with train.steps 0 has no end; set one of them, e.g. "
               "epochs: 10");
}

/* Policy sync: a gradient is that of all groups, and no group knows its norm. */
static void check_clip(coh_reader *self)
{
    const coh_config *config = self->config;

    if (config->optimizer.clip_norm > 0 && config->groups > 1 &&
        config->policy == COH_POLICY_SYNC &&
        is_sound(self, AT(optimizer.clip_norm)) && is_sound(self, AT(groups)) &&
        is_sound(self, AT(policy)))
        refuse(self, AT(optimizer.clip_norm), 0,
               "no group knows the norm of the sum that policy: sync makes of "
               "all; write clip_norm: 0, or groups: 1 with a larger "
               "group_size");
}

static void check_update(coh_reader *self)
{
    const coh_config *config = self->config;

    if (config->exchange.update == COH_UPDATE_OWNERS && config->servers > 0 &&
        is_sound(self, AT(exchange.update)) && is_sound(self, AT(servers)))
        refuse(self, AT(exchange.update), 0,
               "owners, but with servers these own all weights; write update: "
               "all, or servers: 0");
}

/* A server compares with the weights it last sent: with a lag the gradient is of
 * those before. */
static void check_lag(coh_reader *self)
{
    const coh_config *config = self->config;
    const bool compensates = config->optimizer.rule == COH_RULE_DCASGD ||
                             config->optimizer.rule == COH_RULE_DCASGD_A;

    if (config->exchange.lag > 0 && compensates &&
        is_sound(self, AT(exchange.lag)) && is_sound(self, AT(optimizer.rule)))
        refuse(self, AT(exchange.lag), 0,
               "1, but dcasgd needs gradients of the weights that were last "
               "sent; write lag: 0, or another optimizer.rule");
}

/* What optimizer.rule can be combined with: the table of docs/rules.md. */
static void check_rule(coh_reader *self)
{
    const coh_config *config = self->config;
    if (!is_sound(self, AT(optimizer.rule)))
        return;

    if (config->optimizer.momentum_auto && !coh_momentum_counts(config) &&
        is_sound(self, AT(optimizer.momentum_auto)))
        refuse(self, AT(optimizer.momentum_auto), 0,
               "true, but optimizer.rule has no momentum; write rule: sgd, "
               "nesterov, lars or dcasgd, or momentum_auto: false");
    if (coh_rule_takes_layers(config) &&
        config->exchange.placement != COH_PLACEMENT_LAYER &&
        is_sound(self, AT(exchange.placement)))
        refuse(self, AT(optimizer.rule), 0,
               "lars and lamb measure whole layers; write exchange: "
               "{placement: layer}, or rule: sgd or adamw");
}

/* Groups that update weights of their own: so too. */
static void check_local(coh_reader *self)
{
    const coh_config *config = self->config;
    const bool is_elastic = config->exchange.elastic > 0;
    const size_t key = is_elastic ? AT(exchange.elastic) : AT(exchange.every);
    const coh_rule rule = coh_rule_of(config);
    if (!coh_rule_is_local(config) || !is_sound(self, AT(exchange.every)) ||
        !is_sound(self, AT(exchange.elastic)))
        return;

    if (config->servers == 0 && is_sound(self, AT(servers)))
        refuse(self, key, 0,
               "there is nobody to exchange with; write servers: 1, or leave "
               "it out");
    if (is_elastic && config->policy == COH_POLICY_SYNC &&
        is_sound(self, AT(policy)))
        refuse(
            self, key, 0,
            "elastic averaging is for groups that do not wait; write "
            "policy: async or bounded, or exchange: {every: ..} alone, which "
            "with sync averages the groups");
    if (is_elastic && config->exchange.push != COH_WIRE_FLOAT32 &&
        is_sound(self, AT(exchange.push)))
        refuse(self, AT(exchange.push), 0,
               "exchange.elastic pushes weights, which 16 bits do not hold; "
               "write push: float32");
    if (config->exchange.lag > 0 && is_sound(self, AT(exchange.lag)))
        refuse(self, AT(exchange.lag), 0,
               "1, but with exchange.every or elastic a group goes on with "
               "weights of its own; write lag: 0, or leave these two out");
    if (coh_rule_compensates(&rule) && is_sound(self, AT(optimizer.rule)))
        refuse(self, AT(optimizer.rule), 0,
               "dcasgd corrects gradients at the servers, and with "
               "exchange.every or elastic none go there; write rule: sgd, or "
               "leave these two out");
    if (config->optimizer.momentum_auto &&
        is_sound(self, AT(optimizer.momentum_auto)))
        refuse(self, AT(optimizer.momentum_auto), 0,
               "true, but with exchange.every or elastic the momentum is each "
               "group's own; write false, or leave these two out");
    if (config->optimizer.staleness != COH_STALENESS_NONE &&
        is_sound(self, AT(optimizer.staleness)))
        refuse(self, AT(optimizer.staleness), 0,
               "inverse lowers the rate of late gradients at the servers, and "
               "with exchange.every or elastic none go there; write none, or "
               "leave these two out");
}

/* idx keeps images and labels apart: as many patterns of one as of the other.
 */
static void check_labels(coh_reader *self, size_t images, size_t labels)
{
    const char *base = (const char *)self->config;
    const coh_list *image_list = (const coh_list *)(base + images);
    const coh_list *label_list = (const coh_list *)(base + labels);
    char what[192];

    if (image_list->count == label_list->count || !is_sound(self, images) ||
        !is_sound(self, labels))
        return;
    snprintf(what, sizeof what,
             "%d given for %d of %s; idx needs a label file for each image "
             "file, in the same order",
             label_list->count, image_list->count,
             coh_options[index_of(images)].key);
    refuse(self, labels, 0, what);
}

static void check_data(coh_reader *self)
{
    const coh_config *config = self->config;
    const int kind = config->data.kind;
    if (!is_sound(self, AT(data.kind)))
        return;

    if (kind != COH_DATA_SYNTHETIC && config->data.train.count == 0 &&
        is_sound(self, AT(data.train)))
        refuse(self, AT(data.train), 0,
               kind == COH_DATA_IDX
                   ? "missing; e.g. train: train-images-idx3-ubyte.gz"
                   : "missing; e.g. train: data/train_*.h5");
    if (kind == COH_DATA_IDX) {
        check_labels(self, AT(data.train), AT(data.train_labels));
        check_labels(self, AT(data.validation), AT(data.validation_labels));
        check_labels(self, AT(data.test), AT(data.test_labels));
    }
    if (kind == COH_DATA_HDF5 && config->data.images.count == 0 &&
        is_sound(self, AT(data.images)))
        refuse(self, AT(data.images), 0,
               "empty; name the dataset of the images, e.g. images: data");
    if (kind == COH_DATA_HDF5 && config->data.labels[0] == '\0')
        refuse(self, AT(data.labels), 0,
               "empty; name the dataset of the labels, e.g. labels: label");
}

/* Choosing the best weights needs something to measure them on. */
static void check_select(coh_reader *self)
{
    const coh_config *config = self->config;
    const bool has_files =
        config->data.validation.count > 0 || config->data.test.count > 0;
    const bool has_samples = config->data.kind == COH_DATA_SYNTHETIC
                                 ? config->data.test_samples > 0
                                 : has_files;

    if (config->eval.select == COH_SELECT_BEST && !has_samples &&
        is_sound(self, AT(data.kind)) && is_sound(self, AT(data.validation)) &&
        is_sound(self, AT(data.test)) && is_sound(self, AT(data.test_samples)))
        refuse(self, AT(eval.select), 0,
               "best has no samples to choose by; give data.validation or "
               "data.test, or write select: last");
}

static void check_model(coh_reader *self)
{
    const coh_config *config = self->config;
    const int count = config->model.nlayers;
    char what[256];

    if (config->model.input.count == 0 && is_sound(self, AT(model.input)))
        refuse(self, AT(model.input), 0,
               "missing; the shape of a sample as [channels, height, width], "
               "e.g. input: [1, 28, 28]");
    if (!is_sound(self, AT(model.layers)))
        return;
    if (count == 0) {
        refuse(self, AT(model.layers), 0,
               "missing; e.g. layers: [dense: {units: 10}, "
               "softmax_cross_entropy]");
        return;
    }
    for (int i = 0; i < count; i++) {
        const coh_layer_spec *layer = &config->model.layers[i];
        const bool is_loss = coh_layer_is_loss(layer->kind);
        if (i == count - 1 && !is_loss) {
            snprintf(what, sizeof what,
                     "the last layer, %d, %s, is no loss; add "
                     "- softmax_cross_entropy",
                     i + 1, layer->name);
            refuse(self, AT(model.layers), layer->line, what);
        }
        if (i < count - 1 && is_loss && layer[1].from.count == 0) {
            snprintf(what, sizeof what,
                     "layer %d, %s, comes after the loss %s, which has no "
                     "output; tell it a layer by from:, or remove the loss",
                     i + 2, layer[1].name, layer->name);
            refuse(self, AT(model.layers), layer[1].line, what);
        }
    }
}

void coh_config_check(coh_reader *reader)
{
    check_training(reader);
    check_rule(reader);
    check_clip(reader);
    check_update(reader);
    check_local(reader);
    check_lag(reader);
    check_run(reader);
    check_data(reader);
    check_select(reader);
    check_model(reader);
}
