/* yaml_tree.c - see yaml_tree.h.
 *
 * libyaml gives events; each reader below takes the event that begins a node
 * and fetches the rest. A reader returns NULL after a fault, the fault is then
 * in err and the whole parse ends. Recursion is bound by COH_YAML_DEPTH_MAX.
 */
#include "common/yaml_tree.h"

#include <stdint.h>
#include <string.h>

#include <yaml.h>

#include "common/utf8.h"
#include "common/yaml_build.h"

typedef struct parse {
    yaml_parser_t yaml;
    const char *text; /* [length], borrowed */
    size_t length;
    coh_yaml_build build;
} parse;

static coh_yaml_place place_of(yaml_mark_t mark)
{
    return (coh_yaml_place){ (int)mark.line + 1, (int)mark.column + 1 };
}

/* --- Events -------------------------------------------------------------- */

static bool is_tab_indented(const parse *self, size_t line)
{
    const char *at = self->text, *end = self->text + self->length;

    while (line-- > 0 && at != NULL)
        if ((at = memchr(at, '\n', (size_t)(end - at))) != NULL)
            at++;
    while (at != NULL && at < end && *at == ' ')
        at++;
    return at != NULL && at < end && *at == '\t';
}

/* libyaml's message, and what most often is the cause. */
static bool syntax_fault(parse *self)
{
    static const struct {
        const char *part, *hint;
    } hints[] = {
        { "scanning an alias", "; quote a text that begins with *" },
        { "scanning an anchor", "; quote a text that begins with &" },
        { "scanning a directive", "; quote a text that begins with %" },
        { "cannot start any token",
          "; quote a text that begins with @, ` or %" },
        { "mapping values are not allowed",
          "; is the line indented as its neighbours are, is there a space "
          "after each colon? quote a text that holds ': '" },
        { "expected ':'", "; write key: value, with a space after the colon" },
        { "expected key", "; is the line indented as its neighbours are?" },
        { "expected node content", "; is a value missing, or a bracket left "
                                   "open?" },
        { "document start>", "; keep one document in a file" },
        { "end of stream", "; is a quote or a bracket left open?" },
        { "expected ',' or", "; is a quote or a bracket left open?" },
    };
    const yaml_parser_t *yaml = &self->yaml;
    const char *context = yaml->context != NULL ? yaml->context : "";
    const char *problem = yaml->problem != NULL ? yaml->problem : "bad YAML";
    const char *hint = "";

    if (yaml->error == YAML_MEMORY_ERROR)
        return coh_yaml_no_memory(&self->build) != NULL;
    if (is_tab_indented(self, yaml->problem_mark.line)) {
        coh_yaml_fault(&self->build, place_of(yaml->problem_mark),
                       "tab used for indentation; use spaces");
        return false;
    }
    for (size_t i = sizeof hints / sizeof hints[0]; i-- > 0;)
        if (strstr(context, hints[i].part) || strstr(problem, hints[i].part))
            hint = hints[i].hint;
    coh_yaml_fault(&self->build, place_of(yaml->problem_mark), "%s%s%s%s",
                   context, *context != '\0' ? ": " : "", problem, hint);
    return false;
}

/* On true the event is the caller's, to end with yaml_event_delete(). */
static bool next_event(parse *self, yaml_event_t *event)
{
    return yaml_parser_parse(&self->yaml, event) || syntax_fault(self);
}

static bool refuse_tag(parse *self, const yaml_event_t *event,
                       const yaml_char_t *tag)
{
    if (tag == NULL)
        return true;
    coh_yaml_fault(
        &self->build, place_of(event->start_mark),
        "tags (!) are not known; leave them out, quote a text that begins "
        "with !");
    return false;
}

/* --- Nodes --------------------------------------------------------------- */

static coh_yaml_node *read_scalar(parse *self, const yaml_event_t *event)
{
    const coh_yaml_place at = place_of(event->start_mark);
    if (!refuse_tag(self, event, event->data.scalar.tag))
        return NULL;
    coh_yaml_node *node = coh_yaml_new(&self->build, COH_YAML_SCALAR, at);
    if (node == NULL)
        return NULL;

    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text =
        coh_yaml_copy(&self->build, (const char *)event->data.scalar.value,
                      event->data.scalar.length, at);
    if (node->text == NULL ||
        !coh_yaml_name(&self->build, (const char *)event->data.scalar.anchor,
                       node))
        coh_yaml_destroy(&node);
    else
        coh_yaml_end(&self->build, node);
    return node;
}

