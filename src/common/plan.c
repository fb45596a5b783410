/* plan.c - see plan.h. */
#include "common/plan.h"

#include <inttypes.h>
#include <limits.h>

#include "common/optim/rule.h"
#include "common/plan_layers.h"

enum {
    FLOAT_BYTES = 4,
    ALIGN_FLOATS = 16, /* one cache line */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Cut the vector: blocks of at most `bytes`, as many for every owner. Where
 * that leaves a few large blocks for several servers, smaller ones share them
 * out evenly. */
static void cut(coh_plan *self, int64_t bytes)
{
    const int64_t owners = self->owners > 0 ? self->owners : 1;
    const int64_t most = bytes / FLOAT_BYTES / ALIGN_FLOATS * ALIGN_FLOATS;
    int64_t wanted = ceil_div(ceil_div(self->parameters, most), owners);

    /* Rounding to whole cache lines must not reach a tenth of a share. */
    int64_t count = ceil_div(self->parameters, wanted * owners);
    if (count > ALIGN_FLOATS * 10)
        count = ceil_div(count, ALIGN_FLOATS) * ALIGN_FLOATS;
    self->block_count = count;
    self->nblocks = ceil_div(self->parameters, count);
}

static coh_status misfit(const coh_plan *plan, int64_t group_size, int ranks,
                         coh_err *err)
{
    const int64_t sum = plan->servers + plan->groups * group_size;

    return coh_fail(
        err, COH_E_LAUNCH,
        "servers %d + groups %d x group_size %" PRId64 " = %" PRId64
        " ranks, but %d %s launched: start it with `srun -n %" PRId64
        "` (or `mpiexec -n %" PRId64 "`), or change groups, group_size or "
        "servers%s",
        plan->servers, plan->groups, group_size, sum, ranks,
        ranks == 1 ? "was" : "were", sum, sum,
        ranks == 1 ? ". One rank where more were asked for is also what the "
                     "mpiexec of another MPI gives: see `cohort --version`"
                   : "");
}

/* As many as asked for, or as there are members; never more than blocks. */
static int count_speakers(const coh_plan *self, int64_t wanted)
{
    int64_t count = wanted == 0 ? self->group_size : wanted;

    if (count > self->group_size)
        count = self->group_size;
    if (count > self->nblocks)
        count = self->nblocks;
    return (int)count;
}

static int count_owners(const coh_plan *self, const coh_config *config)
{
    const int64_t wanted = config->exchange.speakers;

    if (self->servers > 0)
        return self->servers;
    if (config->exchange.update != COH_UPDATE_OWNERS || self->group_size == 1)
        return 0;
    return wanted == 0 || wanted > self->group_size ? self->group_size
                                                    : (int)wanted;
}

/* A rule that takes layers as one must find each in one block. */
static coh_status check_rule(const coh_config *config, const coh_layer *largest,
                             coh_err *err)
{
    const int64_t bytes = coh_layer_parameters(largest) * FLOAT_BYTES;

    if (!coh_rule_takes_layers(config) || bytes <= config->exchange.block)
        return COH_OK;
    if (bytes > COH_BLOCK_BYTES_MAX)
        return coh_fail(err, COH_E_CONFIG,
                        "optimizer.rule needs each layer in one block, and %s "
                        "has %" PRId64 " bytes of parameters, more than the "
                        "largest block: use another rule",
                        largest->spec.name, bytes);
    return coh_fail(err, COH_E_CONFIG,
                    "exchange.block: %" PRId64 ", but optimizer.rule needs "
                    "each layer in one block, and %s has %" PRId64
                    " bytes of parameters: write exchange.block: %" PRId64
                    ", or another rule",
                    config->exchange.block, largest->spec.name, bytes, bytes);
}

static coh_status cut_by_layers(coh_plan *self, const coh_config *config,
                                const coh_model *model, coh_err *err)
{
    const coh_layer *largest;
    const int count = coh_plan_layers_count(model, &largest);

    if (count < self->servers)
        return coh_fail(err, COH_E_LAUNCH,
                        "servers: %d for a model of %d layers with parameters: "
                        "use fewer, or exchange.placement: balanced",
                        self->servers, count);
    if (coh_plan_shares_update(self) && self->owners > count)
        self->owners = count;
    coh_status status = check_rule(config, largest, err);
    if (status == COH_OK)
        status = coh_plan_layers_new(model, self->owners > 0 ? self->owners : 1,
                                     config->exchange.block / FLOAT_BYTES,
                                     &self->layers, err);
    if (status != COH_OK)
        return status;
    self->nblocks = self->layers->nblocks;
    for (int64_t b = 0; b < self->nblocks; b++)
        if (self->layers->ranges[b].count > self->block_count)
            self->block_count = self->layers->ranges[b].count;
    return COH_OK;
}

coh_status coh_plan_make(const coh_config *config, const coh_model *model,
                         int ranks, coh_plan *out, coh_err *err)
{
    const int64_t parameters = model->parameters;
    int64_t size = config->group_size;
    coh_plan plan = {
        .groups = (int)config->groups,
        .servers = (int)config->servers,
        .parameters = parameters,
    };

    if (size == 0) {
        const int64_t workers = ranks == 0 ? plan.groups : ranks - plan.servers;
        size = workers / plan.groups;
        if (size < 1 || size * plan.groups != workers)
            return misfit(&plan, size < 1 ? 1 : size, ranks, err);
    }
    const int64_t sum = plan.servers + plan.groups * size;
    if ((ranks != 0 && sum != ranks) || sum > INT_MAX)
        return misfit(&plan, size, ranks, err);
    if (parameters < plan.servers)
        return coh_fail(err, COH_E_LAUNCH,
                        "servers: %d for a model of %" PRId64
                        " parameters: use fewer",
                        plan.servers, parameters);

    plan.group_size = (int)size;
    plan.share = config->train.group_batch > 0
                     ? ceil_div(config->train.group_batch, size)
                     : config->train.batch * config->train.accumulate;
    plan.batch = ceil_div(plan.share, config->train.accumulate);
    plan.step_samples = config->train.group_batch > 0
                            ? config->train.group_batch
                            : plan.share * size;
    plan.update_samples =
        plan.step_samples *
        (config->policy == COH_POLICY_SYNC ? config->groups : 1);
    plan.owners = count_owners(&plan, config);
    coh_status status = COH_OK;
    if (config->exchange.placement == COH_PLACEMENT_LAYER)
        status = cut_by_layers(&plan, config, model, err);
    else
        cut(&plan, config->exchange.block);
    plan.speakers = count_speakers(&plan, config->exchange.speakers);
    if (coh_plan_shares_update(&plan)) {
        if (plan.owners > plan.speakers)
            plan.owners = plan.speakers;
        plan.speakers = plan.owners;
    }
    if (status == COH_OK)
        *out = plan;
    return status;
}

void coh_plan_fini(coh_plan *self)
{
    coh_plan_layers_destroy(&self->layers);
}

int coh_plan_ranks(const coh_plan *self)
{
    return self->groups * self->group_size + self->servers;
}

/* How many servers have ranks below `rank`. */
static int servers_before(const coh_plan *self, int rank)
{
    const int64_t others = coh_plan_ranks(self) - 1;

    if (rank == 0 || self->servers == 0)
        return 0;
    return (int)(((int64_t)rank * self->servers - 1) / others);
}

coh_role coh_plan_role(const coh_plan *self, int rank)
{
    COH_ASSERT(rank >= 0 && rank < coh_plan_ranks(self));
    const int before = servers_before(self, rank);
    const int worker = rank - before;

    if (before < self->servers && coh_plan_server_rank(self, before) == rank)
        return (coh_role){ true, before, -1, -1 };
    return (coh_role){ false, -1, worker / self->group_size,
                       worker % self->group_size };
}

/* Before a worker stand the servers s that have no more workers before them
 * than it has: 1 + (s + 1) (workers - 1) / servers. */
int coh_plan_worker_rank(const coh_plan *self, int group, int member)
{
    const int64_t others = (int64_t)self->groups * self->group_size - 1;
    const int worker = group * self->group_size + member;

    if (worker == 0 || self->servers == 0)
        return worker;
    return worker + (int)(((int64_t)worker * self->servers - 1) / others);
}

int coh_plan_root_rank(const coh_plan *self, int group)
{
    return coh_plan_worker_rank(self, group, 0);
}

int coh_plan_speaker(const coh_plan *self, int64_t block)
{
    return coh_plan_shares_update(self) ? coh_plan_owner(self, block)
                                        : (int)(block % self->speakers);
}

int coh_plan_speaker_rank(const coh_plan *self, int group, int speaker)
{
    return coh_plan_worker_rank(self, group, speaker);
}

int coh_plan_server_rank(const coh_plan *self, int server)
{
    const int64_t others = coh_plan_ranks(self) - 1;

    return (int)((server + 1) * others / self->servers);
}

coh_range coh_plan_block(const coh_plan *self, int64_t block)
{
    COH_ASSERT(block >= 0 && block < self->nblocks);
    if (self->layers != NULL)
        return self->layers->ranges[block];
    const int64_t first = block * self->block_count;
    const int64_t left = self->parameters - first;

    return (coh_range){ first,
                        left < self->block_count ? left : self->block_count };
}

int coh_plan_owner(const coh_plan *self, int64_t block)
{
    return self->layers != NULL ? self->layers->owners[block]
                                : (int)(block % self->owners);
}

int64_t coh_plan_owned(const coh_plan *self, int server)
{
    const coh_plan_layers *layers = self->layers;

    if (server < 0)
        return self->nblocks;
    if (layers != NULL)
        return layers->firsts[server + 1] - layers->firsts[server];
    return (self->nblocks - server + self->owners - 1) / self->owners;
}

int64_t coh_plan_owned_block(const coh_plan *self, int server, int64_t index)
{
    const coh_plan_layers *layers = self->layers;

    if (server < 0)
        return index;
    return layers != NULL ? layers->blocks[layers->firsts[server] + index]
                          : index * self->owners + server;
}

int64_t coh_plan_owned_index(const coh_plan *self, int server, int64_t block)
{
    if (server < 0)
        return block;
    return self->layers != NULL ? self->layers->indices[block]
                                : block / self->owners;
}

int64_t coh_plan_owned_parameters(const coh_plan *self, int server)
{
    const int64_t owned = coh_plan_owned(self, server);
    int64_t sum = 0;

    if (self->layers == NULL && owned > 0) {
        const int64_t last = coh_plan_owned_block(self, server, owned - 1);
        return (owned - 1) * self->block_count +
               coh_plan_block(self, last).count;
    }
    for (int64_t i = 0; i < owned; i++)
        sum +=
            coh_plan_block(self, coh_plan_owned_block(self, server, i)).count;
    return sum;
}

int64_t coh_plan_fullest(const coh_plan *self)
{
    int64_t most = 0;

    for (int s = 0; s < self->owners; s++) {
        const int64_t count = coh_plan_owned_parameters(self, s);
        most = count > most ? count : most;
    }
    return most;
}

bool coh_plan_shares_update(const coh_plan *self)
{
    return self->servers == 0 && self->owners > 0;
}

int coh_plan_member_owner(const coh_plan *self, int member)
{
    return coh_plan_shares_update(self) && member < self->owners ? member : -1;
}

int coh_plan_parts(const coh_plan *self)
{
    return self->owners > 0 ? self->owners : 1;
}

/* Of `samples`, filled into places of size `most` in turn, those in number
 * `index`. */
static coh_range fill(int64_t samples, int64_t most, int64_t index)
{
    int64_t first = index * most;
    if (first > samples)
        first = samples;
    const int64_t left = samples - first;

    return (coh_range){ first, left < most ? left : most };
}

coh_range coh_plan_share(const coh_plan *self, int member, int64_t samples)
{
    return fill(samples, self->share, member);
}

int64_t coh_plan_batches(const coh_plan *self, int64_t samples)
{
    return samples > 0 ? ceil_div(samples, self->batch) : 1;
}

coh_range coh_plan_batch(const coh_plan *self, int64_t samples, int64_t index)
{
    return fill(samples, self->batch, index);
}

int64_t coh_plan_least_batch(const coh_plan *self)
{
    /* The last batches of a full share, and of the last member that has any. */
    const int64_t full = (self->share - 1) % self->batch + 1;
    const int64_t last =
        ((self->step_samples - 1) % self->share) % self->batch + 1;

    return full < last ? full : last;
}
