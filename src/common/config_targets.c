/* config_targets.c - the list model.targets, see config_option.h. */
#include "common/config_option.h"

#include <stdlib.h>
#include <string.h>

enum { LABEL_MAX = 160, FIELDS = 2 };

static const coh_option fields[FIELDS] = {
    { .type = COH_OPTION_NAME,
      .key = "name",
      .offset = offsetof(coh_target_spec, name),
      .unit = "" },
    { .type = COH_OPTION_INTS,
      .key = "shape",
      .offset = offsetof(coh_target_spec, shape),
      .value = 3,
      .low = 1,
      .high = 1000000,
      .unit = "" },
};

static const coh_option *find_field(const char *key)
{
    for (int i = 0; i < FIELDS; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

static bool check(coh_reader *self, const coh_yaml_node *item,
                  const coh_target_spec *targets, int i)
{
    const coh_target_spec *target = &targets[i];
    char label[LABEL_MAX];

    snprintf(label, sizeof label, "model.targets: target %d", i + 1);
    if (target->name[0] == '\0' || target->shape.count == 0) {
        coh_reader_fault(self, item->at, label,
                         "%s missing; e.g. {name: box, shape: [4, 24, 24]}",
                         target->name[0] == '\0' ? "name" : "shape");
        return false;
    }
    if (strcmp(target->name, "input") == 0 ||
        strcmp(target->name, "label") == 0) {
        coh_reader_fault(self, item->at, label,
                         "'%s' is there without being named; give the target "
                         "another name",
                         target->name);
        return false;
    }
    for (int j = 0; j < i; j++)
        if (strcmp(targets[j].name, target->name) == 0) {
            coh_reader_fault(self, item->at, label,
                             "target %d is called %s, too; give one another "
                             "name",
                             j + 1, target->name);
            return false;
        }
    return true;
}

static bool read_target(coh_reader *self, const coh_yaml_node *item,
                        coh_target_spec *targets, int i)
{
    char label[LABEL_MAX];
    bool ok = true;

    targets[i].line = item->at.line;
    if (item->kind != COH_YAML_MAPPING) {
        snprintf(label, sizeof label, "model.targets: target %d", i + 1);
        coh_reader_fault(self, item->at, label,
                         "wants a name and a shape, e.g. {name: box, shape: "
                         "[4, 24, 24]}");
        return false;
    }
    for (int k = 0; k < item->count; k++) {
        const coh_yaml_node *node = item->items[k];
        const coh_option *field = find_field(node->key);
        snprintf(label, sizeof label, "model.targets: target %d, %s", i + 1,
                 coh_utf8_clip(node->key).text);
        if (field == NULL)
            coh_reader_fault(self, node->key_at, label,
                             "unknown field; a target has name, shape");
        ok = field != NULL &&
             coh_option_read(self, field, node, label, &targets[i]) && ok;
    }
    return ok && check(self, item, targets, i);
}

bool coh_targets_read(coh_reader *reader, const coh_option *row,
                      const coh_yaml_node *node)
{
    coh_config *config = reader->config;
    bool ok = true;

    if (node->kind != COH_YAML_LIST) {
        coh_reader_fault(
            reader, node->at, row->key,
            "wants a list, e.g. [{name: box, shape: [4, 24, 24]}]");
        return false;
    }
    coh_target_spec *targets = calloc((size_t)node->count + 1, sizeof *targets);
    if (targets == NULL) {
        reader->no_memory = true;
        return false;
    }
    for (int i = 0; i < node->count && !coh_reader_is_full(reader); i++)
        ok = read_target(reader, node->items[i], targets, i) && ok;
    if (!ok) {
        free(targets);
        return false;
    }
    coh_option_clear(row, config);
    config->model.targets = targets;
    config->model.ntargets = node->count;
    return true;
}
