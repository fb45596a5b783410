/* evaluate.h - measure the weights on a data set, shared out over a group. */
#ifndef COH_WORKER_EVALUATE_H
#define COH_WORKER_EVALUATE_H

#include "common/metrics.h"
#include "common/roles.h"
#include "worker/compute.h"
#include "worker/dataset.h"

/* What evaluation needs; all borrowed. */
typedef struct coh_evaluator {
    const coh_config *config;
    const coh_model *model;
    const coh_roles *roles;
    int group_size;
    const coh_compute *compute;
    int64_t batch; /* rows, as compute's infer expects */
    /* Called after every batch, for signs of life. */
    coh_status (*alive)(void *user, coh_err *err);
    void *user;
} coh_evaluator;

typedef struct coh_evaluation {
    int64_t samples;
    double loss, weight; /* sums, as in coh_report */
    double accuracy;     /* by metric weights, of labelled samples; -1: the
                            model has no classifier */
    double auc;          /* -1: not two classes, or one is missing */
} coh_evaluation;

/* Collective over the group; *out is whole on the root (auc) and on all (the
 * rest). A data set that is empty gives zeros. Whatever the numbers of samples
 * and members, each sample is counted once.
 * Fails with COH_E_DATA on all members, or COH_E_PEER. */
coh_status coh_evaluate(const coh_evaluator *self, coh_dataset *dataset,
                        const float *weights, coh_evaluation *out,
                        coh_err *err);

#endif
