/* choice.h - how each pass of each layer is calculated, as a table.
 *
 *     new -> { set | way | write }* -> destroy;   find: out of a text
 *
 * A table is made by measurement (measure.h) for one kind of machine, library,
 * number of threads, network and batch: its key. As text it is kept in the
 * user's cache, in the run folder and in checkpoints; a text may hold several
 * tables, one a kind of node:
 *
 *     choices 2
 *     processor Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz
 *     library 2.6.3
 *     threads 20
 *     batch 8
 *     network 5a0c0e6ff0a1d3c2
 *     layer 0 direct direct winograd conv2d1
 *     end
 *
 * The first line's number goes up when a way changes what it calculates. The
 * three words are forward, gradient of the input, gradient of the weights.
 * Only convolutions and dense layers have a line.
 * Pure: no oneDNN, no files, no MPI.   Threads: any, one at a time an object.
 */
#ifndef COH_WORKER_NN_CHOICE_H
#define COH_WORKER_NN_CHOICE_H

#include <stdio.h>

#include "common/model.h"

/* Name in text, C name. */
#define COH_WAYS(X)                                                    \
    X("direct", DIRECT)       /* oneDNN's choice of layouts */         \
    X("channels_last", LAST)  /* conv: direct, src and dst nhwc */     \
    X("winograd", WINOGRAD)   /* conv, deconv: winograd.h */           \
    X("stem", STEM)           /* conv with relu and maxpool: stem.h */ \
    X("plain_weights", PLAIN) /* dense: all row-major, no copy of weights */

typedef enum coh_way {
#define X(name, id) COH_WAY_##id,
    COH_WAYS(X)
#undef X
        COH_WAY_COUNT
} coh_way;

/* Can its passes be done in more ways than one? */
static inline bool coh_layer_has_ways(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_CONV2D ||
           layer->spec.kind == COH_LAYER_DECONV2D ||
           layer->spec.kind == COH_LAYER_DENSE;
}

typedef enum coh_chosen {
    COH_CHOSEN_FORWARD,
    COH_CHOSEN_DATA,
    COH_CHOSEN_WEIGHTS,
    COH_CHOSEN_COUNT
} coh_chosen;

typedef struct coh_choice_key {
    char processor[128], library[32];
    int threads;
    int64_t batch;
    uint64_t network; /* of all shapes, and whether it is trained */
} coh_choice_key;

typedef struct coh_choices coh_choices;

/* The key of this machine. `library` is oneDNN's version. */
coh_choice_key coh_choice_key_of(const coh_model *model, int64_t batch,
                                 bool training, int threads,
                                 const char *library);
/* Different, almost surely, for different keys. Never 0. */
uint64_t coh_choice_key_hash(const coh_choice_key *self);

/* A table of COH_WAY_DIRECT for `model`, whose names are copied.
 * On COH_OK *out is the caller's. Fails with COH_E_NOMEM. */
coh_status coh_choices_new(const coh_model *model, const coh_choice_key *key,
                           coh_choices **out, coh_err *err);
void coh_choices_destroy(coh_choices **self);

/* COH_WAY_DIRECT if self is NULL. */
coh_way coh_choices_way(const coh_choices *self, int layer, coh_chosen pass);
void coh_choices_set(coh_choices *self, int layer, coh_chosen pass,
                     coh_way way);

void coh_choices_write(const coh_choices *self, FILE *out);

/* The first table in `text` that has this key and fits `model`. COH_PENDING if
 * there is none, also if one is damaged. Fails with COH_E_NOMEM. */
coh_status coh_choices_find(const char *text, const coh_model *model,
                            const coh_choice_key *key, coh_choices **out,
                            coh_err *err);

/* "7 direct, 5 winograd": of the passes that `training` has. */
void coh_choices_summarize(const coh_choices *self, const coh_model *model,
                           bool training, char *out, size_t size);

const char *coh_way_name(coh_way way);

#endif
