/* narrow_tell.h - what 16 bits did to the values of a run, told at its end.
 *
 * Threads: one caller.   MPI: none.
 */
#ifndef COH_COMMON_NARROW_TELL_H
#define COH_COMMON_NARROW_TELL_H

#include "common/json.h"
#include "common/narrow.h"

/* Of all servers, or all ranks. */
typedef struct coh_narrow_sums {
    coh_narrowed pushed, answered; /* gradients; weights */
} coh_narrow_sums;

/* The key "narrowed": an object with "push", "reply", or both, whichever is
 * narrow. Nothing if neither is. */
void coh_narrow_write(const coh_config *config, const coh_narrow_sums *sums,
                      coh_json *json);

enum { COH_NARROW_TEXT = 512 };

/* A warning: values became infinite, or one in a thousand became 0. False if
 * there is none. */
bool coh_narrow_warn(const coh_config *config, const coh_narrow_sums *sums,
                     char out[COH_NARROW_TEXT]);

#endif
