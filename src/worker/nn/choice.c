/* choice.c - see choice.h. */
#include "worker/nn/choice.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "worker/nn/machine.h"

typedef struct row {
    char name[COH_NAME_MAX];
    bool has_ways;
    unsigned char way[COH_CHOSEN_COUNT];
} row;

struct coh_choices {
    coh_choice_key key;
    int nlayers;
    row rows[];
};

const char *coh_way_name(coh_way way)
{
    static const char *const names[] = {
#define X(name, id) name,
        COH_WAYS(X)
#undef X
    };
    return names[way];
}

/* COH_WAY_COUNT if there is none of that name. */
static coh_way way_of(const char *name)
{
    int way = 0;

    while (way < COH_WAY_COUNT && strcmp(coh_way_name((coh_way)way), name) != 0)
        way++;
    return (coh_way)way;
}

/* --- keys --------------------------------------------------------------- */

/* FNV-1a over the bytes of one number. */
static void mix(uint64_t *hash, int64_t number)
{
    for (int i = 0; i < 8; i++) {
        *hash ^= (uint64_t)(number >> (8 * i)) & 0xff;
        *hash *= 0x100000001b3u;
    }
}

static void mix_layer(uint64_t *hash, const coh_layer *layer)
{
    const coh_layer_spec *spec = &layer->spec;

    mix(hash, spec->kind);
    mix(hash, layer->in.c);
    mix(hash, layer->in.h);
    mix(hash, layer->in.w);
    mix(hash, layer->out.c);
    mix(hash, spec->groups);
    mix(hash, layer->bias_count);
    for (int i = 0; i < 2; i++) {
        mix(hash, spec->kernel[i]);
        mix(hash, spec->stride[i]);
        mix(hash, spec->dilation[i]);
        mix(hash, layer->pad_before[i]);
        mix(hash, layer->pad_after[i]);
    }
}

coh_choice_key coh_choice_key_of(const coh_model *model, int64_t batch,
                                 bool training, int threads,
                                 const char *library)
{
    coh_choice_key key = { .threads = threads,
                           .batch = batch,
                           .network = 0xcbf29ce484222325u };

    coh_machine_name(key.processor, sizeof key.processor);
    snprintf(key.library, sizeof key.library, "%s", library);
    mix(&key.network, training);
    for (int i = 0; i < model->nlayers; i++)
        mix_layer(&key.network, &model->layers[i]);
    return key;
}

uint64_t coh_choice_key_hash(const coh_choice_key *self)
{
    uint64_t hash = self->network;

    for (const char *c = self->processor; *c != '\0'; c++)
        mix(&hash, *c);
    for (const char *c = self->library; *c != '\0'; c++)
        mix(&hash, *c);
    mix(&hash, self->threads);
    mix(&hash, self->batch);
    return hash != 0 ? hash : 1;
}

/* --- the table ---------------------------------------------------------- */

coh_status coh_choices_new(const coh_model *model, const coh_choice_key *key,
                           coh_choices **out, coh_err *err)
{
    coh_choices *self =
        calloc(1, sizeof *self + (size_t)model->nlayers * sizeof(row));
    if (self == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a table of %d layers",
                        model->nlayers);

    self->key = *key;
    self->nlayers = model->nlayers;
    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        self->rows[i].has_ways = coh_layer_has_ways(layer);
        memcpy(self->rows[i].name, layer->spec.name, COH_NAME_MAX);
    }
    *out = self;
    return COH_OK;
}

void coh_choices_destroy(coh_choices **self)
{
    free(*self);
    *self = NULL;
}

coh_way coh_choices_way(const coh_choices *self, int layer, coh_chosen pass)
{
    return self == NULL ? COH_WAY_DIRECT : (coh_way)self->rows[layer].way[pass];
}

void coh_choices_set(coh_choices *self, int layer, coh_chosen pass, coh_way way)
{
    COH_ASSERT(layer >= 0 && layer < self->nlayers);
    self->rows[layer].way[pass] = (unsigned char)way;
}

/* --- as text ------------------------------------------------------------ */

