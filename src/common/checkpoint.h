/* checkpoint.h - a run on disk, whole or not at all.
 *
 *     RUN/checkpoints/step_N/part_S.h5     what owner S owns (or part 0: all)
 *     RUN/checkpoints/step_N/manifest.h5   where the run stood; written last
 *
 * A checkpoint is written into step_N.tmp, every file is on disk before the
 * manifest, and the folder gets its real name last: whatever dies on the way
 * leaves the older checkpoints as they were, and at worst a stray .tmp.
 *
 * part_S.h5   values float32 [n]; slot_0, slot_1 float32 [n]: optimizer state;
 *             blocks int64 [blocks, 3]: first parameter, count, version
 * manifest.h5 each field of coh_manifest by its name, the text of config and of
 *             choices
 *
 * hdf5.h is included by h5file.c and worker/dataset_hdf5.c only.
 * MPI: none; one rank writes one part. Collectivity is the caller's.
 */
#ifndef COH_COMMON_CHECKPOINT_H
#define COH_COMMON_CHECKPOINT_H

#include <limits.h>

#include "common/normal.h"
#include "common/optim/shard.h"
#include "common/registrar.h"

typedef struct coh_manifest {
    coh_progress progress;
    int64_t seed;
    int64_t parameters;
    int64_t fingerprint; /* of the model: coh_model_fingerprint() */
    int64_t parts;
    int64_t block_count; /* parameters of the largest block */
    int64_t rule; /* coh_rule_kind: what the optimizer state means; of a rule
                     that takes weights there is none */
    double best_score; /* of eval.select: best; negative if none yet */
    int64_t best_step;
    coh_normal normal;
    const char *choices; /* how the network is calculated: worker/nn/choice.h,
                            as text; borrowed; written only; NULL: nothing */
} coh_manifest;

/* Make FOLDER, empty; what a died run left there is removed. FOLDER is the
 * .tmp name of the functions below. Fails with COH_E_IO. */
coh_status coh_checkpoint_begin(const char *folder, coh_err *err);

/* Write one part into `folder` and push it to disk.
 * Fails with COH_E_IO: the step that failed, the file, and why. */
coh_status coh_checkpoint_write_part(const char *folder, const coh_plan *plan,
                                     int part, coh_shard *shard, coh_err *err);

/* Write plain weights values[count] as the only part, without optimizer state
 * and versions: good for evaluation. */
coh_status coh_checkpoint_write_weights(const char *folder, const float *values,
                                        int64_t count, coh_err *err);

/* Write the manifest, then rename `folder` to `name`; a `name` that exists is
 * replaced. All parts must be written. */
coh_status coh_checkpoint_commit(const char *folder, const char *name,
                                 const coh_manifest *manifest,
                                 const coh_config *config, coh_err *err);

/* The newest step_N below `checkpoints` that has a manifest.
 * COH_PENDING if there is none. */
coh_status coh_checkpoint_newest(const char *checkpoints, char out[PATH_MAX],
                                 coh_err *err);

/* Remove all but the `keep` newest whole step_N, and stray .tmp folders.
 * Failures are left alone: the next call tries again. */
void coh_checkpoint_prune(const char *checkpoints, int64_t keep);

/* Fail with COH_E_DATA (no such file, or its content), COH_E_CONFIG (a part does
 * not fit the shard: what differs). The shard is whole only on COH_OK. */
coh_status coh_checkpoint_read_manifest(const char *folder, coh_manifest *out,
                                        coh_err *err);
coh_status coh_checkpoint_read_part(const char *folder, const coh_plan *plan,
                                    int part, coh_shard *shard, coh_err *err);

/* values[count]: the weights from all parts. */
coh_status coh_checkpoint_read_weights(const char *folder,
                                       const coh_manifest *manifest,
                                       float *values, coh_err *err);

/* The text of choices, *out owned by the caller: "" if there is none. */
coh_status coh_checkpoint_read_choices(const char *folder, char **out,
                                       coh_err *err);

/* The config as it was, *out owned by the caller. */
coh_status coh_checkpoint_read_config(const char *folder, char **out,
                                      coh_err *err);

#endif
