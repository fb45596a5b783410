/* lzf.c - see lzf.h.
 *
 * A stream of pieces, each led by a byte. Below 32: that many plus one bytes
 * follow as they are. Else a copy of earlier output: the top 3 bits are its
 * length less 2 (7: one more byte is added), the low 5 bits and the next byte
 * its distance less 1.
 */
#include "worker/lzf.h"

#include <string.h>

size_t coh_lzf_unpack(const unsigned char *in, size_t in_size,
                      unsigned char *out, size_t out_size)
{
    size_t i = 0, o = 0;

    while (i < in_size) {
        const unsigned lead = in[i++];
        if (lead < 32) {
            const size_t length = (size_t)lead + 1;
            if (length > in_size - i || length > out_size - o)
                return 0;
            memcpy(out + o, in + i, length);
            i += length;
            o += length;
            continue;
        }
        size_t length = (lead >> 5) + 2;
        if (length == 9 && i < in_size)
            length += in[i++];
        if (i == in_size)
            return 0;
        const size_t distance = ((size_t)(lead & 31) << 8 | in[i++]) + 1;
        if (distance > o || length > out_size - o)
            return 0;
        for (size_t k = 0; k < length; k++, o++) /* may overlap itself */
            out[o] = out[o - distance];
    }
    return o;
}
