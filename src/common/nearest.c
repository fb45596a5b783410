/* nearest.c - see nearest.h. */
#include "common/nearest.h"

#include <string.h>

enum { WORD_MAX = 63, FAR = 1000 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

static bool is_begin_of(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && lower(a[n]) == lower(b[n]))
        n++;
    return a[n] == '\0' && n >= 3;
}

int coh_nearest_distance(const char *a, const char *b)
{
    const size_t na = strlen(a), nb = strlen(b);
    if (na > WORD_MAX || nb > WORD_MAX)
        return FAR;

    int d[WORD_MAX + 1][WORD_MAX + 1]; /* [i][j]: a's first i, b's first j */
    for (size_t i = 0; i <= na; i++)
        d[i][0] = (int)i;
    for (size_t j = 0; j <= nb; j++)
        d[0][j] = (int)j;

    for (size_t i = 1; i <= na; i++)
        for (size_t j = 1; j <= nb; j++) {
            const char x = lower(a[i - 1]), y = lower(b[j - 1]);
            int best = d[i - 1][j - 1] + (x != y);
            best = smaller(best, 1 + smaller(d[i - 1][j], d[i][j - 1]));
            if (i > 1 && j > 1 && x == lower(b[j - 2]) && y == lower(a[i - 2]))
                best = smaller(best, d[i - 2][j - 2] + 1);
            d[i][j] = best;
        }
    return is_begin_of(a, b) ? smaller(d[na][nb], 1) : d[na][nb];
}

bool coh_nearest_is_close(const char *word, int distance)
{
    return distance <= 1 + (int)strlen(word) / 4;
}
