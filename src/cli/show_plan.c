/* show_plan.c - `cohort plan`: what would run, without MPI; data is only
 * opened. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/args.h"
#include "cli/command.h"
#include "cli/memory_plan.h"
#include "common/json.h"
#include "common/model.h"
#include "common/narrow.h"
#include "common/optim/momentum.h"
#include "common/plan.h"

enum { FLOAT_BYTES = 4, SHAPE_TEXT = 64 };
static const double MIB = 1024.0 * 1024.0;

/* What is printed, besides config, model and plan. */
typedef struct estimate {
    int64_t bytes_per_server;        /* parameters of the fullest server */
    int64_t push_bytes, reply_bytes; /* of a group, an exchange */
    coh_memory_plan memory;
    char launch[512];
} estimate;

static coh_status make_estimate(const coh_args *args, const coh_config *config,
                                const coh_model *model, const coh_plan *plan,
                                estimate *out, coh_err *err)
{
    *out = (estimate){ 0 };
    if (plan->servers > 0) {
        const int64_t all = plan->parameters;
        out->bytes_per_server = FLOAT_BYTES * coh_plan_fullest(plan);
        out->push_bytes =
            coh_narrow_bytes((coh_wire_kind)config->exchange.push, all);
        out->reply_bytes =
            coh_narrow_bytes((coh_wire_kind)config->exchange.reply, all);
    }
    snprintf(out->launch, sizeof out->launch, "srun -n %d cohort train %.400s",
             coh_plan_ranks(plan), args->target);
    return coh_memory_predict(config, model, plan, &out->memory, err);
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

/* A row of the table; parts that are 0 are a dash. */
static void print_row(const char *name, int64_t worker, int64_t server,
                      bool has_servers, const char *help)
{
    const int64_t bytes[2] = { worker, server };

    printf("  %-12s", name);
    for (int i = 0; i < 1 + has_servers; i++)
        if (bytes[i] > 0)
            printf(" %10.1f", (double)bytes[i] / MIB);
        else
            printf(" %10s", "-");
    printf("%s%s\n", help[0] != '\0' ? "  " : "", help);
}

static void print_memory(const coh_memory_plan *memory, bool has_servers)
{
    const coh_memory_parts *worker = &memory->worker, *server = &memory->server;

    printf("\n  %-12s %10s%s\n", "MiB at most", "a worker",
           has_servers ? "   a server" : "");
#define X(name, field, help) \
    print_row(name, worker->field, server->field, has_servers, help);
    COH_MEMORY_PARTS(X)
#undef X
    print_row("in all", coh_memory_sum(worker), coh_memory_sum(server),
              has_servers, "");
    printf("values: %.1f MiB to train, %.1f to evaluate, passes %s; they share "
           "it\n",
           (double)memory->training / MIB, (double)memory->evaluation / MIB,
           memory->passes);
    if (!memory->has_data)
        printf("data: not counted, for there is none here: %s\n", memory->why);
    printf("\n");
}

static void print_optimizer(const coh_config *config)
{
    char text[COH_MOMENTUM_TEXT];

    if (coh_momentum_describe(config, text))
        printf("optimizer   %s\n", text);
    if (coh_momentum_warn(config, text))
        printf("warning     %s\n", text);
}

static void print_server_ranks(const coh_plan *plan)
{
    if (plan->servers == 0)
        return;
    printf("servers     rank");
    for (int s = 0; s < plan->servers; s++)
        printf("%s %d", s > 0 ? "," : "", coh_plan_server_rank(plan, s));
    printf("\n");
}

static void print_wire(const coh_config *config, const estimate *e)
{
    const int64_t every = config->exchange.every;
    char when[40] = "a step";

    if (every > 1)
        snprintf(when, sizeof when, "every %" PRId64 " steps", every);
    printf("wire        a group pushes %.3f MiB of %s (%s) %s, and gets %.3f "
           "MiB of weights (%s)\n",
           (double)e->push_bytes / MIB,
           config->exchange.elastic > 0 ? "weights"
           : every > 1                  ? "changes"
                                        : "gradients",
           coh_narrow_name((coh_wire_kind)config->exchange.push), when,
           (double)e->reply_bytes / MIB,
           coh_narrow_name((coh_wire_kind)config->exchange.reply));
}

static void print_text(const coh_config *config, const coh_model *model,
                       const coh_plan *plan, const estimate *e)
{
    print_layers(model);
    printf("\nparameters  %" PRId64 " (%.3f MiB) in %" PRId64
           " blocks of at most %" PRId64 "\n",
           model->parameters, (double)model->parameters * FLOAT_BYTES / MIB,
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
    print_server_ranks(plan);
    if (plan->servers > 0) {
        printf("server      %.3f MiB of parameters at most\n",
               (double)e->bytes_per_server / MIB);
        print_wire(config, e);
    }
    print_optimizer(config);
    print_memory(&e->memory, plan->servers > 0);
    printf("launch      %s\n", e->launch);
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

static void print_json_memory(coh_json *json, const char *name,
                              const coh_memory_parts *parts)
{
    coh_json_open(json, name, '{');
#define X(key, field, help) coh_json_int(json, key, parts->field);
    COH_MEMORY_PARTS(X)
#undef X
    coh_json_close(json, '{');
}

/* The rate before any schedule. */
static void print_json_optimizer(coh_json *json, const coh_config *config)
{
    const coh_momentum momentum = coh_momentum_of(config);
    char text[COH_MOMENTUM_TEXT];

    coh_json_open(json, "optimizer", '{');
    coh_json_real(json, "rate", momentum.rate_factor * config->optimizer.rate);
    coh_json_real(json, "momentum", momentum.value);
    coh_json_real(json, "implied_momentum", momentum.implied);
    coh_json_close(json, '{');
    coh_json_open(json, "warnings", '[');
    if (coh_momentum_warn(config, text))
        coh_json_text(json, NULL, text);
    coh_json_close(json, '[');
}

static void print_json(const coh_config *config, const coh_model *model,
                       const coh_plan *plan, const estimate *e)
{
    const coh_memory_plan *memory = &e->memory;
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
    coh_json_open(&json, "server_ranks", '[');
    for (int s = 0; s < plan->servers; s++)
        coh_json_int(&json, NULL, coh_plan_server_rank(plan, s));
    coh_json_close(&json, '[');
    coh_json_int(&json, "step_samples", plan->step_samples);
    coh_json_int(&json, "blocks", plan->nblocks);
    coh_json_int(&json, "bytes_per_server", e->bytes_per_server);
    coh_json_int(&json, "push_bytes", e->push_bytes);
    coh_json_int(&json, "reply_bytes", e->reply_bytes);
    coh_json_int(&json, "memory_per_worker", coh_memory_sum(&memory->worker));
    coh_json_int(&json, "memory_per_server", coh_memory_sum(&memory->server));
    coh_json_open(&json, "memory", '{');
    print_json_memory(&json, "worker", &memory->worker);
    print_json_memory(&json, "server", &memory->server);
    coh_json_int(&json, "values_training", memory->training);
    coh_json_int(&json, "values_evaluation", memory->evaluation);
    coh_json_text(&json, "passes", memory->passes);
    coh_json_text(&json, "no_data", memory->why);
    coh_json_close(&json, '{');
    print_json_optimizer(&json, config);
    coh_json_text(&json, "launch", e->launch);
    print_json_layers(&json, model);
    coh_json_close(&json, '{');
}

static coh_status show(const coh_args *args, const coh_config *config,
                       coh_err *err)
{
    coh_model *model = NULL;
    coh_plan plan = { 0 };
    estimate e;

    coh_status status = coh_model_new(config, &model, err);
    if (status == COH_OK)
        status = coh_plan_make(config, model, args->ranks, &plan, err);
    if (status == COH_OK)
        status = coh_model_check_share(model, coh_plan_least_batch(&plan), err);
    if (status == COH_OK)
        status = make_estimate(args, config, model, &plan, &e, err);
    if (status == COH_OK && args->json)
        print_json(config, model, &plan, &e);
    else if (status == COH_OK)
        print_text(config, model, &plan, &e);
    coh_plan_fini(&plan);
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
