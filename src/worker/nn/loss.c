/* loss.c - see loss.h. */
#include "worker/nn/loss.h"

#include <math.h>

double coh_log_sum_exp(const float *x, int64_t count, int64_t stride)
{
    float most = x[0];

    for (int64_t k = 1; k < count; k++)
        most = x[k * stride] > most ? x[k * stride] : most;
    double sum = (double)expf(x[0] - most);
    for (int64_t k = 1; k < count; k++)
        sum += (double)expf(x[k * stride] - most);
    return (double)most + log(sum);
}

/* --- labels ------------------------------------------------------------- */

/* The label of position p, or -1 if it does not count. */
static int64_t label_at(const coh_loss_row *row, int64_t p)
{
    const int64_t label =
        row->target == NULL ? row->label : llrintf(row->target[p]);

    COH_ASSERT(label < row->channels || label == row->ignore);
    return label == row->ignore ? -1 : label;
}

static double mask_at(const coh_loss_row *row, int64_t p)
{
    return row->mask == NULL ? 1 : (double)row->mask[p];
}

/* -log softmax of the label, over channels that lie `positions` apart. */
static double softmax_at(const coh_loss_row *row, int64_t p, int64_t label,
                         double scale)
{
    const int64_t P = row->positions;
    const float *x = row->x + p;
    const double all = coh_log_sum_exp(x, row->channels, P);

    if (row->diff != NULL) {
        float *diff = row->diff + p;
        for (int64_t k = 0; k < row->channels; k++)
            diff[k * P] = (float)scale * expf((float)((double)x[k * P] - all));
        /* softmax - 1 would lose all digits of a label that is nearly sure */
        diff[label * P] =
            (float)scale * (float)expm1((double)x[label * P] - all);
    }
    return scale * (all - (double)x[label * P]);
}

static double softmax_piece(const coh_loss_row *row, int64_t first, int64_t end)
{
    double sum = 0;

    for (int64_t p = first; p < end; p++) {
        const int64_t label = label_at(row, p);
        const double scale = label < 0 ? 0 : row->scale * mask_at(row, p);
        if (scale != 0) {
            sum += softmax_at(row, p, label, scale);
            continue;
        }
        for (int64_t k = 0; k < row->channels && row->diff != NULL; k++)
            row->diff[k * row->positions + p] = 0;
    }
    return sum;
}

/* --- numbers ------------------------------------------------------------ */

/* The loss of one value, and its slope. */
static double value_at(coh_layer_kind kind, double x, double t, double *slope)
{
    const double d = x - t;

    switch (kind) {
    case COH_LAYER_SIGMOID_CROSS_ENTROPY:
        *slope = (x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x))) - t;
        return (x > 0 ? x : 0) - x * t + log1p(exp(-fabs(x)));
    case COH_LAYER_SMOOTH_L1:
        *slope = d < -1 ? -1 : d > 1 ? 1 : d;
        return fabs(d) < 1 ? d * d / 2 : fabs(d) - 0.5;
    default:
        *slope = 2 * d;
        return d * d;
    }
}

static double factor_at(const coh_loss_row *row, int64_t i)
{
    if (row->mask == NULL)
        return 1;
    return (double)row->mask[row->mask_channels == 1 ? i % row->positions : i];
}

static double numbers_piece(const coh_loss_row *row, int64_t first, int64_t end)
{
    double sum = 0, slope = 0;

    for (int64_t i = first; i < end; i++) {
        const double scale = row->scale * factor_at(row, i);
        double loss = 0;
        slope = 0;
        if (scale != 0)
            loss = value_at(row->kind, (double)row->x[i],
                            (double)row->target[i], &slope);
        sum += scale * loss;
        if (row->diff != NULL)
            row->diff[i] = (float)(scale * slope);
    }
    return sum;
}

/* --- a piece ------------------------------------------------------------ */

double coh_loss_count(const coh_loss_row *row, int64_t first, int64_t end)
{
    const bool labels = row->kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY;
    double sum = 0;

    for (int64_t i = first; i < end; i++) {
        if (!labels)
            sum += factor_at(row, i);
        else if (label_at(row, i) >= 0)
            sum += mask_at(row, i);
    }
    return sum;
}

double coh_loss_piece(const coh_loss_row *row, int64_t first, int64_t end)
{
    return row->kind == COH_LAYER_SOFTMAX_CROSS_ENTROPY
               ? softmax_piece(row, first, end)
               : numbers_piece(row, first, end);
}
