/* machine.c - see machine.h. */
#include "worker/nn/machine.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* x86 says "model name"; Arm numbers its parts, other systems have "cpu". */
static const char *const keys[] = { "model name", "CPU part", "cpu" };

/* The value if `line` is "KEY <blanks>: VALUE", else NULL. */
static const char *value_of(const char *line, const char *key)
{
    const size_t length = strlen(key);

    if (strncmp(line, key, length) != 0)
        return NULL;
    line += length;
    line += strspn(line, " \t");
    return *line == ':' ? line + 1 + strspn(line + 1, " \t") : NULL;
}

static void find(const char *key, FILE *file, char *out, size_t size)
{
    char line[512];

    rewind(file);
    while (out[0] == '\0' && fgets(line, sizeof line, file) != NULL) {
        const char *value = value_of(line, key);
        if (value != NULL)
            snprintf(out, size, "%s", value);
    }
}

void coh_machine_name(char *out, size_t size)
{
    FILE *file = fopen("/proc/cpuinfo", "r");
    struct utsname system;

    out[0] = '\0';
    for (size_t k = 0; file != NULL && k < sizeof keys / sizeof keys[0]; k++) {
        if (out[0] == '\0')
            find(keys[k], file, out, size);
    }
    if (file != NULL)
        fclose(file);
    if (out[0] == '\0')
        snprintf(out, size, "%s",
                 uname(&system) == 0 ? system.machine : "unknown");
    for (char *c = out; *c != '\0'; c++)
        *c = *c < ' ' || *c == '"' || *c == '\\' ? '\0' : *c;
}
