/* config_key.c - finding a key, or the one that was meant. */
#include "common/config_option.h"

#include <string.h>

#include "common/nearest.h"

const coh_option *coh_option_find(const char *key)
{
    for (int i = 0; i < COH_OPTION_COUNT; i++)
        if (strcmp(coh_options[i].key, key) == 0)
            return &coh_options[i];
    return NULL;
}

const char *coh_option_word(const char *key)
{
    const char *dot = strrchr(key, '.');
    return dot == NULL ? key : dot + 1;
}

/* How far the unknown key is from a known one. The right word in the wrong
 * room is nearest; then a word that holds the right one (batch_size). */
static int distance_to(const char *unknown, const char *known)
{
    const char *wrong = coh_option_word(unknown);
    const char *right = coh_option_word(known);
    int word = coh_nearest_distance(wrong, right);
    const int whole = coh_nearest_distance(unknown, known);

    if (word > 2 && strlen(right) >= 4 && strstr(wrong, right) != NULL)
        word = 2;
    else if (word > 0)
        word++; /* misspelt and in another room */
    return word < whole ? word : whole;
}

/* Add ", word" for every key of the room, or every key without room. */
static void list_keys(const char *room, size_t length, char *out, size_t size)
{
    const char *comma = "";

    for (int i = 0; i < COH_OPTION_COUNT; i++) {
        const char *key = coh_options[i].key, *word = coh_option_word(key);
        const bool is_here =
            length == 0 ? word == key
                        : strncmp(key, room, length) == 0 && key[length] == '.';
        const size_t used = strlen(out);
        if (!is_here)
            continue;
        snprintf(out + used, size - used, "%s%s", comma, word);
        comma = ", ";
    }
}

void coh_option_advise(const char *key, char out[COH_ADVICE_MAX])
{
    const char *dot = strchr(key, '.');
    size_t room = dot == NULL ? 0 : (size_t)(dot - key);
    int best = 1000, nearest = 0;

    for (int i = 0; i < COH_OPTION_COUNT; i++) {
        const int distance = distance_to(key, coh_options[i].key);
        if (distance < best) {
            best = distance;
            nearest = i;
        }
    }
    if (coh_nearest_is_close(coh_option_word(key), best)) {
        snprintf(out, COH_ADVICE_MAX, "did you mean %s?",
                 coh_options[nearest].key);
        return;
    }

    char name[COH_NAME_MAX];
    snprintf(name, sizeof name, "%.*s", (int)room, key);
    const coh_option *row = coh_option_find(name);
    if (row == NULL || row->type != COH_OPTION_ROOM)
        room = 0;
    snprintf(out, COH_ADVICE_MAX, "%s has ", room == 0 ? "the file" : name);
    list_keys(key, room, out, COH_ADVICE_MAX);
}
