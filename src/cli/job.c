/* job.c - see job.h. */
#include "cli/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/threads.h"
#include "common/mpi_check.h"

void coh_job_begin(coh_job *self)
{
    memset(self, 0, sizeof *self);
    coh_signals_init(&self->signals); /* before MPI starts threads */
    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &self->mpi_threads) !=
        MPI_SUCCESS)
        abort(); /* MPI has said why */
    COH_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    COH_MPI(MPI_Comm_rank(MPI_COMM_WORLD, &self->rank));
    COH_MPI(MPI_Comm_size(MPI_COMM_WORLD, &self->size));
}

static void free_all(coh_job *self)
{
    if (self->compute.self != NULL)
        self->compute.destroy(&self->compute.self);
    free(self->choices);
    coh_dataset_close(&self->train);
    coh_dataset_close(&self->validation);
    coh_dataset_close(&self->test);
    if (self->has_roles)
        coh_roles_fini(&self->roles);
    coh_log_destroy(&self->log);
    coh_plan_fini(&self->plan);
    coh_model_destroy(&self->model);
    coh_config_destroy(&self->config);
    coh_signals_fini(&self->signals);
}

int coh_job_end(coh_job *self, const char *command, coh_status status,
                coh_err *err)
{
    const int code = coh_status_exit_code(status);

    if (status == COH_E_PEER) {
        fflush(NULL);
        _exit(code);
    }
    if (status != COH_OK && self->rank == 0)
        (void)coh_command_end(command, status, err);
    free_all(self);
    COH_MPI(MPI_Finalize());
    return code;
}

coh_status coh_job_share(coh_job *self, coh_status status, void *bytes,
                         int64_t size, coh_err *err)
{
    struct {
        coh_status status;
        coh_err err;
    } said = { status, *err };

    (void)self;
    COH_MPI(MPI_Bcast(&said, (int)sizeof said, MPI_BYTE, 0, MPI_COMM_WORLD));
    if (said.status != COH_OK) {
        *err = said.err;
        return said.status;
    }
    COH_MPI(MPI_Bcast(bytes, (int)size, MPI_BYTE, 0, MPI_COMM_WORLD));
    return COH_OK;
}

/* Rank 0's config as text, on all ranks; *text is the caller's. */
static coh_status share_text(coh_job *self, coh_status status, char **text,
                             int64_t *length, coh_err *err)
{
    if (self->rank == 0 && status == COH_OK) {
        size_t size = 0;
        FILE *out = open_memstream(text, &size);
        COH_ASSERT(out != NULL);
        coh_config_write(self->config, out);
        COH_ASSERT(fclose(out) == 0);
        *length = (int64_t)size;
    }
    status = coh_job_share(self, status, length, sizeof *length, err);
    if (status != COH_OK)
        return status;
    if (self->rank != 0) {
        *text = malloc((size_t)*length + 1);
        COH_ASSERT(*text != NULL);
    }
    return coh_job_share(self, COH_OK, *text, *length, err);
}

static coh_status share_config(coh_job *self, const coh_args *args,
                               coh_job_reader read, coh_err *err)
{
    coh_status status = COH_OK;
    char *text = NULL;
    int64_t length = 0;

    if (self->rank == 0)
        status = read(args, &self->config, err);
    status = share_text(self, status, &text, &length, err);
    if (status != COH_OK) {
        free(text);
        return status;
    }
    if (self->rank != 0)
        status = coh_config_parse("the config of rank 0", text, (size_t)length,
                                  NULL, 0, &self->config, err);
    free(text);
    return coh_agree(MPI_COMM_WORLD, status, err);
}

coh_status coh_job_load(coh_job *self, const coh_args *args,
                        coh_job_reader read, coh_err *err)
{
    coh_status status = share_config(self, args, read, err);

    if (status == COH_OK)
        status = coh_model_new(self->config, &self->model, err);
    if (status == COH_OK)
        status = coh_plan_make(self->config, self->model, self->size,
                               &self->plan, err);
    if (status != COH_OK)
        return status; /* pure: the same on all ranks */
    coh_roles_init(&self->roles, MPI_COMM_WORLD, &self->plan,
                   (coh_collectives_kind)self->config->exchange.collectives);
    self->has_roles = true;
    self->threads =
        coh_threads_for(self->config->compute.threads, self->roles.node_ranks);
    self->infer_batch = self->config->eval.batch > 0 ? self->config->eval.batch
                                                     : self->plan.batch;
    const coh_role *mine = &self->roles.mine;
    const bool is_chief =
        self->plan.servers > 0 ? mine->server == 0 : self->rank == 0;
    status = coh_log_new(mine->is_server ? 'S' : 'W',
                         mine->is_server ? mine->server : self->rank, is_chief,
                         &self->log, err);
    return coh_agree(MPI_COMM_WORLD, status, err);
}

static coh_status open_sets(coh_job *self, bool wants_train, coh_err *err)
{
    coh_status status = COH_OK;

    if (self->roles.mine.is_server)
        return COH_OK;
    if (wants_train)
        status = coh_dataset_open_for(self->config, COH_SPLIT_TRAIN,
                                      self->model, &self->train, err);
    if (status == COH_OK)
        status = coh_dataset_open_for(self->config, COH_SPLIT_VALIDATION,
                                      self->model, &self->validation, err);
    if (status == COH_OK)
        status = coh_dataset_open_for(self->config, COH_SPLIT_TEST, self->model,
                                      &self->test, err);
    return status;
}

coh_status coh_job_open_data(coh_job *self, bool wants_train, coh_err *err)
{
    coh_status status =
        coh_agree(MPI_COMM_WORLD, open_sets(self, wants_train, err), err);
    if (status != COH_OK)
        return status;
    self->has_validation = self->config->data.validation.count > 0;
    if (!wants_train)
        return COH_OK;

    if (self->rank == 0)
        self->train_count = coh_dataset_count(self->train);
    const int64_t mine =
        self->train == NULL ? -1 : coh_dataset_count(self->train);
    status = coh_job_share(self, COH_OK, &self->train_count,
                           sizeof self->train_count, err);
    if (mine >= 0 && mine != self->train_count)
        status = coh_fail(err, COH_E_DATA,
                          "the training set has %lld samples here, but %lld on "
                          "rank 0: all nodes must see the same files",
                          (long long)mine, (long long)self->train_count);
    if (status == COH_OK && self->train_count == 0)
        status = coh_fail(err, COH_E_DATA, "the training set is empty");
    return coh_agree(MPI_COMM_WORLD, status, err);
}

coh_status coh_job_normalize(coh_job *self, const coh_normal *known,
                             coh_err *err)
{
    coh_status status = COH_OK;

    if (known != NULL)
        self->normal = *known;
    else if (self->rank == 0)
        status =
            coh_dataset_measure(self->train, self->config, &self->normal, err);
    status =
        coh_job_share(self, status, &self->normal, sizeof self->normal, err);
    coh_dataset *sets[] = { self->train, self->validation, self->test };
    for (int i = 0; status == COH_OK && i < 3; i++) {
        if (sets[i] != NULL)
            coh_dataset_normalize(sets[i], &self->normal);
    }
    return status;
}
