/* resident.c - see resident.h. */
#include "common/resident.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A line of /proc/self/status: "VmHWM:     5124 kB". */
static int64_t read_bytes(const char *key)
{
    const size_t length = strlen(key);
    FILE *file = fopen("/proc/self/status", "r");
    int64_t kib = 0;
    char line[256];

    if (file == NULL)
        return 0;
    while (fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, length) == 0 &&
            sscanf(line + length, ": %" SCNd64, &kib) == 1)
            break;
    }
    fclose(file);
    return kib * 1024;
}

int64_t coh_resident_bytes(void)
{
    return read_bytes("VmRSS");
}

/* getrusage() would count what the launcher was before it became us. */
int64_t coh_resident_peak_bytes(void)
{
    return read_bytes("VmHWM");
}
