/* model_inputs.c - which layer takes whose output; see model_build.h. */
#include "common/model_build.h"

#include <string.h>

#include "common/nearest.h"

static const char images[] = "input";

static bool takes_many(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_ADD ||
           layer->spec.kind == COH_LAYER_CONCAT;
}

static coh_status fail(const coh_layer *layer, coh_err *err, const char *what)
{
    return coh_fail(err, COH_E_CONFIG, "model.layers, line %d: layer %s: %s",
                    layer->spec.line, layer->spec.name, what);
}

/* The nearest name among those that may be taken; NULL if none is near. */
static const char *nearest_to(const coh_model *self, int before,
                              const char *name)
{
    const char *nearest = images;
    int best = coh_nearest_distance(name, images);

    for (int i = 0; i < before; i++) {
        const coh_layer_spec *spec = &self->layers[i].spec;
        const int distance = coh_nearest_distance(name, spec->name);
        if (distance < best && !coh_layer_is_loss(spec->kind)) {
            best = distance;
            nearest = spec->name;
        }
    }
    return coh_nearest_is_close(name, best) ? nearest : NULL;
}

static int index_of(const coh_model *self, const char *name)
{
    for (int i = 0; i < self->nlayers; i++)
        if (strcmp(self->layers[i].spec.name, name) == 0)
            return i;
    return self->nlayers;
}

/* Layer i takes `name`. */
static coh_status take(const coh_model *self, int i, const char *name, int *out,
                       coh_err *err)
{
    char what[512];

    *out = strcmp(name, images) == 0 ? -1 : index_of(self, name);
    if (*out < i &&
        (*out < 0 || !coh_layer_is_loss(self->layers[*out].spec.kind)))
        return COH_OK;

    const char *nearest = nearest_to(self, i, name);
    if (*out == self->nlayers)
        snprintf(what, sizeof what,
                 "from: no layer is called %s%s%s%s; a layer without a name is "
                 "called kind and number, as in `cohort plan`",
                 name, nearest != NULL ? "; did you mean " : "",
                 nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    else if (*out < i)
        snprintf(what, sizeof what, "from: %s is a loss and has no output",
                 name);
    else
        snprintf(what, sizeof what,
                 "from: %s %s (line %d); a layer takes from those before "
                 "it: change their order%s%s%s",
                 name, *out == i ? "is the layer itself" : "comes later",
                 self->layers[*out].spec.line,
                 nearest != NULL ? ", or did you mean " : "",
                 nearest != NULL ? nearest : "", nearest != NULL ? "?" : "");
    return fail(&self->layers[i], err, what);
}

static coh_status connect(coh_model *self, int i, coh_err *err)
{
    coh_layer *layer = &self->layers[i];
    const coh_names *from = &layer->spec.from;

    layer->ninputs = from->count > 0 ? from->count : 1;
    layer->inputs[0] = i - 1;
    if (takes_many(layer) && layer->ninputs < 2)
        return fail(layer, err,
                    "it takes two inputs or more: name them, as in from: [a, "
                    "b]");
    if (!takes_many(layer) && layer->ninputs > 1)
        return fail(layer, err,
                    "it takes one input, but from: names several; put an add "
                    "or a concat before it");
    if (from->count == 0 && i > 0 &&
        coh_layer_is_loss(self->layers[i - 1].spec.kind))
        return fail(layer, err,
                    "it comes after a loss, which has no output; tell it a "
                    "layer by from:");
    for (int k = 0; k < from->count; k++) {
        const coh_status status =
            take(self, i, from->items[k], &layer->inputs[k], err);
        if (status != COH_OK)
            return status;
    }
    return COH_OK;
}

static coh_status check_used(const coh_model *self, coh_err *err)
{
    int user = 0;

    for (int i = 0; i < self->nlayers; i++)
        if (!coh_layer_is_loss(self->layers[i].spec.kind) &&
            coh_model_users(self, i, &user) == 0)
            return fail(&self->layers[i], err,
                        "no layer takes its output, and it is no loss: name "
                        "it in a from:, or remove it");
    return COH_OK;
}

coh_status coh_model_connect(coh_model *self, coh_err *err)
{
    for (int i = 0; i < self->nlayers; i++) {
        const coh_status status = connect(self, i, err);
        if (status != COH_OK)
            return status;
    }
    return check_used(self, err);
}
