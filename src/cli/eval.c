/* eval.c - `cohort eval`: measure a checkpoint, on one rank or many. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/command.h"
#include "cli/job.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/mpi_check.h"
#include "common/run_folder.h"
#include "worker/evaluate.h"

static coh_status find(const coh_args *args, char out[PATH_MAX], coh_err *err)
{
    const coh_status status = coh_run_folder_find(args->target, out, err);

    if (status != COH_PENDING)
        return status;
    return coh_fail(err, COH_E_CONFIG,
                    "'%s': no checkpoint there: give a run folder, a "
                    "checkpoints/step_N folder, or best",
                    args->target);
}

/* The config that the checkpoint keeps, as one group without servers. */
static coh_status read_checkpoint(const coh_args *args, coh_config **out,
                                  coh_err *err)
{
    char folder[PATH_MAX];
    char *text = NULL;

    coh_status status = find(args, folder, err);
    if (status == COH_OK)
        status = coh_checkpoint_read_config(folder, &text, err);
    if (status == COH_OK)
        status = coh_config_parse(folder, text, strlen(text), args->sets,
                                  args->nsets, out, err);
    free(text);
    if (status == COH_OK) {
        (*out)->groups = 1;
        (*out)->group_size = 0;
        (*out)->servers = 0;
    }
    return status;
}

static coh_status split_of(const coh_args *args, coh_split *out, coh_err *err)
{
    static const char *const names[] = { "train", "validation", "test" };

    *out = COH_SPLIT_TEST;
    for (int i = 0; args->split != NULL && i < 3; i++) {
        *out = (coh_split)i;
        if (strcmp(args->split, names[i]) == 0)
            return COH_OK;
    }
    if (args->split == NULL)
        return COH_OK;
    return coh_fail(err, COH_E_CONFIG,
                    "--split '%s': must be train, validation or test",
                    args->split);
}

/* Weights and normalisation of the checkpoint, on all ranks. */
static coh_status read_weights(coh_job *job, const coh_args *args,
                               coh_manifest *manifest, float *weights,
                               coh_err *err)
{
    char folder[PATH_MAX];

    coh_status status = find(args, folder, err);
    if (status == COH_OK)
        status = coh_checkpoint_read_manifest(folder, manifest, err);
    if (status == COH_OK &&
        manifest->fingerprint != coh_model_fingerprint(job->model))
        status = coh_fail(err, COH_E_CONFIG,
                          "checkpoint '%s' is of another network than the "
                          "model asked for",
                          folder);
    if (status == COH_OK)
        status = coh_checkpoint_read_weights(folder, manifest, weights, err);
    return coh_agree(MPI_COMM_WORLD, status, err);
}

static coh_status nothing(void *user, coh_err *err)
{
    (void)user;
    (void)err;
    return COH_OK;
}

static void print_result(const coh_args *args, const coh_manifest *manifest,
                         const coh_evaluation *e)
{
    const double loss = e->weight > 0 ? e->loss / e->weight : 0;

    if (args->json) {
        coh_json json;
        coh_json_init(&json, stdout, false);
        coh_json_open(&json, NULL, '{');
        coh_json_int(&json, "step", manifest->progress.steps);
        coh_json_int(&json, "samples", e->samples);
        coh_json_real(&json, "loss", loss);
        if (e->accuracy >= 0)
            coh_json_real(&json, "accuracy", e->accuracy);
        if (e->auc >= 0)
            coh_json_real(&json, "auc", e->auc);
        coh_json_close(&json, '{');
        return;
    }
    printf("step %" PRId64 ": loss %.4f", manifest->progress.steps, loss);
    if (e->accuracy >= 0)
        printf("  accuracy %.4f", e->accuracy);
    if (e->auc >= 0)
        printf("  AUC %.4f", e->auc);
    printf("  (%" PRId64 " samples)\n", e->samples);
}

static coh_status measure(coh_job *job, const coh_args *args, coh_split split,
                          float *weights, coh_err *err)
{
    coh_dataset *const sets[] = { job->train, job->validation, job->test };
    const coh_evaluator evaluator = { job->config,   job->model,
                                      &job->roles,   job->size,
                                      &job->compute, job->infer_batch,
                                      nothing,       NULL };
    coh_manifest manifest;
    coh_evaluation e;

    coh_status status = read_weights(job, args, &manifest, weights, err);
    if (status == COH_OK)
        status = coh_job_normalize(job, &manifest.normal, err);
    if (status == COH_OK && coh_dataset_count(sets[split]) == 0)
        status = coh_fail(err, COH_E_DATA,
                          "the data set is empty: name its "
                          "files in the config, or by --set data.test=...");
    if (status == COH_OK)
        status = coh_evaluate(&evaluator, sets[split], weights, &e, err);
    if (status == COH_OK && !isfinite(e.loss))
        status = coh_fail(err, COH_E_DIVERGED,
                          "the weights of step %" PRId64 " are not finite, "
                          "or too large: evaluate an earlier checkpoint",
                          manifest.progress.steps);
    if (status == COH_OK && job->rank == 0)
        print_result(args, &manifest, &e);
    return status;
}

static coh_status run(coh_job *job, const coh_args *args, coh_err *err)
{
    coh_split split;
    float *weights = NULL;

    coh_status status = split_of(args, &split, err);
    if (status == COH_OK)
        status = coh_job_load(job, args, read_checkpoint, err);
    if (status == COH_OK)
        status = coh_job_open_data(job, split == COH_SPLIT_TRAIN, err);
    if (status == COH_OK)
        status = coh_job_make_compute(job, false, NULL, err);
    if (status != COH_OK)
        return status;
    weights = coh_floats(job->model->parameters);
    COH_ASSERT(weights != NULL);
    status = measure(job, args, split, weights, err);
    free(weights);
    return status;
}

int coh_command_eval(int argc, char **argv)
{
    coh_job job;
    coh_err err = COH_ERR_INIT;
    coh_args args;

    coh_job_begin(&job);
    coh_status status = coh_args_parse(
        argc, argv, COH_ARG_TARGET | COH_ARG_SET | COH_ARG_SPLIT | COH_ARG_JSON,
        &args, &err);
    if (status == COH_OK)
        status = run(&job, &args, &err);
    return coh_job_end(&job, "eval", status, &err);
}
