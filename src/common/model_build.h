/* model_build.h - the steps of coh_model_new(), for model*.c alone. */
#ifndef COH_COMMON_MODEL_BUILD_H
#define COH_COMMON_MODEL_BUILD_H

#include "common/model.h"

/* From each layer's spec: inputs and ninputs.
 * Fails with COH_E_CONFIG: a name that is unknown, comes later, or is a loss;
 * too many or too few inputs; an output that no layer takes. */
coh_status coh_model_connect(coh_model *self, coh_err *err);

/* From a layer's spec, its inputs and their shapes: in, out, padding, counts,
 * flop. Fails with COH_E_CONFIG, as coh_layer_misfit(). */
coh_status coh_model_infer(const coh_model *self, coh_layer *layer,
                           coh_err *err);

/* The losses: what they compare with, and whether it fits. Fails with
 * COH_E_CONFIG; COH_E_NOMEM. */
coh_status coh_model_aim(coh_model *self, const coh_config *config,
                         coh_err *err);

/* COH_E_CONFIG: the layer, its line, the shape of its input, and `what`. */
coh_status coh_layer_misfit(const coh_layer *layer, coh_err *err,
                            const char *what);

/* a b of numbers that are not negative; the largest number if it is more. */
static inline int64_t coh_times(int64_t a, int64_t b)
{
    int64_t out;
    return __builtin_mul_overflow(a, b, &out) ? INT64_MAX : out;
}

#endif
