/* loader.c - see loader.h.
 *
 * One list holds the pieces in the order asked; the thread reads the first that
 * is not read, as soon as a batch is idle, and take() takes from its head. A
 * mutex guards the list and the idle batches; nothing is read while it is held.
 * Where there is no thread, take() does its work for the head of the list.
 */
#include "worker/loader.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "common/rng.h"

typedef struct piece_node {
    struct piece_node *next;
    coh_piece piece;
    bool is_done;
    coh_status status;
    coh_batch *batch; /* once done, if status is COH_OK */
    char *text;       /* once done, of a failure; owned, may be NULL */
} piece_node;

struct coh_loader {
    coh_dataset *dataset; /* borrowed */
    uint64_t seed;
    bool is_shuffled;
    int64_t capacity, depth;
    coh_batch **batches; /* [depth], owned */
    int64_t *samples;    /* [capacity], owned, the reader's */

    pthread_t thread;
    bool has_thread; /* else take() reads */
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a piece was asked, a batch given, or stop */
    pthread_cond_t done; /* a piece is done */

    /* guarded by mutex */
    piece_node *head, *tail; /* owned */
    piece_node *unread;      /* the first not begun, in that list */
    coh_batch **idle;        /* [depth] a stack of nidle, the array owned */
    int64_t nidle;
    bool must_stop;
};

static coh_status read_piece(coh_loader *self, const coh_piece *piece,
                             coh_batch *batch, coh_err *err)
{
    const int64_t set_size = coh_dataset_count(self->dataset);

    for (int64_t i = 0; i < piece->count; i++) {
        const int64_t position = piece->first + i;
        self->samples[i] =
            self->is_shuffled
                ? coh_rng_permute(self->seed, piece->epoch, set_size, position)
                : position;
    }
    batch->epoch = piece->epoch;
    return coh_dataset_read(self->dataset, self->samples, piece->count, batch,
                            err);
}

/* Called with the mutex held; lets go of it while reading. */
static void serve(coh_loader *self)
{
    piece_node *node = self->unread;
    coh_batch *batch = self->idle[--self->nidle];
    coh_err err = COH_ERR_INIT;

    self->unread = node->next;
    pthread_mutex_unlock(&self->mutex);
    const coh_status status = read_piece(self, &node->piece, batch, &err);
    char *text = status != COH_OK ? strdup(err.text) : NULL;
    pthread_mutex_lock(&self->mutex);

    node->status = status;
    node->text = text;
    if (status == COH_OK)
        node->batch = batch;
    else
        self->idle[self->nidle++] = batch;
    node->is_done = true;
    pthread_cond_signal(&self->done);
}

static void *run(void *loader)
{
    coh_loader *self = loader;

    pthread_mutex_lock(&self->mutex);
    while (!self->must_stop) {
        if (self->unread != NULL && self->nidle > 0)
            serve(self);
        else
            pthread_cond_wait(&self->work, &self->mutex);
    }
    pthread_mutex_unlock(&self->mutex);
    return NULL;
}

/* Signals are for the thread that runs the job. */
static coh_status start(coh_loader *self, coh_err *err)
{
    sigset_t all, was;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    const int rc = pthread_create(&self->thread, NULL, run, self);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    if (rc != 0)
        return coh_fail(err, COH_E_FAILED, "cannot start a loader thread: %s",
                        strerror(rc));
    self->has_thread = true;
    return COH_OK;
}

