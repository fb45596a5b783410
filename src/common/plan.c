/* plan.c - see plan.h. */
#include "common/plan.h"

#include <inttypes.h>
#include <limits.h>

enum {
    FLOAT_BYTES = 4,
    ALIGN_FLOATS = 16, /* one cache line */
};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Cut the vector: blocks of at most `bytes`, as many for every server. Where
 * that leaves a few large blocks for several servers, smaller ones share them
 * out evenly. */
static void cut(coh_plan *self, int64_t bytes)
{
    const int64_t owners = self->servers > 0 ? self->servers : 1;
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

coh_status coh_plan_make(const coh_config *config, int64_t parameters,
                         int ranks, coh_plan *out, coh_err *err)
{
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
    plan.batch = config->train.group_batch > 0
                     ? ceil_div(config->train.group_batch, size)
                     : config->train.batch;
    plan.step_samples = config->train.group_batch > 0
                            ? config->train.group_batch
                            : config->train.batch * size;
    plan.update_samples =
        plan.step_samples *
        (config->policy == COH_POLICY_SYNC ? config->groups : 1);
    cut(&plan, config->exchange.block);
    *out = plan;
    return COH_OK;
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

int coh_plan_server_rank(const coh_plan *self, int server)
{
    const int64_t others = coh_plan_ranks(self) - 1;

    return (int)((server + 1) * others / self->servers);
}

coh_range coh_plan_block(const coh_plan *self, int64_t block)
{
    COH_ASSERT(block >= 0 && block < self->nblocks);
    const int64_t first = block * self->block_count;
    const int64_t left = self->parameters - first;

    return (coh_range){ first,
                        left < self->block_count ? left : self->block_count };
}

int64_t coh_plan_owned(const coh_plan *self, int server)
{
    if (server < 0)
        return self->nblocks;
    return (self->nblocks - server + self->servers - 1) / self->servers;
}

int64_t coh_plan_owned_block(const coh_plan *self, int server, int64_t index)
{
    return server < 0 ? index : index * self->servers + server;
}

int64_t coh_plan_owned_parameters(const coh_plan *self, int server)
{
    const int64_t owned = coh_plan_owned(self, server);

    if (owned == 0)
        return 0;
    const int64_t last = coh_plan_owned_block(self, server, owned - 1);
    return (owned - 1) * self->block_count + coh_plan_block(self, last).count;
}

coh_range coh_plan_share(const coh_plan *self, int member, int64_t samples)
{
    int64_t first = member * self->batch;
    if (first > samples)
        first = samples;
    const int64_t left = samples - first;

    return (coh_range){ first, left < self->batch ? left : self->batch };
}

int64_t coh_plan_least_share(const coh_plan *self)
{
    return (self->step_samples - 1) % self->batch + 1;
}
