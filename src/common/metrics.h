/* metrics.h - accuracy, loss and area under the ROC curve. Pure.
 *
 * Letters: N = samples, K = classes. Accuracy and AUC are weighted by the
 * samples' metric weights, the loss by their loss weights.
 */
#ifndef COH_COMMON_METRICS_H
#define COH_COMMON_METRICS_H

#include <stdint.h>

#include "common/wire.h"

/* Sums over samples; members of a group add theirs up. */
typedef struct coh_sums {
    double loss, loss_weight;
    double correct, weight;
    double samples;
} coh_sums;

enum { COH_SUMS_COUNT = sizeof(coh_sums) / sizeof(double) };

/* One sample for the ROC curve, as sent (COH_TAG_SCORES). */
typedef struct coh_score {
    float score;  /* log-odds of class 1 */
    float label;  /* 0 or 1 */
    float weight; /* >= 0 counts; negative event weights too */
} coh_score;

/* Add whether one sample is right: log_probs[K], the true label, its weight. */
void coh_sums_add(coh_sums *self, const float *log_probs, int64_t classes,
                  int32_t label, float metric_weight);

/* The probability that a sample of class 1 scores above one of class 0, ties
 * counted half; scores[count] is sorted in place. -1 if a class is missing.
 * A score that is no number counts as the lowest.
 * With weights: summed over pairs by the product of the weights. */
double coh_auc(coh_score *scores, int64_t count);

/* What eval.select: best compares: the AUC where there is one, else the
 * accuracy where there is one, else 1 / (1 + loss); negative means that there
 * is none. Larger is better. */
double coh_metrics_score(double accuracy, double auc, double loss);

#endif
