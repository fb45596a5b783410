/* The table of choices as text, and the path that fills it. */
#include <math.h>

#include "support/check_run.h"
#include "support/nn_nets.h"
#include "worker/nn/choice.h"
#include "worker/nn/path.h"

static const nn_case net = { { 3, 8, 8 },
                             2,
                             { CONV(.filters = 4, .kernel = { 3, 3 }), RELU,
                               CONV(.filters = 4, .kernel = { 3, 3 }), DENSE(3),
                               LOSS } };

static coh_model *model;
static coh_choice_key key;

static void setup(void)
{
    model = nn_model_new(&net);
    key = coh_choice_key_of(model, 8, true, 2, "2.6.3");
}

static void teardown(void)
{
    coh_model_destroy(&model);
}

static coh_choices *new_table(const coh_choice_key *of)
{
    coh_choices *table = NULL;

    ck_assert_int_eq(coh_choices_new(model, of, &table, NULL), COH_OK);
    return table;
}

/* As text, for the caller to free. (gcc 12, inlining it, takes the
 * result for a pointer to its local.) */
__attribute__((noinline)) static char *text_of(const coh_choices *table)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(out);
    coh_choices_write(table, out);
    fclose(out);
    return text;
}

static coh_status find(const char *text, const coh_choice_key *of,
                       coh_choices **out)
{
    *out = NULL;
    return coh_choices_find(text, model, of, out, NULL);
}

/* --- text --------------------------------------------------------------- */

START_TEST(a_table_comes_back_from_its_text)
{
    coh_choices *table = new_table(&key), *back = NULL;

    coh_choices_set(table, 0, COH_CHOSEN_WEIGHTS, COH_WAY_LAST);
    coh_choices_set(table, 2, COH_CHOSEN_FORWARD, COH_WAY_WINOGRAD);
    coh_choices_set(table, 3, COH_CHOSEN_DATA, COH_WAY_PLAIN);
    char *text = text_of(table);
    ck_assert_int_eq(find(text, &key, &back), COH_OK);
    for (int i = 0; i < 5; i++) {
        for (int pass = 0; pass < COH_CHOSEN_COUNT; pass++)
            ck_assert_int_eq(coh_choices_way(back, i, (coh_chosen)pass),
                             coh_choices_way(table, i, (coh_chosen)pass));
    }
    char *again = text_of(back);
    ck_assert_str_eq(again, text);
    free(again);
    free(text);
    coh_choices_destroy(&table);
    coh_choices_destroy(&back);
}
END_TEST

START_TEST(of_several_tables_the_one_with_the_key_is_found)
{
    coh_choice_key other = key;
    coh_choices *first = NULL, *second = NULL, *back = NULL;
    char text[4096];

    other.threads = 20;
    first = new_table(&other);
    second = new_table(&key);
    coh_choices_set(second, 2, COH_CHOSEN_DATA, COH_WAY_WINOGRAD);
    char *one = text_of(first), *two = text_of(second);
    snprintf(text, sizeof text, "%s%s", one, two);
    ck_assert_int_eq(find(text, &key, &back), COH_OK);
    ck_assert_int_eq(coh_choices_way(back, 2, COH_CHOSEN_DATA),
                     COH_WAY_WINOGRAD);
    coh_choices_destroy(&back);
    ck_assert_int_eq(find(text, &other, &back), COH_OK);
    ck_assert_int_eq(coh_choices_way(back, 2, COH_CHOSEN_DATA), COH_WAY_DIRECT);
    free(one);
    free(two);
    coh_choices_destroy(&first);
    coh_choices_destroy(&second);
    coh_choices_destroy(&back);
}
END_TEST