static coh_status alloc(coh_loader *self, coh_shape input, coh_err *err)
{
    const size_t depth = (size_t)self->depth;

    self->batches = calloc(depth, sizeof *self->batches);
    self->idle = calloc(depth, sizeof *self->idle);
    self->samples = calloc((size_t)self->capacity + 1, sizeof *self->samples);
    if (self->batches == NULL || self->idle == NULL || self->samples == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a loader");
    for (int64_t i = 0; i < self->depth; i++) {
        const coh_status status =
            coh_batch_new(input, coh_dataset_targets(self->dataset),
                          self->capacity, &self->batches[i], err);
        if (status != COH_OK)
            return status;
        self->idle[self->nidle++] = self->batches[i];
    }
    return COH_OK;
}

coh_status coh_loader_new(coh_dataset *dataset, coh_shape input,
                          int64_t capacity, int64_t depth, uint64_t seed,
                          bool shuffled, coh_loader **out, coh_err *err)
{
    COH_ASSERT(capacity > 0 && depth >= 0);
    coh_loader *self = calloc(1, sizeof *self);
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a loader");

    self->dataset = dataset;
    self->seed = seed;
    self->is_shuffled = shuffled;
    self->capacity = capacity;
    self->depth = depth > 0 ? depth : 1;
    pthread_mutex_init(&self->mutex, NULL);
    pthread_cond_init(&self->work, NULL);
    pthread_cond_init(&self->done, NULL);
    coh_status status = alloc(self, input, err);
    if (status == COH_OK && depth > 0)
        status = start(self, err);
    if (status != COH_OK) {
        coh_loader_destroy(&self);
        return status;
    }
    *out = self;
    return COH_OK;
}

static void free_node(piece_node *node)
{
    free(node->text);
    free(node);
}

void coh_loader_destroy(coh_loader **self)
{
    coh_loader *loader = *self;
    if (loader == NULL)
        return;

    if (loader->has_thread) {
        pthread_mutex_lock(&loader->mutex);
        loader->must_stop = true;
        pthread_cond_signal(&loader->work);
        pthread_mutex_unlock(&loader->mutex);
        pthread_join(loader->thread, NULL);
    }
    while (loader->head != NULL) {
        piece_node *node = loader->head;
        loader->head = node->next;
        free_node(node);
    }
    for (int64_t i = 0; loader->batches != NULL && i < loader->depth; i++)
        coh_batch_destroy(&loader->batches[i]);
    pthread_cond_destroy(&loader->work);
    pthread_cond_destroy(&loader->done);
    pthread_mutex_destroy(&loader->mutex);
    free(loader->batches);
    free(loader->idle);
    free(loader->samples);
    free(loader);
    *self = NULL;
}

coh_status coh_loader_ask(coh_loader *self, coh_piece piece, coh_err *err)
{
    COH_ASSERT(piece.first >= 0 && piece.count >= 0 &&
               piece.count <= self->capacity);
    COH_ASSERT(piece.first + piece.count <= coh_dataset_count(self->dataset));
    piece_node *node = calloc(1, sizeof *node);
    if (node == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory to ask for a batch");

    node->piece = piece;
    pthread_mutex_lock(&self->mutex);
    if (self->head == NULL)
        self->head = node;
    else
        self->tail->next = node;
    self->tail = node;
    if (self->unread == NULL)
        self->unread = node;
    pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->mutex);
    return COH_OK;
}

coh_status coh_loader_take(coh_loader *self, coh_batch **out, coh_err *err)
{
    pthread_mutex_lock(&self->mutex);
    piece_node *node = self->head;
    COH_ASSERT(node != NULL); /* nothing was asked: it would wait for ever */
    /* not begun and no batch idle: the caller holds them all, and would wait
     * for itself */
    COH_ASSERT(node != self->unread || self->nidle > 0);
    while (!node->is_done) {
        if (self->has_thread)
            pthread_cond_wait(&self->done, &self->mutex);
        else
            serve(self); /* the first unread is the head */
    }
    self->head = node->next;
    pthread_mutex_unlock(&self->mutex);

    const coh_status status = node->status;
    if (status == COH_OK)
        *out = node->batch;
    else
        coh_fail(err, status, "%s",
                 node->text != NULL ? node->text : "no memory for the message");
    free_node(node);
    return status;
}

void coh_loader_give(coh_loader *self, coh_batch *batch)
{
    pthread_mutex_lock(&self->mutex);
    COH_ASSERT(self->nidle < self->depth);
    self->idle[self->nidle++] = batch;
    pthread_cond_signal(&self->work);
    pthread_mutex_unlock(&self->mutex);
}
