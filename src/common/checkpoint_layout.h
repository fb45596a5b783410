/* checkpoint_layout.h - what the writing and the reading of a checkpoint share.
 * Private to checkpoint*.c.
 */
#ifndef COH_COMMON_CHECKPOINT_LAYOUT_H
#define COH_COMMON_CHECKPOINT_LAYOUT_H

#include "common/checkpoint.h"
#include "common/files.h"
#include "common/h5file.h"

enum { COH_BLOCK_COLUMNS = 3 }; /* first, count, version */

/* Every scalar of the manifest: its type letter and field. */
#define COH_MANIFEST_FIELDS(X) \
    X(I64, progress.steps)     \
    X(I64, progress.samples)   \
    X(I64, progress.epoch)     \
    X(I64, progress.position)  \
    X(I64, seed)               \
    X(I64, parameters)         \
    X(I64, fingerprint)        \
    X(I64, parts)              \
    X(I64, block_count)        \
    X(I64, rule)               \
    X(F64, best_score)         \
    X(I64, best_step)          \
    X(I64, normal.channels)

/* The file of one part, made or opened. */
static inline coh_status coh_part_file(const char *folder, int part,
                                       bool is_new, coh_h5file **out,
                                       coh_err *err)
{
    char path[PATH_MAX];
    const coh_status status =
        coh_path(path, err, "%s/part_%d.h5", folder, part);

    if (status != COH_OK)
        return status;
    return is_new ? coh_h5_create(path, out, err) : coh_h5_open(path, out, err);
}

static inline coh_status coh_no_memory(coh_err *err)
{
    return coh_fail(err, COH_E_NOMEM, "no memory for a checkpoint");
}

/* A worker that owns everything: part 0, server -1. */
static inline int coh_part_server(const coh_plan *plan, int part)
{
    return plan->owners == 0 ? -1 : part;
}

#endif
