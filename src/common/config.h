/* config.h - one job: what the YAML file and --set said, checked.
 *
 *     load -> read fields -> destroy
 *
 * Values are plain fields, filled from the rows of options.h; texts and lists
 * are owned by the config. Everything is checked that can be checked without
 * the launch and the data; every fault found is one line of the message, as
 *     hep.yaml:12:3: optimizer.rat: unknown key; did you mean optimizer.rate?
 *
 * Nothing, ~ or null as the value of a key, or of a whole room, gives the
 * default. Quotes do not matter elsewhere: "32" is an integer too, a text is
 * taken as it stands (007). Keys in a file are not dotted: rooms are mappings.
 * If the file is no YAML, only that and the faults of --set are reported.
 *
 * Not collective: every rank may load the same file, or rank 0 loads it and
 * sends the text of coh_config_write().
 */
#ifndef COH_COMMON_CONFIG_H
#define COH_COMMON_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/layers.h"
#include "common/status.h"

/* Of a block, and so of a message: its count must fit an int. */
#define COH_BLOCK_BYTES_MAX ((int64_t)1 << 30)

typedef enum coh_policy_kind {
    COH_POLICY_ASYNC,
    COH_POLICY_BOUNDED,
    COH_POLICY_SYNC
} coh_policy_kind;
typedef enum coh_rule_kind {
    COH_RULE_SGD,
    COH_RULE_NESTEROV,
    COH_RULE_ADAM,
    COH_RULE_ADAMW,
    COH_RULE_LARS,
    COH_RULE_LAMB,
    COH_RULE_DCASGD,
    COH_RULE_DCASGD_A,
    COH_RULE_ADD,    /* of servers, where groups update: not to be configured */
    COH_RULE_ELASTIC /* so too */
} coh_rule_kind;
typedef enum coh_schedule_kind {
    COH_SCHEDULE_CONSTANT,
    COH_SCHEDULE_STEP,
    COH_SCHEDULE_COSINE
} coh_schedule_kind;
typedef enum coh_staleness_kind {
    COH_STALENESS_NONE,
    COH_STALENESS_INVERSE
} coh_staleness_kind;
typedef enum coh_collectives_kind {
    COH_COLLECTIVES_MPI,
    COH_COLLECTIVES_OWN
} coh_collectives_kind;
typedef enum coh_placement_kind {
    COH_PLACEMENT_BALANCED,
    COH_PLACEMENT_LAYER
} coh_placement_kind;
typedef enum coh_wire_kind {
    COH_WIRE_FLOAT32,
    COH_WIRE_BFLOAT16,
    COH_WIRE_FLOAT16
} coh_wire_kind;
typedef enum coh_data_kind {
    COH_DATA_IDX,
    COH_DATA_HDF5,
    COH_DATA_SYNTHETIC
} coh_data_kind;
typedef enum coh_axes { COH_AXES_NCHW, COH_AXES_NHWC } coh_axes;
typedef enum coh_weights_for {
    COH_WEIGHTS_FOR_METRICS,
    COH_WEIGHTS_FOR_LOSS
} coh_weights_for;
typedef enum coh_normalize {
    COH_NORMALIZE_NONE,
    COH_NORMALIZE_MAX,
    COH_NORMALIZE_STANDARD
} coh_normalize;
typedef enum coh_normalize_over {
    COH_NORMALIZE_CHANNEL,
    COH_NORMALIZE_GLOBAL
} coh_normalize_over;
typedef enum coh_update_kind {
    COH_UPDATE_ALL,
    COH_UPDATE_OWNERS
} coh_update_kind;
typedef enum coh_select { COH_SELECT_LAST, COH_SELECT_BEST } coh_select;

typedef enum coh_compute_algorithm {
    COH_COMPUTE_AUTO,
    COH_COMPUTE_DIRECT,
    COH_COMPUTE_WINOGRAD
} coh_compute_algorithm;

typedef struct coh_list {
    int count;
    char **items; /* [count], owned */
} coh_list;

enum { COH_INTS_MAX = 8 };
typedef struct coh_ints {
    int count;
    int64_t items[COH_INTS_MAX];
} coh_ints;

typedef enum coh_layer_kind {
#define X(name, id, letter, help) COH_LAYER_##id,
    COH_LAYER_KINDS(X)
#undef X
} coh_layer_kind;

enum { COH_NAME_MAX = 64, COH_FROM_MAX = 16 };

/* Names of layers, in order. */
typedef struct coh_names {
    int count;
    char items[COH_FROM_MAX][COH_NAME_MAX];
} coh_names;

