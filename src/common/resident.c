/* resident.c - see resident.h. */
#include "common/resident.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A line of a file in /proc: "VmHWM:     5124 kB"; -1: there is none. */
static int64_t read_bytes(const char *path, const char *key)
{
    const size_t length = strlen(key);
    FILE *file = fopen(path, "r");
    int64_t kib = -1;
    char line[256];

    if (file == NULL)
        return -1;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) == 0 &&
            sscanf(line + length, ": %" SCNd64, &kib) == 1)
            break;
    }
    fclose(file);
    return kib >= 0 ? kib * 1024 : -1;
}

static int64_t of_process(const char *key)
{
    const int64_t bytes = read_bytes("/proc/self/status", key);
    return bytes > 0 ? bytes : 0;
}

int64_t coh_resident_bytes(void)
{
    return of_process("VmRSS");
}

/* getrusage() would count what the launcher was before it became us. */
int64_t coh_resident_peak_bytes(void)
{
    return of_process("VmHWM");
}

int64_t coh_resident_free_bytes(void)
{
    const int64_t memory = read_bytes("/proc/meminfo", "MemAvailable");
    const int64_t swap = read_bytes("/proc/meminfo", "SwapFree");

    return memory < 0 ? INT64_MAX : memory + (swap > 0 ? swap : 0);
}
