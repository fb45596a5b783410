/* test_memory.c - vectors of floats (src/common/memory.h). No MPI. */
#include "common/memory.h"

#include "support/check_run.h"

/* Small, large, and large without being whole huge pages. */
static const int64_t counts[] = {
    0, 1, 15, 16, 1 << 19, (1 << 19) + 1, 3 * 400 * 400 * 2
};

START_TEST(a_vector_of_any_size_is_there_aligned_and_zero)
{
    float *floats = coh_floats(counts[_i]);

    ck_assert_ptr_nonnull(floats);
    ck_assert_uint_eq((uintptr_t)floats % COH_ALIGN_BYTES, 0);
    int64_t wrong = 0; /* an assertion each would take seconds */
    for (int64_t i = 0; i < counts[_i]; i++)
        wrong += floats[i] != 0;
    ck_assert_int_eq(wrong, 0);
    free(floats);
}
END_TEST

static Suite *memory_suite(void)
{
    Suite *suite = suite_create("memory");
    TCase *core = tcase_create("core");
    tcase_add_loop_test(core, a_vector_of_any_size_is_there_aligned_and_zero, 0,
                        sizeof counts / sizeof counts[0]);
    suite_add_tcase(suite, core);
    return suite;
}

CHECK_MAIN(memory_suite)
