/* show_plan.c - `cohort plan`: what would run, without MPI and without data. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "common/json.h"
#include "common/model.h"
#include "common/optim/rule.h"
#include "common/plan.h"

enum { FLOAT_BYTES = 4, SHAPE_TEXT = 64 };

/* What is printed, besides config, model and plan. */
typedef struct estimate {
    int64_t bytes_per_server; /* parameters of the fullest server */
    int64_t worker_bytes, server_bytes;
    char launch[512];
} estimate;

static int64_t at_least(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Floats of all layers' outputs, for one sample. */
static int64_t activations(const coh_model *model)
{
    int64_t sum = 0;

    for (int l = 0; l < model->nlayers; l++)
        sum += coh_shape_count(model->layers[l].out);
    return sum;
}

/* Weights, gradient, optimizer state without servers, activations with their
 * gradients, and batches read ahead. oneDNN's own copies come on top. */
static int64_t worker_bytes(const coh_config *config, const coh_model *model,
                            const coh_plan *plan)
{
    const coh_rule rule = coh_rule_of(config);
    const int64_t vectors = 2 + (plan->servers > 0 ? 0 : coh_rule_slots(&rule));
    const int64_t rows = at_least(plan->batch, config->eval.batch);
    const int64_t batches = config->data.prefetch + 1;

    return FLOAT_BYTES *
           (vectors * model->parameters + 2 * rows * activations(model) +
            batches * plan->batch * coh_shape_count(model->input));
}

/* Values, optimizer state, and two blocks for every group. */
static int64_t server_bytes(const coh_config *config, const coh_plan *plan)
{
    const coh_rule rule = coh_rule_of(config);

    return FLOAT_BYTES *
           ((1 + coh_rule_slots(&rule)) * coh_plan_owned_parameters(plan, 0) +
            2 * plan->groups * plan->block_count);
}

static estimate estimate_of(const coh_args *args, const coh_config *config,
                            const coh_model *model, const coh_plan *plan)
{
    estimate e = { .worker_bytes = worker_bytes(config, model, plan) };

    for (int s = 0; s < plan->servers; s++)
        e.bytes_per_server =
            at_least(e.bytes_per_server,
                     FLOAT_BYTES * coh_plan_owned_parameters(plan, s));
    if (plan->servers > 0)
        e.server_bytes = server_bytes(config, plan);
    snprintf(e.launch, sizeof e.launch, "srun -n %d cohort train %.400s",
             coh_plan_ranks(plan), args->target);
    return e;
}

static void write_shape(char out[SHAPE_TEXT], coh_shape s)
{
    if (s.h == 1 && s.w == 1)
        snprintf(out, SHAPE_TEXT, "%" PRId64, s.c);
    else
        snprintf(out, SHAPE_TEXT, "%" PRId64 " x %" PRId64 " x %" PRId64, s.c,
                 s.h, s.w);
}

static void print_layers(const coh_model *model)
{
    char shape[SHAPE_TEXT];

    write_shape(shape, model->input);
    printf("  %-24s %-20s %14s %12s\n", "layer", "output", "parameters",
           "GFLOP");
    printf("  %-24s %-20s\n", "input", shape);
    for (int l = 0; l < model->nlayers; l++) {
        const coh_layer *layer = &model->layers[l];
        write_shape(shape, layer->out);
        printf("  %-24s %-20s", layer->spec.name, shape);
        if (layer->weight_count > 0)
            printf(" %14" PRId64 " %12.6f", coh_layer_parameters(layer),
                   (double)layer->flop / 1e9);
        printf("\n");
    }
}

static void print_text(const coh_model *model, const coh_plan *plan,
                       const estimate *e)
{
    const double mib = 1024.0 * 1024.0;

    print_layers(model);
    printf("\nparameters  %" PRId64 " (%.3f MiB) in %" PRId64
           " blocks of at most %" PRId64 "\n",
           model->parameters, (double)model->parameters * FLOAT_BYTES / mib,
           plan->nblocks, plan->block_count);
    if (model->trained < model->parameters)
        printf("            %" PRId64 " of them are trained, %" PRId64
               " are running statistics\n",
               model->trained, model->parameters - model->trained);
    printf("flop        %.3f GFLOP an image and training step (%.3f with the "
           "first layer's input gradient)\n",
           (double)model->flop_step / 1e9, (double)model->flop_step_full / 1e9);
    printf("roles       %d ranks: %d group%s x %d worker%s + %d server%s; "
           "%" PRId64 " samples a step of a group\n",
           coh_plan_ranks(plan), plan->groups, plan->groups == 1 ? "" : "s",
           plan->group_size, plan->group_size == 1 ? "" : "s", plan->servers,
           plan->servers == 1 ? "" : "s", plan->step_samples);
    printf("memory      about %.1f MiB a worker",
           (double)e->worker_bytes / mib);
    if (plan->servers > 0)
        printf(", %.1f MiB a server (%.3f MiB of parameters at most)",
               (double)e->server_bytes / mib,
               (double)e->bytes_per_server / mib);
    printf("\nlaunch      %s\n", e->launch);
}

static void print_json_layers(coh_json *json, const coh_model *model)
{
    char shape[SHAPE_TEXT];

    coh_json_open(json, "layers", '[');
    for (int l = 0; l < model->nlayers; l++) {
        const coh_layer *layer = &model->layers[l];
        coh_json_open(json, NULL, '{');
        coh_json_text(json, "name", layer->spec.name);
        write_shape(shape, layer->out);
        coh_json_text(json, "output", shape);
        coh_json_int(json, "parameters", coh_layer_parameters(layer));
        coh_json_int(json, "flop_forward", layer->flop);
        coh_json_close(json, '{');
    }
    coh_json_close(json, '[');
}

static void print_json(const coh_model *model, const coh_plan *plan,
                       const estimate *e)
{
    coh_json json;

    coh_json_init(&json, stdout, false);
    coh_json_open(&json, NULL, '{');
    coh_json_int(&json, "parameters", model->parameters);
    coh_json_int(&json, "trained_parameters", model->trained);
    coh_json_int(&json, "parameter_bytes", model->parameters * FLOAT_BYTES);
    coh_json_int(&json, "flop_per_image_step", model->flop_step);
    coh_json_int(&json, "flop_per_image_step_full", model->flop_step_full);
    coh_json_int(&json, "ranks", coh_plan_ranks(plan));
    coh_json_open(&json, "roles", '{');
    coh_json_int(&json, "groups", plan->groups);
    coh_json_int(&json, "group_size", plan->group_size);
    coh_json_int(&json, "servers", plan->servers);
    coh_json_close(&json, '{');
    coh_json_int(&json, "step_samples", plan->step_samples);
    coh_json_int(&json, "blocks", plan->nblocks);
    coh_json_int(&json, "bytes_per_server", e->bytes_per_server);
    coh_json_int(&json, "memory_per_worker", e->worker_bytes);
    coh_json_int(&json, "memory_per_server", e->server_bytes);
    coh_json_text(&json, "launch", e->launch);
    print_json_layers(&json, model);
    coh_json_close(&json, '{');
}

static coh_status show(const coh_args *args, const coh_config *config,
                       coh_err *err)
{
    coh_model *model = NULL;
    coh_plan plan;

    coh_status status = coh_model_new(config, &model, err);
    if (status == COH_OK)
        status =
            coh_plan_make(config, model->parameters, args->ranks, &plan, err);
    if (status == COH_OK)
        status = coh_model_check_share(model, coh_plan_least_share(&plan), err);
    if (status == COH_OK) {
        const estimate e = estimate_of(args, config, model, &plan);
        if (args->json)
            print_json(model, &plan, &e);
        else
            print_text(model, &plan, &e);
    }
    coh_model_destroy(&model);
    return status;
}

int coh_command_plan(int argc, char **argv)
{
    coh_config *config = NULL;
    coh_err err = COH_ERR_INIT;
    coh_args args;

    coh_status status = coh_args_parse(
        argc, argv, COH_ARG_TARGET | COH_ARG_SET | COH_ARG_RANKS | COH_ARG_JSON,
        &args, &err);
    if (status == COH_OK)
        status =
            coh_config_load(args.target, args.sets, args.nsets, &config, &err);
    if (status == COH_OK)
        status = show(&args, config, &err);
    coh_config_destroy(&config);
    return coh_command_end("plan", status, &err);
}
