/* utf8.c - see utf8.h. */
#include "common/utf8.h"

#include <string.h>

/* Bytes that follow a lead byte; -1 for a byte that leads nothing. */
static int tail_of(unsigned char lead)
{
    if (lead < 0x80)
        return 0;
    if (lead < 0xC2)
        return -1;
    if (lead < 0xE0)
        return 1;
    if (lead < 0xF0)
        return 2;
    return lead < 0xF5 ? 3 : -1;
}

int coh_utf8_decode(const char *text, size_t length, uint32_t *out)
{
    static const unsigned char lead_bits[4] = { 0x7F, 0x1F, 0x0F, 0x07 };
    static const uint32_t least[4] = { 0, 0x80, 0x800, 0x10000 };

    if (length == 0)
        return 0;
    const int tail = tail_of((unsigned char)text[0]);
    if (tail < 0 || length <= (size_t)tail)
        return 0;

    uint32_t point = (unsigned char)text[0] & lead_bits[tail];
    for (int i = 1; i <= tail; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80)
            return 0;
        point = point << 6 | ((unsigned char)text[i] & 0x3F);
    }
    if (point < least[tail] || point > 0x10FFFF ||
        (point >= 0xD800 && point <= 0xDFFF))
        return 0;
    *out = point;
    return tail + 1;
}

bool coh_utf8_is_printable(uint32_t point)
{
    if (point < 0xA0)
        return point >= ' ' && point < 0x7F;
    return point != 0x2028 && point != 0x2029 && point != 0xFEFF &&
           point != 0xFFFE && point != 0xFFFF;
}

coh_clip coh_utf8_clip(const char *text)
{
    enum { KEPT = sizeof(coh_clip) - 4 };
    coh_clip clip;
    size_t used = 0, left = strlen(text);

    while (left > 0) {
        uint32_t point = 0;
        const int length = coh_utf8_decode(text, left, &point);
        const size_t step = length > 0 ? (size_t)length : 1;
        const bool is_good = length > 0 && coh_utf8_is_printable(point);

        if (used + (is_good ? step : 1) > KEPT)
            break;
        if (is_good)
            memcpy(clip.text + used, text, step);
        else
            clip.text[used] = length > 0 ? ' ' : '?';
        used += is_good ? step : 1;
        text += step;
        left -= step;
    }
    strcpy(clip.text + used, left > 0 ? "..." : "");
    return clip;
}
