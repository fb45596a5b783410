/* yaml_build.h - the inside of yaml_tree.c that needs no libyaml: nodes, and
 * the copies that aliases become, within the limits of yaml_tree.h.
 *
 * Whatever returns a pointer or bool gives NULL or false after a fault; the
 * fault is then in err, and the parse must end.
 */
#ifndef COH_COMMON_YAML_BUILD_H
#define COH_COMMON_YAML_BUILD_H

#include "common/yaml_tree.h"

typedef struct coh_yaml_anchor {
    char *name;                /* owned */
    const coh_yaml_node *node; /* in the tree being built */
    bool is_whole;             /* false while the node is being read */
} coh_yaml_anchor;

typedef struct coh_yaml_build {
    const char *name; /* of the file, borrowed; or NULL */
    int nodes;        /* made so far */
    size_t bytes;     /* copied so far */
    int nanchors;
    coh_yaml_anchor anchors[COH_YAML_ANCHORS_MAX];
    coh_status status; /* COH_OK until the first fault */
    coh_err *err;      /* borrowed */
} coh_yaml_build;

/* Add a line "name:line:column: ..." to err. */
void coh_yaml_fault(coh_yaml_build *self, coh_yaml_place at, const char *fmt,
                    ...) __attribute__((format(printf, 3, 4)));

/* NULL, after saying so. */
void *coh_yaml_no_memory(coh_yaml_build *self);

/* An empty node, the caller's. */
coh_yaml_node *coh_yaml_new(coh_yaml_build *self, coh_yaml_kind kind,
                            coh_yaml_place at);

/* A copy of text[length], the caller's. Refuses NUL inside. */
char *coh_yaml_copy(coh_yaml_build *self, const char *text, size_t length,
                    coh_yaml_place at);

/* Put child at the end of node, which owns it then. A NULL child is a fault
 * that was reported already. */
bool coh_yaml_add(coh_yaml_build *self, coh_yaml_node *node,
                  coh_yaml_node *child);

/* May a list or mapping stand at this depth (the root's is 1)? */
bool coh_yaml_may_nest(coh_yaml_build *self, int depth, coh_yaml_place at);

/* The anchor `name` (NULL: none) is node; aliases may name it once
 * coh_yaml_end() said that the node is whole. */
bool coh_yaml_name(coh_yaml_build *self, const char *name,
                   const coh_yaml_node *node);
void coh_yaml_end(coh_yaml_build *self, const coh_yaml_node *node);

/* A copy, the caller's, of what `name` stands for, to stand at `at` inside
 * `depth` others. The nodes inside keep the place where they were written. */
coh_yaml_node *coh_yaml_alias(coh_yaml_build *self, const char *name,
                              coh_yaml_place at, int depth);

/* Free what the anchors own. */
void coh_yaml_forget(coh_yaml_build *self);

#endif