static void write_key(const coh_choice_key *key, FILE *out)
{
    fprintf(out,
            "processor %s\nlibrary %s\nthreads %d\nbatch %" PRId64
            "\nnetwork %016" PRIx64 "\n",
            key->processor, key->library, key->threads, key->batch,
            key->network);
}

void coh_choices_write(const coh_choices *self, FILE *out)
{
    fputs("choices 2\n", out);
    write_key(&self->key, out);
    for (int i = 0; i < self->nlayers; i++) {
        const row *it = &self->rows[i];
        if (!it->has_ways)
            continue;
        fprintf(out, "layer %d", i);
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++)
            fprintf(out, " %s", coh_way_name((coh_way)it->way[pass]));
        fprintf(out, " %s\n", it->name);
    }
    fputs("end\n", out);
}

/* The text behind `head` if *text begins with it, which is then moved there;
 * else NULL. */
static const char *skip(const char **text, const char *head)
{
    const size_t length = strlen(head);

    if (strncmp(*text, head, length) != 0)
        return NULL;
    return *text += length;
}

/* One line of a layer; false if it is no such line. */
static bool read_row(const char **text, coh_choices *table)
{
    char words[COH_CHOSEN_COUNT][32];
    int layer = -1, length = 0;

    if (sscanf(*text, "layer %d %31s %31s %31s%n", &layer, words[0], words[1],
               words[2], &length) != 4)
        return false;
    if (layer < 0 || layer >= table->nlayers || !table->rows[layer].has_ways)
        return false;
    for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++) {
        const coh_way way = way_of(words[pass]);
        if (way == COH_WAY_COUNT)
            return false;
        coh_choices_set(table, layer, (coh_chosen)pass, way);
    }
    *text += length;
    *text += strcspn(*text, "\n");
    return skip(text, "\n") != NULL;
}

/* All lines between the key and `end`; false if they are not all there. */
static bool read_rows(const char *text, coh_choices *table)
{
    int wanted = 0;

    for (int i = 0; i < table->nlayers; i++)
        wanted += table->rows[i].has_ways;
    while (wanted > 0 && read_row(&text, table))
        wanted--;
    return wanted == 0 && skip(&text, "end\n") != NULL;
}

/* What a table with this key begins with, for the caller to free; or NULL. */
static char *head_of(const coh_choice_key *key)
{
    char *head = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&head, &size);

    if (out == NULL)
        return NULL;
    fputs("choices 2\n", out);
    write_key(key, out);
    if (fclose(out) != 0) {
        free(head);
        return NULL;
    }
    return head;
}

coh_status coh_choices_find(const char *text, const coh_model *model,
                            const coh_choice_key *key, coh_choices **out,
                            coh_err *err)
{
    coh_choices *table = NULL;
    char *head = head_of(key);
    coh_status status = COH_PENDING;

    if (head == NULL)
        return coh_fail(err, COH_E_NOMEM, "no memory for a table of choices");
    const char *at = strstr(text, head);
    if (at != NULL)
        status = coh_choices_new(model, key, &table, err);
    if (status == COH_OK && !read_rows(at + strlen(head), table))
        status = COH_PENDING;
    free(head);
    if (status == COH_OK)
        *out = table;
    else
        coh_choices_destroy(&table);
    return status;
}

void coh_choices_summarize(const coh_choices *self, const coh_model *model,
                           bool training, char *out, size_t size)
{
    int counts[COH_WAY_COUNT] = { 0 };
    size_t used = 0;

    for (int i = 0; i < model->nlayers; i++) {
        const coh_layer *layer = &model->layers[i];
        if (!coh_layer_has_ways(layer))
            continue;
        for (int pass = 0; pass < (training ? COH_CHOSEN_COUNT : 1); pass++) {
            if (pass == COH_CHOSEN_DATA && !layer->needs_diff[0])
                continue;
            counts[coh_choices_way(self, i, (coh_chosen)pass)]++;
        }
    }
    out[0] = '\0';
    for (int way = 0; way < COH_WAY_COUNT && used < size; way++) {
        if (counts[way] > 0)
            used += (size_t)snprintf(out + used, size - used, "%s%d %s",
                                     used > 0 ? ", " : "", counts[way],
                                     coh_way_name((coh_way)way));
    }
}
