/* metrics.c - see metrics.h. */
#include "common/metrics.h"

#include <math.h>
#include <stdlib.h>

void coh_sums_add(coh_sums *self, const float *log_probs, int64_t classes,
                  int32_t label, float metric_weight)
{
    int64_t best = 0;

    for (int64_t k = 1; k < classes; k++) {
        if (log_probs[k] > log_probs[best])
            best = k;
    }
    self->correct += best == label ? (double)metric_weight : 0.0;
    self->weight += (double)metric_weight;
}

static int by_score(const void *a, const void *b)
{
    const float left = ((const coh_score *)a)->score;
    const float right = ((const coh_score *)b)->score;

    if (isnan(left) || isnan(right))
        return isnan(right) - isnan(left);
    return left < right ? -1 : left > right ? 1 : 0;
}

double coh_auc(coh_score *scores, int64_t count)
{
    double negatives = 0, positives = 0, pairs = 0;

    qsort(scores, (size_t)count, sizeof *scores, by_score);
    for (int64_t first = 0, end; first < count; first = end) {
        double zeros = 0, ones = 0; /* weight of the samples that tie */
        for (end = first;
             end < count && by_score(&scores[end], &scores[first]) == 0;
             end++) {
            if (scores[end].label > 0.5f)
                ones += (double)scores[end].weight;
            else
                zeros += (double)scores[end].weight;
        }
        pairs += ones * (negatives + 0.5 * zeros);
        negatives += zeros;
        positives += ones;
    }
    if (negatives == 0 || positives == 0)
        return -1;
    return pairs / (negatives * positives);
}

double coh_metrics_score(double accuracy, double auc, double loss)
{
    if (auc >= 0)
        return auc;
    return accuracy >= 0 ? accuracy : 1 / (1 + loss);
}
