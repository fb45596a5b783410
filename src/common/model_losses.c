/* model_losses.c - the losses and what they compare with; see model_build.h. */
#include "common/model_build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/nearest.h"

static bool is_labels(const coh_layer *layer)
{
    return layer->spec.kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY;
}

static bool is_same(coh_shape a, coh_shape b)
{
    return a.c == b.c && a.h == b.h && a.w == b.w;
}

static coh_status make_targets(coh_model *self, const coh_config *config,
                               coh_err *err)
{
    self->ntargets = config->model.ntargets;
    self->targets = calloc((size_t)self->ntargets + 1, sizeof *self->targets);
    if (self->targets == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for the targets");

    for (int i = 0; i < self->ntargets; i++) {
        const coh_target_spec *spec = &config->model.targets[i];
        const int64_t *shape = spec->shape.items;
        coh_target *target = &self->targets[i];
        memcpy(target->name, spec->name, sizeof target->name);
        target->shape = (coh_shape){ shape[0], shape[1], shape[2] };
        target->first = self->target_count;
        self->target_count += coh_shape_count(target->shape);
        if (self->target_count >> 32 != 0)
            return coh_fail(err, COH_E_CONFIG,
                            "model.targets, line %d: %s is too large",
                            spec->line, spec->name);
    }
    return COH_OK;
}

/* "layer box: target: no target is called bxo; ..." */
static coh_status unknown(const coh_model *self, const coh_layer *layer,
                          const char *field, const char *name, coh_err *err)
{
    const char *nearest = "";
    int best = 1000;

    for (int i = 0; i < self->ntargets; i++) {
        const int distance = coh_nearest_distance(name, self->targets[i].name);
        if (distance < best) {
            best = distance;
            nearest = self->targets[i].name;
        }
    }
    const bool is_close = coh_nearest_is_close(name, best);
    return coh_fail(err, COH_E_CONFIG,
                    "model.layers, line %d: layer %s: %s: model.targets has no "
                    "%s%s%s%s",
                    layer->spec.line, layer->spec.name, field, name,
                    is_close ? "; did you mean " : "", is_close ? nearest : "",
                    is_close ? "?" : "");
}

/* The number of the target called `name`, or one of COH_TARGET_... */
static coh_status find(const coh_model *self, const coh_layer *layer,
                       const char *field, const char *name, int *out,
                       coh_err *err)
{
    const bool is_mask = strcmp(field, "mask") == 0;

    if (name[0] == '\0') {
        *out = is_mask ? COH_TARGET_NONE : COH_TARGET_LABEL;
        return COH_OK;
    }
    *out = COH_TARGET_LABEL;
    if (!is_mask && strcmp(name, "label") == 0)
        return COH_OK;
    *out = COH_TARGET_INPUT;
    if (!is_mask && strcmp(name, "input") == 0)
        return COH_OK;
    for (*out = 0; *out < self->ntargets; (*out)++)
        if (strcmp(self->targets[*out].name, name) == 0)
            return COH_OK;
    return unknown(self, layer, field, name, err);
}

/* The target has another shape than it needs. */
static coh_status misfit(const coh_layer *layer, const char *field,
                         const char *name, coh_shape is, coh_shape needs,
                         coh_err *err)
{
    char what[256];

    snprintf(what, sizeof what,
             "but its %s %s is %" PRId64 " x %" PRId64 " x %" PRId64
             ": it must be %" PRId64 " x %" PRId64 " x %" PRId64,
             field, name, is.c, is.h, is.w, needs.c, needs.h, needs.w);
    return coh_layer_misfit(layer, err, what);
}

static coh_status check_label(const coh_layer *layer, coh_err *err)
{
    if (!is_labels(layer))
        return coh_layer_misfit(layer, err,
                                "but a label is no number to compare it with: "
                                "give it a target: a name of model.targets, or "
                                "input");
    if (layer->in.h != 1 || layer->in.w != 1)
        return coh_layer_misfit(layer, err,
                                "but it needs one value a class: put a dense "
                                "layer or global_avgpool before it, or give it "
                                "a target of labels at each position");
    return COH_OK;
}

static coh_status check_target(const coh_model *self, const coh_layer *layer,
                               coh_err *err)
{
    const coh_shape positions = { 1, layer->in.h, layer->in.w };
    const coh_shape needs = is_labels(layer) ? positions : layer->in;

    if (is_labels(layer) && layer->in.c < 2)
        return coh_layer_misfit(layer, err, "but it needs two classes or more");
    if (layer->target == COH_TARGET_LABEL)
        return check_label(layer, err);
    if (layer->target == COH_TARGET_INPUT && is_labels(layer))
        return coh_layer_misfit(layer, err,
                                "but images are no labels: it cannot have the "
                                "target input");
    const bool is_input = layer->target == COH_TARGET_INPUT;
    const coh_shape is =
        is_input ? self->input : self->targets[layer->target].shape;
    if (!is_same(is, needs))
        return misfit(layer, "target", layer->spec.target, is, needs, err);
    return COH_OK;
}

static coh_status check_mask(const coh_model *self, const coh_layer *layer,
                             coh_err *err)
{
    const coh_shape positions = { 1, layer->in.h, layer->in.w };
    if (layer->mask == COH_TARGET_NONE)
        return COH_OK;

    const coh_shape is = self->targets[layer->mask].shape;
    if (is_same(is, positions) || (is_same(is, layer->in) && !is_labels(layer)))
        return COH_OK;
    return misfit(layer, "mask", layer->spec.mask, is, positions, err);
}

/* Where the loss finds its targets, and in them what it makes of them. */
static void note_use(coh_model *self, coh_layer *layer)
{
    if (layer->target >= 0) {
        coh_target *target = &self->targets[layer->target];
        layer->target_first = target->first;
        if (is_labels(layer))
            target->classes = layer->in.c;
        target->is_map |= layer->spec.kind == COH_LAYER_SIGMOID_CROSS_ENTROPY;
    }
    if (layer->mask >= 0) {
        coh_target *mask = &self->targets[layer->mask];
        mask->is_mask = true;
        layer->mask_first = mask->first;
        layer->mask_channels = mask->shape.c;
    }
}

static coh_status add_loss(coh_model *self, int i, coh_err *err)
{
    coh_layer *layer = &self->layers[i];
    char what[128];

    if (self->nlosses == COH_LOSSES_MAX) {
        snprintf(what, sizeof what,
                 "which is one more loss than the %d there "
                 "may be",
                 COH_LOSSES_MAX);
        return coh_layer_misfit(layer, err, what);
    }
    layer->term = self->nlosses;
    self->losses[self->nlosses++] = i;
    coh_status status =
        find(self, layer, "target", layer->spec.target, &layer->target, err);
    if (status == COH_OK)
        status = find(self, layer, "mask", layer->spec.mask, &layer->mask, err);
    if (status == COH_OK)
        status = check_target(self, layer, err);
    if (status == COH_OK)
        status = check_mask(self, layer, err);
    if (status != COH_OK)
        return status;
    note_use(self, layer);
    if (layer->target != COH_TARGET_LABEL)
        return COH_OK;
    if (self->classifier >= 0 && self->classes != layer->in.c)
        return coh_layer_misfit(layer, err,
                                "but another loss on the label has another "
                                "number of classes");
    if (self->classifier >= 0)
        self->layers[self->classifier].is_classifier = false;
    layer->is_classifier = true;
    self->classifier = i;
    self->classes = layer->in.c;
    return COH_OK;
}

static coh_status check_used(const coh_model *self, const coh_config *config,
                             coh_err *err)
{
    for (int t = 0; t < self->ntargets; t++) {
        bool is_used = false;
        for (int i = 0; i < self->nlosses; i++) {
            const coh_layer *layer = &self->layers[self->losses[i]];
            is_used |= layer->target == t || layer->mask == t;
        }
        if (!is_used)
            return coh_fail(err, COH_E_CONFIG,
                            "model.targets, line %d: no loss has %s as its "
                            "target or mask: remove it",
                            config->model.targets[t].line,
                            self->targets[t].name);
    }
    return COH_OK;
}

coh_status coh_model_aim(coh_model *self, const coh_config *config,
                         coh_err *err)
{
    self->classifier = -1;
    coh_status status = make_targets(self, config, err);
    for (int i = 0; i < self->nlayers && status == COH_OK; i++)
        if (coh_layer_is_loss(self->layers[i].spec.kind))
            status = add_loss(self, i, err);
    return status == COH_OK ? check_used(self, config, err) : status;
}
