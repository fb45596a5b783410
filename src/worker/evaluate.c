/* evaluate.c - see evaluate.h. */
#include "worker/evaluate.h"

#include <stdlib.h>
#include <string.h>

#include "common/mpi_check.h"
#include "common/plan.h"
#include "common/xfer.h"
#include "worker/loader.h"

/* What of `count` samples falls to a member: even runs, in order. */
static coh_range share_of(int64_t count, int member, int members)
{
    const int64_t first = count * member / members;
    return (coh_range){ first, count * (member + 1) / members - first };
}

typedef struct tally {
    coh_sums sums;
    coh_score *scores; /* [nscores], of two classes; else NULL */
    int64_t nscores;
} tally;

static void add_batch(const coh_evaluator *self, const coh_batch *batch,
                      const float *log_probs, const coh_step_sums *sums,
                      tally *t)
{
    const int64_t classes = self->model->classes;

    t->sums.loss += sums->loss;
    t->sums.loss_weight += sums->weight;
    t->sums.samples += (double)batch->count;
    for (int64_t row = 0; row < batch->count && classes > 0; row++) {
        const float *p = log_probs + row * classes;
        if (batch->is_labelled[row])
            coh_sums_add(&t->sums, p, classes, batch->labels[row],
                         batch->metric_weights[row]);
        if (t->scores != NULL)
            t->scores[t->nscores++] = (coh_score){
                p[1] - p[0],
                (float)batch->labels[row],
                batch->is_labelled[row] ? batch->metric_weights[row] : 0,
            };
    }
}

/* Queue as many pieces of the share as the loader reads ahead. */
static coh_status ask_ahead(const coh_evaluator *self, coh_loader *loader,
                            coh_range share, int64_t *asked, int64_t taken,
                            coh_err *err)
{
    const int64_t ahead = self->config->data.prefetch;
    coh_status status = COH_OK;

    while (status == COH_OK && *asked * self->batch < share.count &&
           *asked - taken <= ahead) {
        const int64_t first = *asked * self->batch;
        const int64_t left = share.count - first;
        const coh_piece piece = { .first = share.first + first,
                                  .count =
                                      left < self->batch ? left : self->batch };
        status = coh_loader_ask(loader, piece, err);
        (*asked)++;
    }
    return status;
}

/* Every batch of the share through the network. */
static coh_status measure(const coh_evaluator *self, coh_loader *loader,
                          coh_range share, const float *weights,
                          float *log_probs, tally *t, coh_err *err)
{
    int64_t asked = 0, taken = 0;
    coh_status status = ask_ahead(self, loader, share, &asked, taken, err);

    while (status == COH_OK && taken < asked) {
        coh_batch *batch = NULL;
        coh_step_sums sums;
        status = coh_loader_take(loader, &batch, err);
        if (status != COH_OK)
            break;
        taken++;
        self->compute->infer(self->compute->self, batch, weights, log_probs,
                             &sums);
        add_batch(self, batch, log_probs, &sums, t);
        coh_loader_give(loader, batch);
        status = ask_ahead(self, loader, share, &asked, taken, err);
        if (status == COH_OK)
            status = self->alive(self->user, err);
    }
    return status;
}

/* This member's share into *t; what it allocates is the caller's to free. */
static coh_status measure_share(const coh_evaluator *self, coh_dataset *dataset,
                                coh_range share, const float *weights, tally *t,
                                coh_err *err)
{
    /* the root has room for those of all */
    const int64_t room = self->roles->mine.member == 0
                             ? coh_dataset_count(dataset)
                             : share.count;
    coh_loader *loader = NULL;
    float *log_probs = calloc((size_t)(self->batch * self->model->classes) + 1,
                              sizeof *log_probs);
    const bool wants_scores = self->model->classes == 2;

    if (wants_scores)
        t->scores = malloc((size_t)(room + 1) * sizeof *t->scores);
    if (log_probs == NULL || (wants_scores && t->scores == NULL)) {
        free(log_probs);
        return coh_fail(err, COH_E_NOMEM,
                        "no memory for an evaluation of %lld samples: use a "
                        "smaller set, or eval.batch",
                        (long long)room);
    }
    coh_status status = coh_loader_new(
        dataset, self->model->input, self->batch, self->config->data.prefetch,
        (uint64_t)self->config->run.seed, false, &loader, err);
    if (status == COH_OK)
        status = measure(self, loader, share, weights, log_probs, t, err);
    coh_loader_destroy(&loader);
    free(log_probs);
    return status;
}

