/* smpi_clock.c - clock.h in simulated time; instead of clock.c. */
#include "common/clock.h"

#include <math.h>
#include <simgrid/actor.h>
#include <simgrid/engine.h>
#include <stdio.h>
#include <time.h>

/* The simulated clock stands still while a rank runs: one that only gave its
 * core away would look again at the same moment, for ever. */
static const double least_s = 10e-6;

double coh_clock_now_s(void)
{
    return simgrid_get_clock();
}

void coh_clock_rest(double seconds)
{
    sg_actor_sleep_for(fmax(seconds, least_s));
}

/* The simulation begins with the year 1970. */
void coh_clock_text(char *out, size_t size)
{
    const double now_s = simgrid_get_clock();
    const time_t whole = (time_t)now_s;
    struct tm date;
    char second[32];

    gmtime_r(&whole, &date);
    strftime(second, sizeof second, "%Y-%m-%d %H:%M:%S", &date);
    snprintf(out, size, "%s.%03d", second,
             (int)(1e3 * (now_s - (double)whole)));
}
