/* threads.c - see threads.h. */
#include "cli/threads.h"

#include <sched.h>
#include <unistd.h>

int coh_threads_allowed(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return 1; /* more cores than the set holds: be careful */
    return CPU_COUNT(&set);
}

int coh_threads_for(int64_t wanted, int node_ranks)
{
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const int allowed = coh_threads_allowed();

    if (wanted > 0)
        return (int)wanted;
    if ((long)allowed * node_ranks <= online)
        return allowed; /* the launcher shared the cores out */
    return allowed / node_ranks > 1 ? allowed / node_ranks : 1;
}