/* In pieces: no message is larger than a block may be. */
static coh_status pass_scores(const coh_evaluator *self, coh_xfer_way way,
                              int member, coh_score *scores, int64_t count,
                              coh_err *err)
{
    enum { AT_ONCE = 1 << 16 };
    coh_status status = COH_OK;

    for (int64_t at = 0; at < count && status == COH_OK; at += AT_ONCE) {
        const int64_t n = count - at < AT_ONCE ? count - at : AT_ONCE;
        const coh_xfer_part part = { way, member, COH_TAG_SCORES, scores + at,
                                     n * (int64_t)sizeof *scores };
        coh_xfer *xfer = coh_xfer_begin(self->roles->group, &part, 1);
        status = coh_xfer_finish(&xfer, self->config->exchange.timeout,
                                 "the scores", err);
    }
    return status;
}

/* Collective: all scores on the root, in t->scores. */
static coh_status gather(const coh_evaluator *self, int64_t count, tally *t,
                         coh_err *err)
{
    const coh_range mine =
        share_of(count, self->roles->mine.member, self->group_size);
    coh_status status = COH_OK;

    if (self->roles->mine.member != 0)
        return pass_scores(self, COH_XFER_SEND, 0, t->scores, mine.count, err);
    for (int m = 1; m < self->group_size && status == COH_OK; m++) {
        const coh_range share = share_of(count, m, self->group_size);
        status = pass_scores(self, COH_XFER_RECV, m, t->scores + share.first,
                             share.count, err);
    }
    t->nscores = count;
    return status;
}

/* Collective: add up, and agree whether all went well. */
static coh_status add_up(const coh_evaluator *self, coh_status mine, tally *t,
                         coh_err *err)
{
    double all[COH_SUMS_COUNT + 1];

    memcpy(all, &t->sums, sizeof t->sums);
    all[COH_SUMS_COUNT] = mine == COH_OK ? 0 : 1;
    coh_xfer *xfer = coh_team_begin_sum_f64(self->roles->team, COH_LINE_STEPS,
                                            0, all, COH_SUMS_COUNT + 1);
    const coh_status status =
        coh_xfer_finish(&xfer, self->config->exchange.timeout,
                        "the sums of an evaluation", err);
    if (status != COH_OK)
        return status;
    memcpy(&t->sums, all, sizeof t->sums);
    return all[COH_SUMS_COUNT] > 0 ? coh_agree(self->roles->group, mine, err)
                                   : COH_OK;
}

coh_status coh_evaluate(const coh_evaluator *self, coh_dataset *dataset,
                        const float *weights, coh_evaluation *out, coh_err *err)
{
    const int64_t count = coh_dataset_count(dataset);
    tally t = { 0 };

    *out = (coh_evaluation){ .accuracy = -1, .auc = -1 };
    if (count == 0)
        return COH_OK;
    coh_status status = measure_share(
        self, dataset,
        share_of(count, self->roles->mine.member, self->group_size), weights,
        &t, err);
    status = add_up(self, status, &t, err);
    if (status == COH_OK && self->model->classes == 2)
        status = gather(self, count, &t, err);
    if (status == COH_OK) {
        out->samples = (int64_t)t.sums.samples;
        out->loss = t.sums.loss;
        out->weight = t.sums.loss_weight;
        if (self->model->classes > 0)
            out->accuracy =
                t.sums.weight != 0 ? t.sums.correct / t.sums.weight : 0;
        if (t.scores != NULL && self->roles->mine.member == 0)
            out->auc = coh_auc(t.scores, t.nscores);
    }
    free(t.scores);
    return status;
}
