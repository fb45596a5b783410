/* hdf5_lock.h - one lock round all HDF5 calls of a process.
 *
 * HDF5 keeps its state in the process, and most builds of it are not
 * thread-safe: a data set that is read ahead by a thread and a checkpoint that
 * is written by another would meet in it. Whoever calls HDF5 holds this lock.
 * Nobody waits for anything else while holding it.
 *
 * The mutex is the only process-wide object of the program, as what it guards
 * is process-wide too. Not recursive. Any thread. MPI: none.
 */
#ifndef COH_COMMON_HDF5_LOCK_H
#define COH_COMMON_HDF5_LOCK_H

void coh_hdf5_lock(void);
void coh_hdf5_unlock(void);

#endif
