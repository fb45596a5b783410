/* dataset_layout.c - see dataset_layout.h. */
#include "worker/dataset_layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

coh_status coh_layout_split(const char *file, char **path, char **within,
                            coh_err *err)
{
    const char *mark = strstr(file, "::");
    const size_t length = mark != NULL ? (size_t)(mark - file) : strlen(file);
    char *first = strndup(file, length);
    char *second = strdup(mark != NULL ? mark + 2 : "");

    if (first == NULL || second == NULL) {
        free(first);
        free(second);
        return coh_fail(err, COH_E_NOMEM, "%s: no memory", file);
    }
    *path = first;
    *within = second;
    return COH_OK;
}

char *coh_layout_name(const char *within, const char *name)
{
    const char *star = strchr(within, '*');
    const int before =
        star != NULL ? (int)(star - within) : (int)strlen(within);
    const bool is_group = star == NULL && before > 0;
    const size_t size = strlen(within) + strlen(name) + 2;
    char *text = malloc(size);

    if (text != NULL)
        snprintf(text, size, "%.*s%s%s%s", before, within, is_group ? "/" : "",
                 name, star != NULL ? star + 1 : "");
    return text;
}

coh_status coh_layout_shape(const coh_layout *array, int arrays, coh_axes axes,
                            int64_t *count, coh_shape *shape, coh_err *err)
{
    const int64_t *d = array->dims;

    if (array->rank == 3)
        *shape = (coh_shape){ arrays, d[1], d[2] };
    else if (array->rank == 4 && arrays == 1 && axes == COH_AXES_NCHW)
        *shape = (coh_shape){ d[1], d[2], d[3] };
    else if (array->rank == 4 && arrays == 1)
        *shape = (coh_shape){ d[3], d[1], d[2] };
    else if (arrays > 1)
        return coh_fail(err, COH_E_DATA,
                        "has %d axes; where data.images names several "
                        "datasets, each must be [N,H,W]",
                        array->rank);
    else
        return coh_fail(err, COH_E_DATA,
                        "has %d axes; images have 3 (N,H,W) or 4 (data.axes)",
                        array->rank);
    *count = d[0];
    return COH_OK;
}

void coh_layout_to_nchw(coh_shape shape, float *image, float *scratch)
{
    const int64_t c = shape.c, pixels = shape.h * shape.w;

    if (c == 1)
        return;
    memcpy(scratch, image, (size_t)(c * pixels) * sizeof *image);
    for (int64_t channel = 0; channel < c; channel++) {
        for (int64_t i = 0; i < pixels; i++)
            image[channel * pixels + i] = scratch[i * c + channel];
    }
}

/* Integers but for the last step, so that it holds with denormals off. */
static uint32_t bits_from_half(uint32_t half)
{
    const uint32_t size = half & 0x7fff;
    const float small = (float)(int32_t)size * 0x1p-24f;
    uint32_t bits;

    memcpy(&bits, &small, sizeof bits);
    if (size >= 0x400) /* normal: the exponent's bias goes from 15 to 127 */
        bits = (size << 13) + (112u << 23);
    if (size >= 0x7c00) /* infinite or NaN */
        bits = size << 13 | 0x7f800000u;
    return bits | (half & 0x8000) << 16;
}

void coh_layout_from_half(const uint16_t *halves, int64_t count, float *floats)
{
    for (int64_t i = 0; i < count; i++) {
        const uint32_t bits = bits_from_half(halves[i]);
        memcpy(&floats[i], &bits, sizeof bits);
    }
}

const char *coh_layout_text(const coh_layout *array, char *text, size_t size)
{
    int used = snprintf(text, size, "[");

    for (int i = 0; i < array->rank && used < (int)size; i++)
        used += snprintf(text + used, size - (size_t)used, "%s%" PRId64,
                         i > 0 ? "," : "", array->dims[i]);
    if (used < (int)size)
        snprintf(text + used, size - (size_t)used, "]");
    return text;
}
