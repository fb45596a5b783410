/* nearest.h - how far a misspelt word is from the right one. */
#ifndef COH_COMMON_NEAREST_H
#define COH_COMMON_NEAREST_H

#include <stdbool.h>

/* Least number of letters to add, drop, change or swap with their neighbour
 * to make a into b (optimal string alignment); case does not count.
 * An a of three letters or more that b begins with is 1 away at most.
 * Words over 63 letters are 1000 away from everything. */
int coh_nearest_distance(const char *a, const char *b);

/* Is a word `distance` away likely to be what the writer of `word` meant? */
bool coh_nearest_is_close(const char *word, int distance);

#endif
