/* test_resident.c - what the system says of our memory
 * (src/common/resident.h). */
#include "common/resident.h"

#include <stdlib.h>

#include "support/check_run.h"

enum { BYTES = 64 << 20, SLACK = 8 << 20 }; /* the system counts roughly */

/* Not memset(): memory that is freed next would never be written. */
static void touch(volatile char *memory)
{
    for (int i = 0; i < BYTES; i += 1024)
        memory[i] = 1;
}

START_TEST(memory_counts_once_it_is_touched)
{
    const int64_t before = coh_resident_bytes();
    char *memory = malloc(BYTES);

    ck_assert_ptr_nonnull(memory);
    ck_assert_int_lt(coh_resident_bytes() - before, SLACK);
    touch(memory);
    ck_assert_int_gt(coh_resident_bytes() - before, BYTES - SLACK);
    free(memory);
}
END_TEST

START_TEST(the_peak_stays_when_memory_is_given_back)
{
    const int64_t before = coh_resident_bytes();
    char *memory = malloc(BYTES);

    ck_assert_ptr_nonnull(memory);
    touch(memory);
    const int64_t peak = coh_resident_peak_bytes();
    free(memory);
    ck_assert_int_gt(peak - before, BYTES - SLACK);
    ck_assert_int_gt(coh_resident_peak_bytes(), peak - SLACK);
}
END_TEST

START_TEST(something_is_free_but_not_everything)
{
    ck_assert_int_gt(coh_resident_free_bytes(), 0);
    ck_assert_int_lt(coh_resident_free_bytes(), INT64_C(1) << 50);
}
END_TEST

static Suite *suite(void)
{
    Suite *s = suite_create("resident");
    TCase *core = tcase_create("core");

    tcase_add_test(core, memory_counts_once_it_is_touched);
    tcase_add_test(core, the_peak_stays_when_memory_is_given_back);
    tcase_add_test(core, something_is_free_but_not_everything);
    suite_add_tcase(s, core);
    return s;
}

CHECK_MAIN(suite)
