/* status.h - result codes, and the message that travels with a failure.
 *
 * A function that can fail for a reason outside the program (a file, a config
 * value, memory, a peer) returns coh_status and takes a coh_err last:
 *
 *     == 0   done
 *     >  0   not done, and that is normal; the caller decides what to do
 *     <  0   failed; err->text says what, where and how to mend it
 *
 * The message is written where the failure is found, given more context on the
 * way up (coh_err_context), and printed once, by main(). Library code never
 * prints an error and returns it too.
 *
 * A broken promise inside the program is not a status: use COH_ASSERT.
 */
#ifndef COH_COMMON_STATUS_H
#define COH_COMMON_STATUS_H

/* One row a code: name, value, the process's exit code, a text. */
#define COH_STATUS_MAP(X)                                           \
    X(OK, 0, 0, "ok")                                               \
    X(PENDING, 1, 0, "not finished yet")                            \
    X(STOPPED, 2, 5, "stopped by a signal or the time limit")       \
    X(E_FAILED, -1, 1, "failed")                                    \
    X(E_NOMEM, -2, 1, "out of memory")                              \
    X(E_IO, -3, 1, "cannot write")                                  \
    X(E_CONFIG, -4, 2, "bad usage or configuration")                \
    X(E_DATA, -5, 3, "bad data")                                    \
    X(E_LAUNCH, -6, 4, "the launch does not fit the configuration") \
    X(E_PEER, -7, 6, "a peer was lost")                             \
    X(E_DIVERGED, -8, 7, "training diverged: the loss is not finite")

typedef enum coh_status {
#define X(name, value, exit_code, text) COH_##name = (value),
    COH_STATUS_MAP(X)
#undef X
} coh_status;

/* Lives on the caller's stack; COH_ERR_INIT it, pass its address down. */
typedef struct coh_err {
    coh_status status; /* of the failure described by text */
    char text[4096];   /* lines, no newline at the end; "" if none */
} coh_err;

#define COH_ERR_INIT ((coh_err){ COH_OK, "" })

/* Fill *err (which may be NULL) and return `status`, so that a failing
 * function can say what happened and leave in one statement. */
coh_status coh_fail(coh_err *err, coh_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Add a line to *err, for a check that reports every fault it finds. What does
 * not fit is cut, and the last line then says so. Returns `status`. */
coh_status coh_err_add(coh_err *err, coh_status status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Put "context: " before the message already in *err. No-op on NULL. */
void coh_err_context(coh_err *err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Never NULL, also for a value that is no status. Static text. */
const char *coh_status_name(coh_status status);

/* The exit code (docs/numbers.md) that a process ends with. */
int coh_status_exit_code(coh_status status);

/* Print what is wrong with rank, file and line, and end the job (MPI_Abort
 * where MPI is up), so that no other rank waits for a dead one. */
_Noreturn void coh_panic(const char *file, int line, const char *what);

/* For promises between our own functions, in every build: a wrong answer
 * after a day on 512 ranks costs more than a compare. */
#define COH_ASSERT(cond) \
    ((cond) ? (void)0 : coh_panic(__FILE__, __LINE__, #cond))

#endif
