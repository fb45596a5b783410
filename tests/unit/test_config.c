/* test_config.c - what config.h promises of loading: keys, rooms, --set, and
 * what several keys decide together. */
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/config_text.h"

static coh_err err;

START_TEST(a_small_file_gets_the_defaults)
{
    coh_config *config = config_of(DATA MODEL);

    ck_assert_int_eq(config->groups, 1);
    ck_assert_int_eq(config->group_size, 0);
    ck_assert_int_eq(config->servers, 0);
    ck_assert_int_eq(config->policy, COH_POLICY_ASYNC);
    ck_assert_str_eq(config->run.name, "job"); /* of dir/job.yaml */
    ck_assert_str_eq(config->run.out, "runs");
    ck_assert_str_eq(config->path, "dir/job.yaml");
    ck_assert_int_eq(config->data.kind, COH_DATA_SYNTHETIC);
    ck_assert(config->optimizer.rate == 0.01);
    ck_assert_int_eq(config->exchange.block, 1 << 20);
    coh_config_destroy(&config);
    ck_assert_ptr_null(config);
    coh_config_destroy(&config); /* twice is once */
}
END_TEST

START_TEST(the_file_sets_fields_of_every_room)
{
    coh_config *config = config_of(
        "groups: 4\nservers: 2\ngroup_size: 8\n"
        "run: {name: hep, seed: 7}\ntrain: {batch: 64, steps: 10}\n"
        "optimizer: {rule: adam, schedule: cosine}\n"
        "data: {kind: synthetic, normalize: standard, weights_for: loss}\n"
        "exchange: {timeout: 5}\neval: {select: best}\n"
        "checkpoint: {keep: 3}\ncompute: {threads: 2}\n" MODEL);

    ck_assert_int_eq(config->groups, 4);
    ck_assert_int_eq(config->group_size, 8);
    ck_assert_str_eq(config->run.name, "hep");
    ck_assert_int_eq(config->run.seed, 7);
    ck_assert_int_eq(config->train.batch, 64);
    ck_assert_int_eq(config->optimizer.rule, COH_RULE_ADAM);
    ck_assert_int_eq(config->optimizer.schedule, COH_SCHEDULE_COSINE);
    ck_assert_int_eq(config->data.normalize, COH_NORMALIZE_STANDARD);
    ck_assert_int_eq(config->data.weights_for, COH_WEIGHTS_FOR_LOSS);
    ck_assert_int_eq(config->eval.select, COH_SELECT_BEST);
    ck_assert_int_eq(config->checkpoint.keep, 3);
    ck_assert_int_eq(config->compute.threads, 2);
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    const char *text, *message;
} bad_keys[] = {
    { DATA MODEL "server: 1\n",
      "job.yaml:3:1: server: unknown key; did you mean servers?" },
    { DATA MODEL "optimizer:\n  rat: 0.1\n",
      "job.yaml:4:3: optimizer.rat: unknown key; did you mean "
      "optimizer.rate?" },
    { DATA MODEL "batch: 3\n",
      "job.yaml:3:1: batch: unknown key; did you mean train.batch?" },
    { DATA MODEL "train: {rate: 3}\n",
      "train.rate: unknown key; did you mean optimizer.rate?" },
    { DATA MODEL "learning_rate: 3\n",
      "learning_rate: unknown key; did you mean optimizer.rate?" },
    { DATA MODEL "batch_size: 3\n",
      "batch_size: unknown key; did you mean train.batch?" },
    { DATA MODEL "optimiser: {}\n",
      "optimiser: unknown key; did you mean optimizer?" },
    { DATA MODEL "train: {zebra: 3}\n",
      "train.zebra: unknown key; train has batch, group_batch, accumulate, "
      "epochs, steps" },
    { DATA MODEL "zebra: 3\n",
      "zebra: unknown key; the file has groups, group_size, servers, policy, "
      "policy_bound, run" },
    { DATA MODEL "\"a\\nb\": 3\n", "job.yaml:3:1: a b: unknown key" },
    { DATA MODEL "train.batch: 3\n",
      "job.yaml:3:1: train.batch: dotted keys are for --set; write 'train:' "
      "and, indented below it, 'batch:'" },
    { DATA MODEL "train: {train.batch: 3}\n", "dotted keys are for --set" },
    { DATA MODEL "train: 3\n",
      "job.yaml:3:8: train: a value stands where lines of key: value are "
      "wanted; train has batch" },
    { DATA MODEL "train: [batch]\n", "train: a list stands where lines of" },
    { DATA MODEL "servers: 1\nservers: 2\n",
      "job.yaml:4:1: servers: given twice, first in line 3; remove one" },
    { "just words\n",
      "job.yaml:1:1: a value stands where lines of key: value are wanted" },
    { "- a\n", "job.yaml:1:1: a list stands where lines of key: value" },
    { "---\n", "a value stands where lines of key: value are wanted" },
    { "", "job.yaml:1:1: nothing but blanks and comments stands here" },
    { "a: [\n", "left open" },
};

