/* clock.h - the only source of time, so that a simulator can replace it. */
#ifndef COH_COMMON_CLOCK_H
#define COH_COMMON_CLOCK_H

#include <stddef.h>

/* Seconds since some fixed moment; never goes back. */
double coh_clock_now_s(void);

/* Let others run for about `seconds`; 0 only gives the core away. */
void coh_clock_rest(double seconds);

/* The local wall time as "2026-11-30 22:42:22.123". */
void coh_clock_text(char *out, size_t size);

#endif