START_TEST(a_table_of_another_key_is_not_found)
{
    coh_choices *table = new_table(&key), *back = NULL;
    char *text = text_of(table);

    coh_choice_key others[] = { key, key, key, key, key };
    others[0].threads++;
    others[1].batch++;
    others[2].network++;
    others[3].library[0] = '3';
    others[4].processor[0] ^= 1;
    for (int i = 0; i < 5; i++) {
        ck_assert_int_eq(find(text, &others[i], &back), COH_PENDING);
        ck_assert(coh_choice_key_hash(&others[i]) != coh_choice_key_hash(&key));
    }
    free(text);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(a_text_that_is_cut_anywhere_or_garbled_is_not_found)
{
    coh_choices *table = new_table(&key), *back = NULL;
    char *text = text_of(table);

    for (size_t length = strlen(text); length-- > 0;) {
        text[length] = '\0';
        ck_assert_int_eq(find(text, &key, &back), COH_PENDING);
    }
    free(text);
    char *garbled = text_of(table);
    char *word = strstr(garbled, "direct");
    memcpy(word, "dirict", 6);
    ck_assert_int_eq(find(garbled, &key, &back), COH_PENDING);
    memcpy(word, "direct", 6);
    strstr(garbled, "layer 2")[6] = '9';
    ck_assert_int_eq(find(garbled, &key, &back), COH_PENDING);
    free(garbled);
    coh_choices_destroy(&table);
}
END_TEST

START_TEST(shape_and_training_are_part_of_the_key)
{
    const uint64_t before = key.network;

    ck_assert(coh_choice_key_of(model, 8, false, 2, "").network != before);
    model->layers[2].spec.stride[1] = 2;
    ck_assert(coh_choice_key_of(model, 8, true, 2, "").network != before);
    model->layers[2].spec.stride[1] = 1;
    ck_assert(coh_choice_key_of(model, 8, true, 2, "").network == before);
}
END_TEST

START_TEST(a_summary_counts_the_passes_there_are)
{
    coh_choices *table = new_table(&key);
    char text[128];

    coh_choices_set(table, 2, COH_CHOSEN_WEIGHTS, COH_WAY_WINOGRAD);
    coh_choices_summarize(table, model, true, text, sizeof text);
    ck_assert_str_eq(text, "7 direct, 1 winograd");
    coh_choices_summarize(NULL, model, false, text, sizeof text);
    ck_assert_str_eq(text, "3 direct");
    coh_choices_summarize(table, model, true, text, 4); /* cut, not overrun */
    ck_assert_str_eq(text, "7 d");
    coh_choices_destroy(&table);
}
END_TEST

/* --- path --------------------------------------------------------------- */

enum { N = 5 };

/* The seconds of one table, by the rules of path.h, step by step. */
static double seconds_of(const coh_path_layer layers[N],
                         const coh_path_copy copy, const coh_way ways[N][3])
{
    int format[N + 1] = { COH_PATH_PLAIN }, wants[N];
    double sum = 0;

    for (int i = 0; i < N; i++) {
        const coh_path_layer *it = &layers[i];
        const coh_path_way *way = &it->ways[COH_CHOSEN_FORWARD][ways[i][0]];
        wants[i] = format[i];
        if (!it->has_ways) {
            sum += it->follow[format[i]];
            format[i + 1] = it->flattens ? COH_PATH_PLAIN : format[i];
            sum += copy[format[i]][format[i + 1]] * it->src_bytes;
            continue;
        }
        if (way->src != COH_PATH_ANY)
            wants[i] = way->src;
        sum += way->seconds + copy[format[i]][wants[i]] * it->src_bytes;
        format[i + 1] = way->dst;
    }
    int g = COH_PATH_PLAIN;
    for (int i = N - 1; i >= 0; i--) {
        const coh_path_layer *it = &layers[i];
        if (!it->has_ways) {
            const int kept = it->flattens ? COH_PATH_PLAIN : format[i];
            if (!it->has_data)
                break;
            sum += copy[g][kept] * it->dst_bytes;
            g = kept;
            continue;
        }
        const coh_path_way *weights = &it->ways[COH_CHOSEN_WEIGHTS][ways[i][2]];
        const coh_path_way *data = &it->ways[COH_CHOSEN_DATA][ways[i][1]];
        sum += weights->seconds + copy[g][weights->dst] * it->dst_bytes;
        if (weights->src != COH_PATH_ANY && weights->src != wants[i])
            sum += copy[format[i]][weights->src] * it->src_bytes;
        if (!it->has_data)
            break;
        sum += data->seconds;
        if (data->dst != weights->dst)
            sum += copy[g][data->dst] * it->dst_bytes;
        g = data->src == COH_PATH_ANY ? format[i] : data->src;
    }
    return sum;
}

static double random_number(uint32_t stream, int64_t i)
{
    return fabs((double)nn_normal(stream, i));
}

/* conv, pool, conv, conv, dense; each conv has three ways a pass. */
static void make_layers(uint32_t stream, coh_path_layer layers[N],
                        coh_path_copy copy)
{
    int64_t n = 0;

    memset(layers, 0, N * sizeof layers[0]);
    for (int i = 0; i < N; i++) {
        coh_path_layer *it = &layers[i];
        it->has_ways = i != 1;
        it->has_data = i > 0;
        it->src_bytes = random_number(stream, n++);
        it->dst_bytes = random_number(stream, n++);
        for (int f = 0; f < COH_PATH_FORMATS; f++)
            it->follow[f] = random_number(stream, n++);
        for (int pass = 0; it->has_ways && pass < COH_CHOSEN_COUNT; pass++) {
            for (int way = 0; way < 3; way++) {
                const int src = (int)(10 * random_number(stream, n++)) % 3;
                const int dst = (int)(10 * random_number(stream, n++)) % 3;
                it->ways[pass][way] = (coh_path_way){
                    .exists = true,
                    .seconds = random_number(stream, n++),
                    .src = i == 4 && way == 0 ? COH_PATH_ANY : src,
                    .dst = i == 4 ? COH_PATH_PLAIN : dst,
                };
            }
        }
    }
    for (int f = 0; f < COH_PATH_FORMATS; f++) {
        for (int t = 0; t < COH_PATH_FORMATS; t++)
            copy[f][t] = f == t ? 0 : random_number(stream, n++);
    }
}

/* The best forward ways of all, with random backward ones, never beat it; nor
 * does a change of any one or two passes. */
START_TEST(no_change_of_two_passes_makes_the_path_shorter)
{
    coh_model *five = NULL;
    coh_path_layer layers[N];
    coh_path_copy copy;
    coh_way ways[N][3];
    double seconds = 0;
    const nn_case shape = {
        { 3, 8, 8 },
        2,
        { CONV(.filters = 4, .kernel = { 1, 1 }), MAXPOOL(.kernel = { 2, 2 }),
          CONV(.filters = 4, .kernel = { 1, 1 }),
          CONV(.filters = 4, .kernel = { 1, 1 }), DENSE(3), LOSS }
    };
    coh_choices *table = NULL;

    five = nn_model_new(&shape);
    ck_assert_int_eq(coh_choices_new(five, &key, &table, NULL), COH_OK);
    make_layers(100 + (uint32_t)_i, layers, copy);
    ck_assert_int_eq(coh_path_find(layers, N,
                                   (const double(*)[COH_PATH_FORMATS])copy,
                                   true, table, &seconds, NULL),
                     COH_OK);
    for (int i = 0; i < N; i++) {
        for (int pass = 0; pass < 3; pass++)
            ways[i][pass] = coh_choices_way(table, i, (coh_chosen)pass);
    }
    ck_assert_double_eq_tol(
        seconds_of(layers, (const double(*)[COH_PATH_FORMATS])copy, ways),
        seconds, 1e-9);
    for (int a = 0; a < 9 * N; a++) {
        for (int b = 0; b < 9 * N; b++) {
            coh_way changed[N][3];
            memcpy(changed, ways, sizeof ways);
            changed[a / 9][a / 3 % 3] = (coh_way)(a % 3);
            changed[b / 9][b / 3 % 3] = (coh_way)(b % 3);
            ck_assert(seconds_of(layers,
                                 (const double(*)[COH_PATH_FORMATS])copy,
                                 changed) >= seconds - 1e-9);
        }
    }
    coh_choices_destroy(&table);
    coh_model_destroy(&five);
}
END_TEST

START_TEST(a_way_that_is_faster_alone_loses_to_its_copies)
{
    coh_path_layer layers[N];
    coh_path_copy copy;
    coh_choices *table = new_table(&key);
    double seconds = 0;

    make_layers(1, layers, copy);
    for (int pass = 0; pass < 3; pass++) {
        layers[0].ways[pass][0] =
            (coh_path_way){ true, 2, COH_PATH_PLAIN, COH_PATH_PLAIN };
        layers[0].ways[pass][1] =
            (coh_path_way){ true, 1, COH_PATH_LAST, COH_PATH_PLAIN };
        layers[0].ways[pass][2].exists = false;
    }
    layers[0].has_ways = true;
    layers[0].src_bytes = 1;
    copy[COH_PATH_PLAIN][COH_PATH_LAST] = 1.5;
    ck_assert_int_eq(coh_path_find(layers, 1,
                                   (const double(*)[COH_PATH_FORMATS])copy,
                                   false, table, &seconds, NULL),
                     COH_OK);
    ck_assert_int_eq(coh_choices_way(table, 0, COH_CHOSEN_FORWARD), 0);
    copy[COH_PATH_PLAIN][COH_PATH_LAST] = 0.5;
    ck_assert_int_eq(coh_path_find(layers, 1,
                                   (const double(*)[COH_PATH_FORMATS])copy,
                                   false, table, &seconds, NULL),
                     COH_OK);
    ck_assert_int_eq(coh_choices_way(table, 0, COH_CHOSEN_FORWARD), 1);
    ck_assert_double_eq_tol(seconds, 1.5, 1e-12);
    coh_choices_destroy(&table);
}
END_TEST

static Suite *nn_choice_suite(void)
{
    Suite *suite = suite_create("nn_choice");
    TCase *text = tcase_create("text"), *path = tcase_create("path");

    tcase_add_checked_fixture(text, setup, teardown);
    tcase_add_test(text, a_table_comes_back_from_its_text);
    tcase_add_test(text, of_several_tables_the_one_with_the_key_is_found);
    tcase_add_test(text, a_table_of_another_key_is_not_found);
    tcase_add_test(text, a_text_that_is_cut_anywhere_or_garbled_is_not_found);
    tcase_add_test(text, shape_and_training_are_part_of_the_key);
    tcase_add_test(text, a_summary_counts_the_passes_there_are);
    suite_add_tcase(suite, text);
    tcase_add_checked_fixture(path, setup, teardown);
    tcase_add_loop_test(path, no_change_of_two_passes_makes_the_path_shorter, 0,
                        20);
    tcase_add_test(path, a_way_that_is_faster_alone_loses_to_its_copies);
    suite_add_tcase(suite, path);
    return suite;
}

CHECK_MAIN(nn_choice_suite)
