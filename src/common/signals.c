/* signals.c - see signals.h. */
#include "common/signals.h"

#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "common/status.h"

void coh_signals_init(coh_signals *self)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &set, NULL);
    (void)signal(SIGUSR1, SIG_IGN);
    self->fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    COH_ASSERT(self->fd >= 0);
    self->received = 0;
}

void coh_signals_fini(coh_signals *self)
{
    (void)close(self->fd);
    self->fd = -1;
}

int coh_signals_poll(coh_signals *self)
{
    struct signalfd_siginfo info;

    if (self->received == 0 && read(self->fd, &info, sizeof info) > 0)
        self->received = (int)info.ssi_signo;
    return self->received;
}
