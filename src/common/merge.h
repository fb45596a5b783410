/* merge.h - the reports of one step by several groups, as one report.
 *
 * With policy sync all groups take a step together; what is told of it is told
 * once. Zeros are a merge without steps. Pure.
 *
 *     { expect | add }*
 */
#ifndef COH_COMMON_MERGE_H
#define COH_COMMON_MERGE_H

#include <stdbool.h>

#include "common/wire.h"

/* Steps under way at once, at most: more than groups hold grants ahead. */
enum { COH_MERGE_STEPS = 16 };

typedef struct coh_merge {
    struct {
        int64_t groups, reported; /* equal: free */
        coh_report sum;
    } steps[COH_MERGE_STEPS];
} coh_merge;

/* `groups` groups take this step. May be said again for each of them. */
void coh_merge_expect(coh_merge *self, int64_t step, int64_t groups);

/* Add a report of a step that is expected. True if it was the last: *out then
 * holds the sums of samples, losses and weights, and the means over the groups
 * of gradient_norm and times; *groups how many they were. */
bool coh_merge_add(coh_merge *self, const coh_report *report, coh_report *out,
                   int64_t *groups);

#endif
