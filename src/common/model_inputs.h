/* model_inputs.h - which layer takes whose output; for model.c alone. */
#ifndef COH_COMMON_MODEL_INPUTS_H
#define COH_COMMON_MODEL_INPUTS_H

#include "common/model.h"

/* From each layer's spec: inputs and ninputs.
 * Fails with COH_E_CONFIG: a name that is unknown, comes later, or is a loss;
 * too many or too few inputs; an output that no layer takes. */
coh_status coh_model_connect(coh_model *self, coh_err *err);

#endif
