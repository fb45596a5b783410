/* clock.c - see clock.h. */
#include "common/clock.h"

#include <sched.h>
#include <stdio.h>
#include <time.h>

double coh_clock_now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void coh_clock_rest(double seconds)
{
    if (seconds <= 0) {
        sched_yield();
        return;
    }
    const time_t whole = (time_t)seconds;
    const struct timespec pause = {
        .tv_sec = whole, .tv_nsec = (long)(1e9 * (seconds - (double)whole))
    };
    nanosleep(&pause, NULL);
}

void coh_clock_text(char *out, size_t size)
{
    struct timespec now;
    struct tm local;
    char second[32];

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    strftime(second, sizeof second, "%Y-%m-%d %H:%M:%S", &local);
    snprintf(out, size, "%s.%03ld", second, now.tv_nsec / 1000000);
}
