/* statistics.c - see statistics.h. */
#include "common/statistics.h"

#include <stddef.h>

int64_t coh_statistics_run(const coh_statistics *self, int64_t first,
                           int64_t end, const coh_statistic **statistic)
{
    *statistic = NULL;
    for (int i = 0; i < self->count; i++) {
        const coh_statistic *it = &self->items[i];
        const int64_t behind = it->first + it->count;
        if (first >= behind)
            continue;
        const int64_t stop = first < it->first ? it->first : behind;
        if (first >= it->first)
            *statistic = it;
        return (stop < end ? stop : end) - first;
    }
    return end - first;
}