static coh_yaml_node *read_node(parse *self, const yaml_event_t *event,
                                int depth);

/* Read the node that comes next and add it; *ended if the list's end came. */
static bool read_item(parse *self, coh_yaml_node *list, int depth, bool *ended)
{
    yaml_event_t event;
    if (!next_event(self, &event))
        return false;

    *ended = event.type == YAML_SEQUENCE_END_EVENT;
    bool ok = *ended ||
              coh_yaml_add(&self->build, list, read_node(self, &event, depth));
    yaml_event_delete(&event);
    return ok;
}

static bool check_key(parse *self, const coh_yaml_node *mapping,
                      const coh_yaml_node *key)
{
    if (key->kind != COH_YAML_SCALAR) {
        coh_yaml_fault(&self->build, key->at,
                       "a list or mapping cannot be a key; quote a text "
                       "that begins with [ or {");
        return false;
    }
    if (key->plain && strcmp(key->text, "<<") == 0) {
        coh_yaml_fault(&self->build, key->at,
                       "merge keys (<<) are not known; write the keys "
                       "out, or use an alias for the whole value");
        return false;
    }
    if (mapping->count == COH_YAML_KEYS_MAX) {
        coh_yaml_fault(&self->build, key->at,
                       "more than %d keys in one mapping", COH_YAML_KEYS_MAX);
        return false;
    }
    for (int i = 0; i < mapping->count; i++)
        if (strcmp(mapping->items[i]->key, key->text) == 0) {
            coh_yaml_fault(&self->build, key->at,
                           "%s: given twice, first in line %d; "
                           "remove one",
                           coh_utf8_clip(key->text).text,
                           mapping->items[i]->key_at.line);
            break;
        }
    return true; /* one more for the list of faults, reading goes on */
}

/* Read key and value and add them; *ended if the mapping's end came. */
static bool read_pair(parse *self, coh_yaml_node *mapping, int depth,
                      bool *ended)
{
    coh_yaml_node *key = NULL, *value = NULL;
    yaml_event_t event;
    if (!next_event(self, &event))
        return false;

    *ended = event.type == YAML_MAPPING_END_EVENT;
    if (event.type == YAML_SCALAR_EVENT && event.data.scalar.anchor != NULL)
        coh_yaml_fault(
            &self->build, place_of(event.start_mark),
            "an anchor names a key; put it in a line of its own before "
            "the key, or before the value");
    else if (!*ended)
        key = read_node(self, &event, depth);
    yaml_event_delete(&event);
    if (*ended)
        return true;

    if (key == NULL || !check_key(self, mapping, key) ||
        !next_event(self, &event))
        goto done;
    value = read_node(self, &event, depth);
    yaml_event_delete(&event);
    if (value != NULL) {
        value->key_at = key->at;
        value->key = key->text;
        key->text = NULL; /* moved */
    }

done:
    coh_yaml_destroy(&key);
    return coh_yaml_add(&self->build, mapping, value);
}

static coh_yaml_node *read_inside(parse *self, const yaml_event_t *event,
                                  int depth)
{
    const bool is_mapping = event->type == YAML_MAPPING_START_EVENT;
    const coh_yaml_place at = place_of(event->start_mark);
    bool ended = false;

    if (!coh_yaml_may_nest(&self->build, depth + 1, at) ||
        !refuse_tag(self, event,
                    is_mapping ? event->data.mapping_start.tag
                               : event->data.sequence_start.tag))
        return NULL;
    coh_yaml_node *node = coh_yaml_new(
        &self->build, is_mapping ? COH_YAML_MAPPING : COH_YAML_LIST, at);
    if (node == NULL)
        return NULL;

    const yaml_char_t *anchor = is_mapping ? event->data.mapping_start.anchor
                                           : event->data.sequence_start.anchor;
    bool ok = coh_yaml_name(&self->build, (const char *)anchor, node);
    while (ok && !ended)
        ok = is_mapping ? read_pair(self, node, depth + 1, &ended)
                        : read_item(self, node, depth + 1, &ended);
    if (!ok)
        coh_yaml_destroy(&node);
    else
        coh_yaml_end(&self->build, node);
    return node;
}

