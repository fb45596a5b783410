/* hdf5_lock.c - see hdf5_lock.h. */
#include "common/hdf5_lock.h"

#include <pthread.h>

#include "common/status.h"

static pthread_mutex_t hdf5_mutex = PTHREAD_MUTEX_INITIALIZER;

void coh_hdf5_lock(void)
{
    COH_ASSERT(pthread_mutex_lock(&hdf5_mutex) == 0);
}

void coh_hdf5_unlock(void)
{
    COH_ASSERT(pthread_mutex_unlock(&hdf5_mutex) == 0);
}
