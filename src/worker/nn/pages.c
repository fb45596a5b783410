/* pages.c - see pages.h. */
#include "worker/nn/pages.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/resident.h"

enum { LINE = 64, HUGE_PAGE = 2 << 20 };

static size_t page_of(size_t bytes)
{
    return bytes < HUGE_PAGE ? LINE : HUGE_PAGE;
}

size_t coh_pages_bytes(size_t bytes)
{
    const size_t page = page_of(bytes), count = bytes / page + 1;

    return count > (size_t)-1 / page ? 0 : count * page;
}

/* Is so much free on this machine, just now? */
static bool is_free(size_t bytes)
{
    return bytes < HUGE_PAGE || bytes <= (size_t)coh_resident_free_bytes();
}

void *coh_pages_new(size_t bytes)
{
    const size_t page = page_of(bytes), size = coh_pages_bytes(bytes);
    char *memory = size > 0 && is_free(size) ? aligned_alloc(page, size) : NULL;

    if (memory == NULL)
        return NULL;
#ifdef MADV_HUGEPAGE
    if (page == HUGE_PAGE)
        (void)madvise(memory, size, MADV_HUGEPAGE); /* or small ones */
#endif
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < size / page; i++)
        memset(memory + i * page, 0, page);
    return memory;
}

bool coh_arena_reserve(coh_arena *self, size_t bytes)
{
    if (bytes <= self->bytes)
        return true;
    coh_arena_fini(self);
    self->memory = coh_pages_new(bytes);
    self->bytes = self->memory != NULL ? bytes : 0;
    return self->memory != NULL;
}

void coh_arena_fini(coh_arena *self)
{
    free(self->memory);
    *self = (coh_arena){ 0 };
}
