/* config_option.h - the rows of options.h and layers.h as data, and what the
 * config*.c files share about them. Nobody else includes this.
 *
 * Every value of the configuration, a key's or a layer's field, is read,
 * bounded, defaulted, written and explained by its row.
 */
#ifndef COH_COMMON_CONFIG_OPTION_H
#define COH_COMMON_CONFIG_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/config.h"
#include "common/options.h"
#include "common/utf8.h"
#include "common/yaml_tree.h"

typedef enum coh_option_type {
    /* Of keys; INT, REAL and BOOL of layers too. The C type of the field: */
    COH_OPTION_INT,     /* int64_t */
    COH_OPTION_REAL,    /* double */
    COH_OPTION_BOOL,    /* bool */
    COH_OPTION_ENUM,    /* int */
    COH_OPTION_TEXT,    /* char *, owned */
    COH_OPTION_LIST,    /* coh_list */
    COH_OPTION_INTS,    /* coh_ints */
    COH_OPTION_ROOM,    /* none */
    COH_OPTION_TARGETS, /* model.ntargets and .targets */
    COH_OPTION_LAYERS,  /* model.nlayers and .layers */
    /* Of layers only: */
    COH_OPTION_NAME,    /* char[COH_NAME_MAX] */
    COH_OPTION_PAIR,    /* int64_t[2] */
    COH_OPTION_PADDING, /* padding and same */
    COH_OPTION_NAMES    /* coh_names */
} coh_option_type;

typedef struct coh_option {
    coh_option_type type;
    const char *key;          /* dotted; a layer's field: its name */
    size_t offset;            /* in coh_config, or in coh_layer_spec */
    int64_t value, low, high; /* INT, PAIR, INTS (value: how many); value also
                                 BOOL, ENUM */
    double real, real_low, real_high; /* REAL */
    const char *text;    /* TEXT, LIST: default; ENUM: the names, a|b */
    const char *letters; /* fields: the kinds of layer that have it */
    const char *unit;    /* "" if none */
    const char *help;
} coh_option;

/* How many rows; model.targets and .layers, the last, are in no table. */
#define COH_ONE(...) +1
enum {
    COH_OPTION_COUNT = 2 COH_OPTIONS(COH_ONE, COH_ONE, COH_ONE, COH_ONE,
                                     COH_ONE, COH_ONE, COH_ONE, COH_ONE),
    COH_LAYER_KIND_COUNT = 0 COH_LAYER_KINDS(COH_ONE),
    COH_LAYER_FIELD_COUNT = 0 COH_LAYER_FIELDS(
        COH_ONE, COH_ONE, COH_ONE, COH_ONE, COH_ONE, COH_ONE, COH_ONE)
};
#undef COH_ONE

typedef struct coh_layer_row {
    const char *name, *letter, *help;
} coh_layer_row;

extern const coh_option coh_options[COH_OPTION_COUNT];
extern const coh_option coh_layer_fields[COH_LAYER_FIELD_COUNT];
extern const coh_layer_row coh_layer_rows[COH_LAYER_KIND_COUNT];

/* NULL if there is none. */
const coh_option *coh_option_find(const char *key);

/* The key without its room. */
const char *coh_option_word(const char *key);

/* What to write instead of the unknown `key`: "did you mean optimizer.rate?",
 * or which keys there are. */
enum { COH_ADVICE_MAX = 512 };
void coh_option_advise(const char *key, char out[COH_ADVICE_MAX]);

/* Does this kind of layer have this field? */
bool coh_layer_has(coh_layer_kind kind, const coh_option *field);

/* Must the field be given? Its default is then below what is allowed. */
bool coh_layer_needs(const coh_option *field);

/* --- One value ---------------------------------------------------------- */

enum { COH_BOUNDS_MAX = 256 };

/* What a row allows, for people: "1 to 64 batches", "sgd, adam". */
void coh_option_bounds(const coh_option *self, char out[COH_BOUNDS_MAX]);

/* What a value of the row is called: "integer", "list of texts". */
const char *coh_option_noun(const coh_option *self);

/* Put the default into the row's field of `base`, a coh_config or
 * coh_layer_spec, and free what was there. False: no memory. */
bool coh_option_reset(const coh_option *self, void *base);

/* Free what the field owns. */
void coh_option_clear(const coh_option *self, void *base);

/* Print the field as a YAML value on one line; not for LAYERS, ROOM. */
void coh_option_write(const coh_option *self, const void *base, FILE *out);

/* Read a whole text as a number. NULL, or what is wrong with it. */
const char *coh_number_int(const char *text, int64_t *out);
const char *coh_number_real(const char *text, double *out);

/* The shortest text that reads as the same double, whatever the locale. */
enum { COH_REAL_MAX = 32 };
void coh_number_text(double value, char out[COH_REAL_MAX]);

/* --- Reading a whole configuration --------------------------------------- */

/* What the file or a --set said of a key. */
typedef enum coh_mark_state {
    COH_MARK_DEFAULT, /* nothing */
    COH_MARK_SET,     /* a value */
    COH_MARK_FAULTY   /* a value that was refused */
} coh_mark_state;

typedef struct coh_mark {
    coh_mark_state state;
    const char *set; /* the --set, borrowed; NULL: the file */
    coh_yaml_place at;
} coh_mark;

typedef struct coh_reader {
    const char *path; /* borrowed */
    const char *set;  /* the --set being read, borrowed; NULL: the file */
    coh_config *config;
    coh_mark marks[COH_OPTION_COUNT];
    int faults;
    bool no_memory;
    coh_err *err;
} coh_reader;

/* Add a line to the message: where, the key, then fmt. A place without line or
 * column is printed without. After so many that the message is full, faults
 * are only counted. */
void coh_reader_fault(coh_reader *self, coh_yaml_place at, const char *key,
                      const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
bool coh_reader_is_full(const coh_reader *self);

/* Read a node into the row's field of base; null gives the default. `key`
 * names it in messages. False after a fault, and the field is unchanged. */
bool coh_option_read(coh_reader *reader, const coh_option *row,
                     const coh_yaml_node *node, const char *key, void *base);

/* Read model.targets into reader->config. False after a fault. */
bool coh_targets_read(coh_reader *reader, const coh_option *row,
                      const coh_yaml_node *node);

/* Read model.layers into reader->config. False after a fault. */
bool coh_layers_read(coh_reader *reader, const coh_option *row,
                     const coh_yaml_node *node);

/* Everything that more than one key decides. Adds to the faults. */
void coh_config_check(coh_reader *reader);

/* Does the user ask for the default: nothing, ~ or null, without quotes? */
bool coh_is_null(const coh_yaml_node *node);

#endif
