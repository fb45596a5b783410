/* data_files.h - small data sets for tests: a folder of their own, a config
 * that names files in it, idx files, and a data set opened from that.
 */
#ifndef COH_TESTS_DATA_FILES_H
#define COH_TESTS_DATA_FILES_H

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/dataset.h"

enum { DATA_NAMES_MAX = 8, DATA_PATH_SIZE = 256 };

/* A list whose texts lie beside it. */
typedef struct data_names {
    char text[DATA_NAMES_MAX][DATA_PATH_SIZE];
    char *items[DATA_NAMES_MAX];
} data_names;

typedef struct data_room {
    char folder[32];
    coh_config config;
    coh_shape input;
    int64_t classes;
    data_names train, train_labels, test, test_labels, images;
    coh_err err;
} data_room;

/* A fresh folder, and a config with the defaults of options.h. */
static inline void data_room_init(data_room *room, coh_data_kind kind,
                                  coh_shape input, int64_t classes)
{
    memset(room, 0, sizeof *room);
    strcpy(room->folder, "/tmp/coh_data_XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(room->folder));
    room->input = input;
    room->classes = classes;
    room->config.run.seed = 1;
    room->config.data.kind = (int)kind;
    room->config.data.normalize_samples = 10000;
    room->config.data.classes = classes;
    room->config.data.train_samples = 20;
    room->config.data.test_samples = 10;
    room->config.data.labels = (char *)"label";
    room->config.data.weights = (char *)"";
}

static inline void data_room_fini(data_room *room)
{
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", room->folder);
    ck_assert_int_eq(system(command), 0);
}

/* FOLDER/name, good until the next call with the same `out`. */
static inline const char *data_path(const data_room *room, const char *name,
                                    char out[DATA_PATH_SIZE])
{
    snprintf(out, DATA_PATH_SIZE, "%s/%s", room->folder, name);
    return out;
}

static inline void data_add(coh_list *list, data_names *names, const char *text)
{
    const int i = list->count;
    ck_assert_int_lt(i, DATA_NAMES_MAX);
    ck_assert_uint_lt(strlen(text), DATA_PATH_SIZE);
    strcpy(names->text[i], text);
    names->items[i] = names->text[i];
    list->items = names->items;
    list->count++;
}

/* Name a file of the folder, or a pattern in it. */
static inline void data_add_train(data_room *room, const char *name)
{
    char path[DATA_PATH_SIZE];
    data_add(&room->config.data.train, &room->train,
             data_path(room, name, path));
}

static inline void data_add_train_labels(data_room *room, const char *name)
{
    char path[DATA_PATH_SIZE];
    data_add(&room->config.data.train_labels, &room->train_labels,
             data_path(room, name, path));
}

static inline void data_add_images(data_room *room, const char *dataset)
{
    data_add(&room->config.data.images, &room->images, dataset);
}

static inline void data_write(const data_room *room, const char *name,
                              const void *bytes, size_t size)
{
    char path[DATA_PATH_SIZE];
    FILE *file = fopen(data_path(room, name, path), "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

/* The header of an idx file into bytes; returns its size. */
static inline size_t idx_header(int type, int rank, const uint32_t *dims,
                                unsigned char *bytes)
{
    const unsigned char magic[4] = { 0, 0, (unsigned char)type,
                                     (unsigned char)rank };
    memcpy(bytes, magic, 4);
    for (int i = 0; i < rank; i++) {
        for (int k = 0; k < 4; k++)
            bytes[4 + 4 * i + k] = (unsigned char)(dims[i] >> (24 - 8 * k));
    }
    return 4 + 4 * (size_t)rank;
}

/* An idx file of the given type, with `size` bytes of elements. */
static inline void idx_write(const data_room *room, const char *name, int type,
                             int rank, const uint32_t *dims,
                             const void *elements, size_t size)
{
    unsigned char bytes[4096];
    const size_t head = idx_header(type, rank, dims, bytes);
    ck_assert_uint_le(head + size, sizeof bytes);
    if (size > 0)
        memcpy(bytes + head, elements, size);
    data_write(room, name, bytes, head + size);
}

static inline coh_dataset *data_open(data_room *room)
{
    coh_dataset *set = NULL;
    const coh_status status =
        coh_dataset_open(&room->config, COH_SPLIT_TRAIN, room->input,
                         room->classes, &set, &room->err);
    ck_assert_msg(status == COH_OK, "%s", room->err.text);
    return set;
}

/* Opening must fail as bad data, and each of the words must be said. */
#define data_refuse(room, ...) \
    data_refuse_words(room, (const char *const[]){ __VA_ARGS__, NULL })
static inline void data_refuse_words(data_room *room, const char *const *words)
{
    coh_dataset *set = NULL;
    ck_assert_int_eq(coh_dataset_open(&room->config, COH_SPLIT_TRAIN,
                                      room->input, room->classes, &set,
                                      &room->err),
                     COH_E_DATA);
    ck_assert_ptr_null(set);
    for (int i = 0; words[i] != NULL; i++)
        ck_assert_msg(strstr(room->err.text, words[i]) != NULL,
                      "no '%s' in: %s", words[i], room->err.text);
}

static inline coh_batch *data_batch(const data_room *room, int64_t capacity)
{
    coh_batch *batch = NULL;
    ck_assert_int_eq(coh_batch_new(room->input, 0, capacity, &batch, NULL),
                     COH_OK);
    return batch;
}

static inline void data_read(data_room *room, coh_dataset *set,
                             const int64_t *samples, int64_t count,
                             coh_batch *batch)
{
    const coh_status status =
        coh_dataset_read(set, samples, count, batch, &room->err);
    ck_assert_msg(status == COH_OK, "%s", room->err.text);
}

#endif
