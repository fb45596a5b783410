/* yaml_build.c - see yaml_build.h. */
#include "common/yaml_build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void coh_yaml_fault(coh_yaml_build *self, coh_yaml_place at, const char *fmt,
                    ...)
{
    char what[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);

    self->status = COH_E_CONFIG;
    if (self->name == NULL)
        coh_err_add(self->err, COH_E_CONFIG, "column %d: %s", at.column, what);
    else
        coh_err_add(self->err, COH_E_CONFIG, "%.250s:%d:%d: %s", self->name,
                    at.line, at.column, what);
}

void *coh_yaml_no_memory(coh_yaml_build *self)
{
    self->status = coh_fail(self->err, COH_E_NOMEM, "no memory to read %s",
                            self->name == NULL ? "a value" : self->name);
    return NULL;
}

/* --- Nodes ------------------------------------------------------------- */

coh_yaml_node *coh_yaml_new(coh_yaml_build *self, coh_yaml_kind kind,
                            coh_yaml_place at)
{
    if (++self->nodes > COH_YAML_NODES_MAX) {
        coh_yaml_fault(
            self, at,
            "more than %d values, aliases counted with all they stand for",
            COH_YAML_NODES_MAX);
        return NULL;
    }
    coh_yaml_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return coh_yaml_no_memory(self);
    node->kind = kind;
    node->at = at;
    return node;
}

char *coh_yaml_copy(coh_yaml_build *self, const char *text, size_t length,
                    coh_yaml_place at)
{
    if (memchr(text, '\0', length) != NULL) {
        coh_yaml_fault(self, at, "a text holds the character NUL (\\0)");
        return NULL;
    }
    self->bytes += length;
    if (self->bytes > COH_YAML_BYTES_MAX) {
        coh_yaml_fault(self, at,
                       "more than %d MiB of text, aliases counted with all "
                       "they stand for",
                       COH_YAML_BYTES_MAX >> 20);
        return NULL;
    }
    char *copy = strndup(text, length);
    return copy != NULL ? copy : coh_yaml_no_memory(self);
}

bool coh_yaml_add(coh_yaml_build *self, coh_yaml_node *node,
                  coh_yaml_node *child)
{
    if (child == NULL)
        return false;

    const bool is_full = (node->count & (node->count - 1)) == 0;
    if (is_full) { /* 0, 1, 2, 4, ...: double */
        const size_t room = node->count == 0 ? 1 : 2 * (size_t)node->count;
        coh_yaml_node **items =
            realloc(node->items, room * sizeof(coh_yaml_node *));
        if (items == NULL) {
            coh_yaml_destroy(&child);
            return coh_yaml_no_memory(self) != NULL;
        }
        node->items = items;
    }
    node->items[node->count++] = child;
    return true;
}

void coh_yaml_destroy(coh_yaml_node **self)
{
    coh_yaml_node *node = *self;
    if (node == NULL)
        return;

    for (int i = 0; i < node->count; i++)
        coh_yaml_destroy(&node->items[i]);
    free(node->items);
    free(node->text);
    free(node->key);
    free(node);
    *self = NULL;
}

bool coh_yaml_may_nest(coh_yaml_build *self, int depth, coh_yaml_place at)
{
    if (depth <= COH_YAML_DEPTH_MAX)
        return true;
    coh_yaml_fault(self, at,
                   "more than %d lists and mappings inside each other",
                   COH_YAML_DEPTH_MAX);
    return false;
}

/* --- Anchors and aliases ------------------------------------------------ */

bool coh_yaml_name(coh_yaml_build *self, const char *name,
                   const coh_yaml_node *node)
{
    if (name == NULL)
        return true;
    if (self->nanchors == COH_YAML_ANCHORS_MAX) {
        coh_yaml_fault(self, node->at, "more than %d anchors",
                       COH_YAML_ANCHORS_MAX);
        return false;
    }
    coh_yaml_anchor *anchor = &self->anchors[self->nanchors];
    *anchor = (coh_yaml_anchor){ .name = strdup(name), .node = node };
    if (anchor->name == NULL)
        return coh_yaml_no_memory(self) != NULL;
    self->nanchors++;
    return true;
}

void coh_yaml_end(coh_yaml_build *self, const coh_yaml_node *node)
{
    for (int i = self->nanchors - 1; i >= 0; i--)
        if (self->anchors[i].node == node) {
            self->anchors[i].is_whole = true;
            return;
        }
}

/* A copy of `from` that stands at `at`; what is inside keeps its place. */
static coh_yaml_node *copy_node(coh_yaml_build *self, const coh_yaml_node *from,
                                coh_yaml_place at, int depth)
{
    if (!coh_yaml_may_nest(self, depth + (from->kind != COH_YAML_SCALAR), at))
        return NULL;
    coh_yaml_node *node = coh_yaml_new(self, from->kind, at);
    if (node == NULL)
        return NULL;

    node->plain = from->plain;
    node->key_at = from->key_at;
    if (from->key != NULL &&
        !(node->key = coh_yaml_copy(self, from->key, strlen(from->key), at)))
        goto failed;
    if (from->text != NULL &&
        !(node->text = coh_yaml_copy(self, from->text, strlen(from->text), at)))
        goto failed;
    for (int i = 0; i < from->count; i++)
        if (!coh_yaml_add(
                self, node,
                copy_node(self, from->items[i], from->items[i]->at, depth + 1)))
            goto failed;
    return node;

failed:
    coh_yaml_destroy(&node);
    return NULL;
}

coh_yaml_node *coh_yaml_alias(coh_yaml_build *self, const char *name,
                              coh_yaml_place at, int depth)
{
    int i = self->nanchors - 1; /* the last of a name counts, as in YAML */

    while (i >= 0 && strcmp(self->anchors[i].name, name) != 0)
        i--;
    if (i < 0) {
        coh_yaml_fault(self, at,
                       "alias *%.40s: no anchor &%.40s stands before it; "
                       "quote a text that begins with *",
                       name, name);
        return NULL;
    }
    if (!self->anchors[i].is_whole) {
        coh_yaml_fault(self, at,
                       "alias *%.40s stands inside what it stands for", name);
        return NULL;
    }
    coh_yaml_node *node = copy_node(self, self->anchors[i].node, at, depth);
    if (node != NULL) { /* the anchor's key is not the alias's */
        free(node->key);
        node->key = NULL;
    }
    return node;
}

void coh_yaml_forget(coh_yaml_build *self)
{
    for (int i = 0; i < self->nanchors; i++)
        free(self->anchors[i].name);
    self->nanchors = 0;
}