START_TEST(a_bad_key_is_refused_with_the_one_that_was_meant)
{
    refuse_sets(bad_keys[_i].text, NULL, 0, &err);
    must_say(&err, bad_keys[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

START_TEST(all_faults_are_reported_at_once)
{
    const char *const sets[] = { "train.steps=x", "foo" };

    refuse_sets("groups: 2\ngroups: 2\nbatch: 1\ntrain: {batch: 0}\n"
                "model: {input: [1], layers: [rellu]}\n",
                sets, 2, &err);
    must_say(&err, "groups: given twice");
    must_say(&err, "batch: unknown key");
    must_say(&err, "train.batch: '0'");
    must_say(&err, "model.input: 1 given");
    must_say(&err, "did you mean relu?");
    must_say(&err, "--set train.steps=x: 'x' is not an integer");
    must_say(&err, "--set foo: ");
    must_say(&err, "servers: 0, but 2 groups");
    must_say(&err, "data.train: missing");
    ck_assert_int_eq(lines_of(&err), 9);
}
END_TEST

START_TEST(a_thousand_faults_end_with_a_word_that_more_were_cut)
{
    static char text[64 * 1000];
    size_t used = 0;
    for (int i = 0; i < 900; i++)
        used += (size_t)sprintf(text + used, "some_quite_long_key_%d: 1\n", i);

    refuse_sets(text, NULL, 0, &err);
    must_say(&err, "job.yaml:1:1: some_quite_long_key_0: unknown key");
    must_say(&err, "(more was cut)");
}
END_TEST

START_TEST(the_message_may_be_unwanted)
{
    coh_config *config = NULL;

    ck_assert_int_eq(coh_config_parse("f", "a: b\n", 5, NULL, 0, &config, NULL),
                     COH_E_CONFIG);
    ck_assert_ptr_null(config);
}
END_TEST

/* --- Sets --------------------------------------------------------------- */

START_TEST(a_set_overrides_the_file_and_the_last_of_two_counts)
{
    const char *const sets[] = {
        "train.batch=5",
        "train.batch=6",
        "run.out= a: b #c ",
        "data.train=*.h5",
        "data.test=[a, 'b c']",
        "groups=",
        "optimizer={rate: 0.5, momentum: 0}",
        "model.input=[3,2,2]",
        "run.name=\"x\\ty\"",
        "eval.every=~",
        "model.layers=[relu, softmax_cross_entropy]",
    };
    coh_config *config =
        config_of_sets(DATA MODEL "groups: 2\ntrain: {batch: 4}\n", sets, 11);

    ck_assert_int_eq(config->train.batch, 6);
    ck_assert_str_eq(config->run.out, "a: b #c");
    ck_assert_str_eq(config->data.train.items[0], "*.h5");
    ck_assert_int_eq(config->data.test.count, 2);
    ck_assert_str_eq(config->data.test.items[1], "b c");
    ck_assert_int_eq(config->groups, 1); /* the default */
    ck_assert(config->optimizer.rate == 0.5);
    ck_assert(config->optimizer.momentum == 0.0);
    ck_assert_int_eq(config->model.input.items[0], 3);
    ck_assert_str_eq(config->run.name, "x\ty");
    ck_assert_int_eq(config->model.nlayers, 2);
    ck_assert_str_eq(config->model.layers[0].name, "relu1");
    coh_config_destroy(&config);
}
END_TEST

static const struct {
    const char *set, *message;
} bad_sets[] = {
    { "train.batch=0",
      "--set train.batch=0: '0' is too small; 1 to 1000000 samples" },
    { "server=3", "--set server=3: unknown key; did you mean servers?" },
    { "batch=3", "--set batch=3: unknown key; did you mean train.batch?" },
    { "train.batch", "--set train.batch: is not key=value" },
    { "=3", "--set =3: is not key=value" },
    { "", "--set : is not key=value" },
    { "train=3", "--set train=3: a value stands where lines of key: value" },
    { "train={batch: 0}", "--set train={batch: 0}: train.batch: '0' is too" },
    { "train={batch: 1, batch: 2}", "batch: given twice" },
    { "train.batch=[1", "--set train.batch=[1: column " },
    { "train.batch=[1]", "a list stands where one value is wanted" },
    { "run.name=\xFF", "the value is no text in UTF-8" },
    { "run.out=''", "--set run.out='': empty; write the folder" },
    { "servers=0", "--set servers=0: 0, but 2 groups need at least one" },
    { "model.layers=[relu]", "--set model.layers=[relu]: the last layer, 1, "
                             "relu1, is no loss" },
};

START_TEST(a_bad_set_is_refused_by_its_own_words)
{
    refuse_sets(DATA MODEL "groups: 2\nservers: 1\n", &bad_sets[_i].set, 1,
                &err);
    must_say(&err, bad_sets[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

/* --- Together ----------------------------------------------------------- */

#define LABELS "idx needs a label file for each image file, in the same order"

static const struct {
    const char *text, *message;
} misfits[] = {
    { "groups: 2\n" DATA MODEL,
      "job.yaml: servers: 0, but 2 groups need at least one to meet at; write "
      "servers: 1, or groups: 1" },
    { "groups: 2\nservers: 0\n" DATA MODEL, "job.yaml:2:10: servers: 0, but" },
    { "servers: 2\ntesting: {slow_server: 2}\n" DATA MODEL,
      "job.yaml:2:24: testing.slow_server: 2, but servers: 2 are numbered" },
    { "testing: {slow_group: 1}\n" DATA MODEL,
      "job.yaml:1:23: testing.slow_group: 1, but groups: 1 are numbered" },
    { "optimizer: {rate: 0}\n" DATA MODEL,
      "job.yaml:1:19: optimizer.rate: 0 trains nothing; it must be above 0" },
    { "optimizer: {rule: adam, momentum_auto: true}\n" DATA MODEL,
      "job.yaml:1:40: optimizer.momentum_auto: true, but optimizer.rule has no "
      "momentum; write rule: sgd, nesterov, lars or dcasgd" },
    { "exchange: {every: 4}\n" DATA MODEL,
      "job.yaml:1:19: exchange.every: there is nobody to exchange with; write "
      "servers: 1" },
    { "exchange: {elastic: 0.1, every: 4}\n" DATA MODEL,
      "job.yaml:1:21: exchange.elastic: there is nobody to exchange with" },
    { "exchange: {elastic: 0.1}\nservers: 1\npolicy: sync\n" DATA MODEL,
      "exchange.elastic: elastic averaging is for groups that do not wait; "
      "write policy: async or bounded" },
    { "exchange: {elastic: 0.1, push: float16}\nservers: 1\n" DATA MODEL,
      "job.yaml:1:32: exchange.push: exchange.elastic pushes weights, which 16 "
      "bits do not hold; write push: float32" },
    { "exchange: {every: 4}\nservers: 1\noptimizer: {rule: dcasgd}\n" DATA
          MODEL,
      "job.yaml:3:19: optimizer.rule: dcasgd corrects gradients at the "
      "servers, "
      "and with exchange.every or elastic none go there; write rule: sgd" },
    { "exchange: {every: 4}\nservers: 1\noptimizer: {momentum_auto: "
      "true}\n" DATA MODEL,
      "optimizer.momentum_auto: true, but with exchange.every or elastic the "
      "momentum is each group's own" },
    { "exchange: {elastic: 0.5}\nservers: 1\noptimizer: {staleness: inverse}"
      "\n" DATA MODEL,
      "optimizer.staleness: inverse lowers the rate of late gradients" },
    { "exchange: {every: 2, lag: 1}\nservers: 1\n" DATA MODEL,
      "exchange.lag: 1, but with exchange.every or elastic a group goes on" },
    { "exchange: {elastic: 1}\nservers: 1\n" DATA MODEL,
      "exchange.elastic: '1' is too large; 0 to 0.9" },
    { "optimizer: {rule: lars}\n" DATA MODEL,
      "job.yaml:1:19: optimizer.rule: lars and lamb measure whole layers; "
      "write exchange: {placement: layer}" },
    { "optimizer: {rule: lamb}\nexchange: {placement: x}\n" DATA MODEL,
      "exchange.placement: 'x' is none of balanced, layer" },
    { "groups: 2\nservers: 1\npolicy: sync\noptimizer: {clip_norm: 1}\n" DATA
          MODEL,
      "job.yaml:4:24: optimizer.clip_norm: no group knows the norm of the sum "
      "that policy: sync makes of all; write clip_norm: 0, or groups: 1" },
    { "optimizer: {rule: dcasgd_a}\nexchange: {lag: 1}\n" DATA MODEL,
      "job.yaml:2:17: exchange.lag: 1, but dcasgd needs gradients of the "
      "weights that were last sent; write lag: 0" },
    { "servers: 1\nexchange: {update: owners}\n" DATA MODEL,
      "job.yaml:2:20: exchange.update: owners, but with servers these own all "
      "weights; write update: all, or servers: 0" },
    { "train: {epochs: 0}\n" DATA MODEL,
      "job.yaml:1:17: train.epochs: 0 with train.steps 0 has no end" },
    { "run: {name: a/b}\n" DATA MODEL, "job.yaml:1:13: run.name: 'a/b' cannot "
                                       "name a folder" },
    { "run: {name: .}\n" DATA MODEL, "run.name: '.' cannot name a folder" },
    { "run: {name: ..}\n" DATA MODEL, "run.name: '..' cannot name a folder" },
    { "run: {out: ''}\n" DATA MODEL, "run.out: empty; write the folder" },
    { "data: {kind: idx}\n" MODEL, "job.yaml: data.train: missing; e.g. train: "
                                   "train-images-idx3-ubyte.gz" },
    { MODEL, "data.train: missing" },
    { "data: {kind: hdf5}\n" MODEL, "data.train: missing; e.g. train: data/" },
    { "data: {train: a}\n" MODEL,
      "data.train_labels: 0 given for 1 of data.train; " LABELS },
    { "data: {train: a, train_labels: [b, c]}\n" MODEL,
      "job.yaml:1:32: data.train_labels: 2 given for 1 of "
      "data.train; " LABELS },
    { "data: {train: a, train_labels: b, test: c}\n" MODEL,
      "data.test_labels: 0 given for 1 of data.test; " LABELS },
    { "data: {train: a, train_labels: b, validation_labels: c}\n" MODEL,
      "data.validation_labels: 1 given for 0 of data.validation; " LABELS },
    { "data: {kind: hdf5, train: a, images: []}\n" MODEL,
      "data.images: empty; name the dataset" },
    { "data: {kind: hdf5, train: a, labels: ''}\n" MODEL,
      "data.labels: empty; name the dataset" },
    { "eval: {select: best}\ndata: {kind: hdf5, train: a}\n" MODEL,
      "job.yaml:1:16: eval.select: best has no samples to choose by" },
    { "eval: {select: best}\ndata: {kind: synthetic, test_samples: 0}\n" MODEL,
      "eval.select: best has no samples" },
    { DATA "model: {layers: [softmax_cross_entropy]}\n",
      "job.yaml: model.input: missing; the shape of a sample as [channels, "
      "height, width], e.g. input: [1, 28, 28]" },
    { DATA "model: {input: [1, 1, 1]}\n", "job.yaml: model.layers: missing; "
                                          "e.g. layers: [dense" },
    { DATA "model: {input: [1, 1, 1], layers: []}\n", "model.layers: missing" },
    { DATA "model:\n  input: [1, 1, 1]\n  layers:\n    - relu\n",
      "job.yaml:5: model.layers: the last layer, 1, relu1, is no loss; add "
      "- softmax_cross_entropy" },
    { DATA
      "model:\n  input: [1, 1, 1]\n  layers:\n    - softmax_cross_entropy\n"
      "    - softmax_cross_entropy\n",
      "job.yaml:6: model.layers: layer 2, softmax_cross_entropy2, comes after "
      "the loss softmax_cross_entropy1, which has no output" },
    /* One mistake, one line: the checks keep quiet about refused values. */
    { "groups: 2\nservers: x\n" DATA MODEL, "servers: 'x' is not" },
    { "optimizer: {rate: -1}\n" DATA MODEL, "optimizer.rate: '-1' is too" },
    { "data: {kind: idxx}\n" MODEL, "did you mean idx?" },
    { "data: {train: [[]]}\n" MODEL, "data.train: a list stands" },
    { DATA "model: {input: [1, 1, 1], layers: 3}\n", "wants a list of layers" },
};

START_TEST(values_that_do_not_fit_together_are_refused)
{
    refuse_sets(misfits[_i].text, NULL, 0, &err);
    must_say(&err, misfits[_i].message);
    ck_assert_int_eq(lines_of(&err), 1);
}
END_TEST

START_TEST(no_epochs_are_fine_with_steps)
{
    coh_config *config = config_of("train: {epochs: 0, steps: 5}\n" DATA MODEL);
    ck_assert_int_eq(config->train.steps, 5);
    coh_config_destroy(&config);
}
END_TEST

/* --- Files -------------------------------------------------------------- */

static const struct {
    const char *path, *name;
} names[] = {
    { "runs/hep.yaml", "hep" }, { "hep.v2.yml", "hep.v2" }, { "hep", "hep" },
    { "a.b/hep", "hep" },       { ".hep", ".hep" },
};

START_TEST(a_run_is_called_after_its_file)
{
    coh_config *config = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_config_parse(names[_i].path, DATA MODEL,
                                      strlen(DATA MODEL), NULL, 0, &config,
                                      &err),
                     COH_OK);
    ck_assert_str_eq(config->run.name, names[_i].name);
    coh_config_destroy(&config);
}
END_TEST

START_TEST(a_file_that_cannot_be_read_is_named_with_the_reason)
{
    coh_config *config = NULL;

    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_config_load("/no/such.yaml", NULL, 0, &config, &err),
                     COH_E_CONFIG);
    ck_assert_str_eq(err.text, "cannot read the configuration /no/such.yaml: "
                               "No such file or directory");
    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_config_load("/", NULL, 0, &config, &err),
                     COH_E_CONFIG);
    ck_assert_str_eq(err.text, "cannot read the configuration /: Is a "
                               "directory");
    err = COH_ERR_INIT;
    ck_assert_int_eq(coh_config_load("/dev/zero", NULL, 0, &config, &err),
                     COH_E_CONFIG);
    must_say(&err, "/dev/zero:1:1: more than 4 MiB");
    ck_assert_ptr_null(config);
}
END_TEST

START_TEST(a_file_is_loaded_with_sets)
{
    char path[] = "/tmp/test_config.XXXXXX";
    const char *const sets[] = { "train.batch=3" };
    coh_config *config = NULL;
    const int file = mkstemp(path);

    ck_assert_int_ge(file, 0);
    ck_assert_int_eq(write(file, DATA MODEL, strlen(DATA MODEL)),
                     (ssize_t)strlen(DATA MODEL));
    close(file);
    err = COH_ERR_INIT;
    const coh_status status = coh_config_load(path, sets, 1, &config, &err);
    unlink(path);
    ck_assert_msg(status == COH_OK, "%s", err.text);
    ck_assert_int_eq(config->train.batch, 3);
    ck_assert_str_eq(config->path, path);
    coh_config_destroy(&config);
}
END_TEST

#define COUNT(table) (int)(sizeof table / sizeof table[0])

static Suite *config_suite(void)
{
    Suite *suite = suite_create("config");

    TCase *core = tcase_create("core");
    tcase_add_test(core, a_small_file_gets_the_defaults);
    tcase_add_test(core, the_file_sets_fields_of_every_room);
    tcase_add_test(core, a_set_overrides_the_file_and_the_last_of_two_counts);
    tcase_add_test(core, no_epochs_are_fine_with_steps);
    tcase_add_loop_test(core, a_run_is_called_after_its_file, 0, COUNT(names));
    tcase_add_test(core, a_file_is_loaded_with_sets);
    suite_add_tcase(suite, core);

    TCase *bad = tcase_create("bad");
    tcase_add_loop_test(bad, a_bad_key_is_refused_with_the_one_that_was_meant,
                        0, COUNT(bad_keys));
    tcase_add_test(bad, all_faults_are_reported_at_once);
    tcase_add_test(bad, a_thousand_faults_end_with_a_word_that_more_were_cut);
    tcase_add_test(bad, the_message_may_be_unwanted);
    tcase_add_loop_test(bad, a_bad_set_is_refused_by_its_own_words, 0,
                        COUNT(bad_sets));
    tcase_add_loop_test(bad, values_that_do_not_fit_together_are_refused, 0,
                        COUNT(misfits));
    tcase_add_test(bad, a_file_that_cannot_be_read_is_named_with_the_reason);
    suite_add_tcase(suite, bad);
    return suite;
}

CHECK_MAIN(config_suite)
