/* dataset_part.c - see dataset_part.h. */
#include "worker/dataset_part.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void coh_part_close(coh_part *part)
{
    if (part->self != NULL)
        part->ops->close(part->self);
    free(part->name);
    free(part->labels);
    free(part->weights);
    *part = (coh_part){ 0 };
}

coh_status coh_part_set_labels(coh_part *part, int64_t classes,
                               const double *values, int64_t first,
                               int64_t count, coh_err *err)
{
    for (int64_t i = 0; i < count; i++) {
        const double value = values[i];
        if (!(value >= 0 && value < (double)classes) || value != floor(value))
            return coh_fail(err, COH_E_DATA,
                            "sample %" PRId64 " has the label %g, must be a "
                            "whole number from 0 to %" PRId64
                            ", as the network ends in %" PRId64 " classes",
                            first + i, value, classes - 1, classes);
        part->labels[first + i] = (int32_t)value;
    }
    return COH_OK;
}
