/* yaml_tree.h - a YAML text as a tree of nodes that know where they stand.
 *
 *     parse -> read -> destroy
 *
 * Less than YAML, on purpose: one document, keys are scalars and unlike each
 * other, no tags, no merge keys (<<). An alias becomes a copy of what its
 * anchor names. Whatever the text, parsing ends soon and in little memory:
 * what passes a limit below is refused. A leading byte order mark and CRLF
 * are fine; the text must be UTF-8.
 *
 * The only file that knows libyaml is yaml_tree.c.
 */
#ifndef COH_COMMON_YAML_TREE_H
#define COH_COMMON_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/status.h"

enum {
    COH_YAML_BYTES_MAX = 4 << 20, /* of the text, and of all copied scalars */
    COH_YAML_NODES_MAX = 100000,  /* copies included */
    COH_YAML_DEPTH_MAX = 64,      /* lists and mappings inside each other */
    COH_YAML_KEYS_MAX = 1000,     /* in one mapping */
    COH_YAML_ANCHORS_MAX = 1000
};

typedef enum coh_yaml_kind {
    COH_YAML_SCALAR,
    COH_YAML_LIST,
    COH_YAML_MAPPING
} coh_yaml_kind;

typedef struct coh_yaml_place {
    int line, column; /* from 1; columns in characters */
} coh_yaml_place;

typedef struct coh_yaml_node coh_yaml_node;
struct coh_yaml_node {
    coh_yaml_kind kind;
    coh_yaml_place at;
    char *key; /* owned; NULL if the node is not in a mapping */
    coh_yaml_place key_at;
    bool plain; /* SCALAR: written without quotes */
    char *text; /* SCALAR: owned, UTF-8, without NUL; "" if nothing stands */
    int count;  /* LIST, MAPPING */
    coh_yaml_node **items; /* [count], owned, in the order of the text */
};

/* `name` stands for the file in messages, "name:line:column: what is wrong";
 * without name (NULL) they begin with "column N: ".
 * On COH_OK *out is the caller's, to end with coh_yaml_destroy(). If keys
 * given twice are the only fault, each is a line of *err and *out is set all
 * the same, so that the caller can look for more faults.
 * Fails with COH_E_CONFIG or COH_E_NOMEM. */
coh_status coh_yaml_parse(const char *name, const char *text, size_t length,
                          coh_yaml_node **out, coh_err *err);

/* Free *self and set it to NULL. A NULL *self is fine. */
void coh_yaml_destroy(coh_yaml_node **self);

/* How many bytes of text[length] come before the first that YAML forbids: no
 * UTF-8, NUL, or another control character. */
size_t coh_yaml_text_length(const char *text, size_t length);

#endif
