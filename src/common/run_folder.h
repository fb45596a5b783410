/* run_folder.h - OUT/NAME, where a run puts everything.
 *
 *     config.yaml     the resolved configuration
 *     metrics.jsonl   a line a step, evaluation and checkpoint
 *     summary.json    the outcome, written last
 *     log/            a file a rank that had something to say
 *     checkpoints/    step_N, the newest few
 *     best/           the best weights seen, with eval.select: best
 *
 * A run claims its folder by an atomic mkdir and never overwrites another's.
 * It goes on in a folder that exists only from that folder's newest checkpoint.
 *
 *     choose -> (check what was chosen) -> claim
 *
 * Not collective: one rank chooses and claims, and tells the others.
 */
#ifndef COH_COMMON_RUN_FOLDER_H
#define COH_COMMON_RUN_FOLDER_H

#include <limits.h>

#include "common/config.h"

typedef struct coh_run_folder {
    char path[PATH_MAX];
    char checkpoint[PATH_MAX]; /* to resume from; "" for a new run */
    bool may_exist;            /* goes on in the folder, if it is there */
} coh_run_folder;

/* Find the folder and what to resume from; nothing is written.
 * resume: NULL for a new run; "auto" to go on from the run's own newest
 * checkpoint, or begin if there is none; else a run folder or checkpoint.
 * Fails with COH_E_CONFIG: nothing to resume there. */
coh_status coh_run_folder_choose(const coh_config *config, const char *resume,
                                 coh_run_folder *out, coh_err *err);

/* Make the folder with what belongs into it, config.yaml among it.
 * Fails with COH_E_CONFIG (it is taken: what to do) or COH_E_IO. */
coh_status coh_run_folder_claim(const coh_config *config,
                                const coh_run_folder *self, coh_err *err);

/* True if the summary in `folder` says that the run was done. */
bool coh_run_folder_is_done(const char *folder);

/* The checkpoint that `given` is, or the newest of the run folder that it is.
 * COH_PENDING if there is none. */
coh_status coh_run_folder_find(const char *given, char out[PATH_MAX],
                               coh_err *err);

#endif
