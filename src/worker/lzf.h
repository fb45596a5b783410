/* lzf.h - unpacking of LZF data (Marc Lehmann's LibLZF format), the fast
 * compression that h5py offers and the HDF5 library does not know.
 */
#ifndef COH_WORKER_LZF_H
#define COH_WORKER_LZF_H

#include <stddef.h>

/* Unpack in[in_size] into out[out_size]. Returns the bytes written, or 0 if
 * the data is damaged or does not fit. Never reads or writes outside. */
size_t coh_lzf_unpack(const unsigned char *in, size_t in_size,
                      unsigned char *out, size_t out_size);

#endif
