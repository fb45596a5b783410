/* smpi_signals.c - signals.h where all ranks are one process: no rank hears of a
 * signal, it ends the simulation; instead of signals.c. */
#include "common/signals.h"

void coh_signals_init(coh_signals *self)
{
    *self = (coh_signals){ .fd = -1 };
}

void coh_signals_fini(coh_signals *self)
{
    self->received = 0;
}

int coh_signals_poll(coh_signals *self)
{
    return self->received;
}