/* A layer as written: fields that its kind does not have hold defaults. */
typedef struct coh_layer_spec {
    coh_layer_kind kind;
    char name[COH_NAME_MAX]; /* never empty, unique in the model */
    int64_t filters;         /* convolutions: filters; dense: units */
    int64_t kernel[2];       /* height, width */
    int64_t stride[2];       /* pools: already the kernel where not given */
    int64_t padding[2];      /* each side; not used if same */
    bool same;               /* padding: same */
    int64_t output_padding[2];
    int64_t dilation[2];
    int64_t groups;
    int64_t scale[2], size[2], offset[2];
    double epsilon, momentum, slope, rate, weight;
    char target[COH_NAME_MAX], mask[COH_NAME_MAX]; /* or "" */
    int64_t ignore;
    bool bias, mean, unlabelled;
    coh_names from; /* count 0: the layer before it */
    int line;       /* in the file, for messages */
} coh_layer_spec;

/* Something a sample is to be compared with, besides its label. */
typedef struct coh_target_spec {
    char name[COH_NAME_MAX]; /* unique, neither input nor label */
    coh_ints shape;          /* channels, height, width */
    int line;
} coh_target_spec;

typedef struct coh_config {
    int64_t groups, group_size, servers;
    int policy; /* coh_policy_kind; enums are int so that one row fills all */
    int64_t policy_bound;
    struct {
        char *name, *out;
        int64_t seed;
        double time_limit, report_every;
    } run;
    struct {
        int64_t batch, group_batch, accumulate, steps;
        double epochs;
    } train;
    struct {
        int rule, schedule, staleness;
        bool momentum_auto;
        double rate, momentum, momentum_auto_factor, trust, compensation, beta1,
            beta2, epsilon, weight_decay, clip_norm;
        double warmup, step_every, step_factor, final_rate;
    } optimizer;
    struct {
        int kind, axes, weights_for, normalize, normalize_over;
        coh_list train, train_labels, validation, validation_labels, test,
            test_labels, images;
        char *labels, *weights;
        bool log1p;
        int64_t normalize_samples, classes, train_samples, test_samples,
            prefetch;
        double unlabelled;
    } data;
    struct {
        int collectives, placement, update;
        int push, reply; /* coh_wire_kind */
        int64_t block, speakers, lag, every;
        double elastic, timeout;
    } exchange;
    struct {
        double every;
        int64_t batch;
        int select;
    } eval;
    struct {
        double every;
        int64_t keep;
    } checkpoint;
    struct {
        int64_t threads;
        int algorithm;
    } compute;
    struct {
        int64_t slow_group, slow_server;
        double delay;
    } testing;
    struct {
        coh_ints input;
        int ntargets;
        coh_target_spec *targets; /* [ntargets], owned */
        int nlayers;
        coh_layer_spec *layers; /* [nlayers], owned */
    } model;
    char *path; /* as given to load, owned */
} coh_config;

/* A loss ends its way through the network: nothing takes its output. */
static inline bool coh_layer_is_loss(coh_layer_kind kind)
{
    return kind >= COH_LAYER_SOFTMAX_CROSS_ENTROPY &&
           kind <= COH_LAYER_SMOOTH_L1;
}

/* Read `path`, then apply sets[nsets], each "key=value" with a dotted key; of
 * two for a key the last counts. A value that begins with [ { " or ' is YAML,
 * any other is taken as it stands (*.h5).
 * A config without run.name gets the file's name without folder and ending.
 * On COH_OK *out is the caller's, to end with coh_config_destroy().
 * Fails with COH_E_CONFIG (every fault, a line each) or COH_E_NOMEM. */
coh_status coh_config_load(const char *path, const char *const *sets, int nsets,
                           coh_config **out, coh_err *err);

/* The same for a text in memory; `name` stands for the path in messages. */
coh_status coh_config_parse(const char *name, const char *text, size_t length,
                            const char *const *sets, int nsets,
                            coh_config **out, coh_err *err);

/* Free *self and set it to NULL. A NULL *self is fine. */
void coh_config_destroy(coh_config **self);

/* Write all keys with their values as YAML that loads to the same config. */
void coh_config_write(const coh_config *self, FILE *out);

/* Write every key with its default, bounds, unit and sentence: as a page for
 * people, or as the YAML of config/reference.yaml. Layers included. */
void coh_config_help(FILE *out);
void coh_config_reference(FILE *out);

#endif