static coh_yaml_node *read_node(parse *self, const yaml_event_t *event,
                                int depth)
{
    if (event->type == YAML_ALIAS_EVENT)
        return coh_yaml_alias(&self->build,
                              (const char *)event->data.alias.anchor,
                              place_of(event->start_mark), depth);
    if (event->type == YAML_SCALAR_EVENT)
        return read_scalar(self, event);
    return read_inside(self, event, depth);
}

/* --- The document ------------------------------------------------------- */

static bool is_allowed(uint32_t point)
{
    if (point < 0x20)
        return point == '\t' || point == '\n' || point == '\r';
    return point < 0x7F || point == 0x85 ||
           (point >= 0xA0 && point != 0xFFFE && point != 0xFFFF);
}

size_t coh_yaml_text_length(const char *text, size_t length)
{
    size_t done = 0;
    uint32_t point;
    int step;

    while ((step = coh_utf8_decode(text + done, length - done, &point)) > 0 &&
           is_allowed(point))
        done += (size_t)step;
    return done;
}

/* Refuse what is no text, where it first is none. */
static bool check_text(parse *self)
{
    const size_t good = coh_yaml_text_length(self->text, self->length);
    coh_yaml_place at = { 1, 1 };
    if (good == self->length)
        return true;

    for (size_t i = 0; i < good; i++) {
        const bool is_tail = ((unsigned char)self->text[i] & 0xC0) == 0x80;
        at.column = self->text[i] == '\n' ? 1 : at.column + !is_tail;
        at.line += self->text[i] == '\n';
    }
    coh_yaml_fault(&self->build, at,
                   "byte 0x%02x is no text; a configuration is YAML in UTF-8",
                   (unsigned)(unsigned char)self->text[good]);
    return false;
}

/* Pass over one event; false after a fault. */
static bool skip_event(parse *self, yaml_event_type_t *type, coh_yaml_place *at)
{
    yaml_event_t event;
    if (!next_event(self, &event))
        return false;
    *type = event.type;
    *at = place_of(event.start_mark);
    yaml_event_delete(&event);
    return true;
}

static coh_yaml_node *read_document(parse *self)
{
    yaml_event_type_t type;
    yaml_event_t event;
    coh_yaml_place at;

    if (!skip_event(self, &type, &at) || !skip_event(self, &type, &at))
        return NULL;
    if (type == YAML_STREAM_END_EVENT) {
        coh_yaml_fault(&self->build, at,
                       "nothing but blanks and comments stands here");
        return NULL;
    }
    if (!next_event(self, &event))
        return NULL;
    coh_yaml_node *root = read_node(self, &event, 0);
    yaml_event_delete(&event);

    if (root == NULL || !skip_event(self, &type, &at) ||
        !skip_event(self, &type, &at))
        goto failed;
    if (type == YAML_STREAM_END_EVENT)
        return root;
    coh_yaml_fault(&self->build, at,
                   "a second document begins; keep one in a file");
failed:
    coh_yaml_destroy(&root);
    return NULL;
}

coh_status coh_yaml_parse(const char *name, const char *text, size_t length,
                          coh_yaml_node **out, coh_err *err)
{
    static const char mark[3] = { '\xEF', '\xBB', '\xBF' };
    if (length >= sizeof mark && memcmp(text, mark, sizeof mark) == 0) {
        text += sizeof mark;
        length -= sizeof mark;
    }

    parse self = { .text = text,
                   .length = length,
                   .build = { .name = name, .err = err } };
    if (length > COH_YAML_BYTES_MAX) {
        coh_yaml_fault(&self.build, (coh_yaml_place){ 1, 1 },
                       "more than %d MiB; is this a configuration?",
                       COH_YAML_BYTES_MAX >> 20);
        return self.build.status;
    }
    if (!check_text(&self))
        return self.build.status;
    if (!yaml_parser_initialize(&self.yaml)) {
        coh_yaml_no_memory(&self.build);
        return self.build.status;
    }
    yaml_parser_set_encoding(&self.yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&self.yaml, (const unsigned char *)text,
                                 length);

    coh_yaml_node *root = read_document(&self);
    if (root != NULL)
        *out = root;
    coh_yaml_forget(&self.build);
    yaml_parser_delete(&self.yaml);
    return self.build.status;
}
