/* onnx_tensor.h - reads the tensors of ONNX test data: protobuf, as much of it
 * as TensorProto, and the initializers of a ModelProto, need.
 *
 * Field numbers from onnx.proto: ModelProto.graph 7, GraphProto.initializer 5,
 * TensorProto.dims 1, data_type 2 (1: float, 7: int64), float_data 4,
 * int64_data 7, raw_data 9.
 */
#ifndef COH_TESTS_ONNX_TENSOR_H
#define COH_TESTS_ONNX_TENSOR_H

#include <check.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct onnx_tensor {
    int ndims;
    int64_t dims[6], count;
    float *values; /* [count], owned; NULL: no such tensor */
} onnx_tensor;

/* A message of protobuf, or what is left of one. */
typedef struct onnx_bytes {
    const uint8_t *at, *end;
} onnx_bytes;

typedef struct onnx_field {
    int number;
    uint64_t varint;  /* of wire type 0 */
    onnx_bytes bytes; /* of all others */
} onnx_field;

static inline uint64_t onnx_varint(onnx_bytes *in)
{
    uint64_t value = 0;

    for (int shift = 0; in->at < in->end && shift < 64; shift += 7) {
        value |= (uint64_t)(*in->at & 0x7f) << shift;
        if ((*in->at++ & 0x80) == 0)
            break;
    }
    return value;
}

/* The next field of a message; false at its end. */
static inline bool onnx_next(onnx_bytes *in, onnx_field *out)
{
    if (in->at >= in->end)
        return false;

    const uint64_t key = onnx_varint(in);
    *out = (onnx_field){ .number = (int)(key >> 3) };
    uint64_t length = 0;
    switch (key & 7) {
    case 0:
        out->varint = onnx_varint(in);
        break;
    case 1:
        length = 8;
        break;
    case 2:
        length = onnx_varint(in);
        break;
    case 5:
        length = 4;
        break;
    default:
        ck_abort_msg("wire type %d", (int)(key & 7));
    }
    ck_assert_uint_le(length, (uint64_t)(in->end - in->at));
    out->bytes = (onnx_bytes){ in->at, in->at + length };
    in->at += length;
    return true;
}

static inline void onnx_add_dim(onnx_tensor *self, uint64_t dim)
{
    ck_assert_int_lt(self->ndims, 6);
    self->dims[self->ndims++] = (int64_t)dim;
    self->count *= (int64_t)dim;
}

/* Append little-endian floats; `room` is in floats, so far. */
static inline void onnx_add_floats(onnx_tensor *self, int64_t *have,
                                   onnx_bytes bytes)
{
    const size_t size = (size_t)(bytes.end - bytes.at);

    self->values = realloc(self->values, (size_t)*have * 4 + size + 4);
    ck_assert_ptr_nonnull(self->values);
    memcpy(self->values + *have, bytes.at, size);
    *have += (int64_t)(size / 4);
}

/* Append little-endian int64s, as floats. */
static inline void onnx_add_ints(onnx_tensor *self, int64_t *have,
                                 onnx_bytes bytes)
{
    for (; bytes.end - bytes.at >= 8; bytes.at += 8) {
        int64_t value;
        memcpy(&value, bytes.at, sizeof value);
        const float number = (float)value;
        const uint8_t *at = (const uint8_t *)&number;
        onnx_add_floats(self, have, (onnx_bytes){ at, at + sizeof number });
    }
}

static inline onnx_tensor onnx_parse_tensor(onnx_bytes in)
{
    onnx_tensor self = { .count = 1 };
    onnx_field field;
    int64_t have = 0;
    uint64_t type = 1;

    while (onnx_next(&in, &field)) {
        if (field.number == 1 && field.bytes.at == field.bytes.end)
            onnx_add_dim(&self, field.varint);
        else if (field.number == 1)
            while (field.bytes.at < field.bytes.end)
                onnx_add_dim(&self, onnx_varint(&field.bytes));
        else if (field.number == 2)
            type = field.varint;
        else if (field.number == 9 && type == 7)
            onnx_add_ints(&self, &have, field.bytes);
        else if (field.number == 4 || field.number == 9)
            onnx_add_floats(&self, &have, field.bytes);
    }
    ck_assert(type == 1 || type == 7);
    ck_assert_int_eq(self.count, have);
    return self;
}

/* A whole file, for the caller to free; empty if there is none. */
static inline onnx_bytes onnx_read_file(const char *path, uint8_t **block)
{
    FILE *file = fopen(path, "rb");
    size_t have = 0, room = 0;

    *block = NULL;
    while (file != NULL && !feof(file) && !ferror(file)) {
        *block = realloc(*block, room += 65536);
        ck_assert_ptr_nonnull(*block);
        have += fread(*block + have, 1, room - have, file);
    }
    if (file != NULL)
        fclose(file);
    return (onnx_bytes){ *block, *block == NULL ? NULL : *block + have };
}

/* The tensor in a .pb file; values NULL if there is no such file. */
static inline onnx_tensor onnx_load_tensor(const char *path)
{
    uint8_t *block;
    const onnx_bytes bytes = onnx_read_file(path, &block);
    const onnx_tensor none = { 0 };
    const onnx_tensor self = block == NULL ? none : onnx_parse_tensor(bytes);

    free(block);
    return self;
}

/* The initializer of a model that has this many axes, values NULL if none. */
static inline onnx_tensor onnx_load_initializer(const char *path, int ndims)
{
    uint8_t *block;
    onnx_bytes model = onnx_read_file(path, &block);
    onnx_field field, inner;
    onnx_tensor found = { 0 };

    while (onnx_next(&model, &field)) {
        while (field.number == 7 && onnx_next(&field.bytes, &inner)) {
            if (inner.number != 5)
                continue;
            onnx_tensor tensor = onnx_parse_tensor(inner.bytes);
            if (tensor.ndims == ndims && found.values == NULL)
                found = tensor;
            else
                free(tensor.values);
        }
    }
    free(block);
    return found;
}

#endif
