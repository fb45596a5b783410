/* options.h - every key of the configuration, once.
 *
 * A row is the key, the field of coh_config, the default, what is allowed, the
 * unit and a sentence. The rows load YAML, take --set, print `cohort help
 * config`, write the resolved config.yaml and make config/reference.yaml.
 *
 *     INT   key, field, default, low, high, unit, help
 *     REAL  key, field, default, low, high, unit, help
 *     BOOL  key, field, default, help
 *     TEXT  key, field, default, help
 *     LIST  key, field, default, help   texts: one text is a list of one; the
 *           default is one text, or "" for none
 *     INTS  key, field, count, low, high, help    `count` integers; no default
 *     ENUM  key, field, default, "name|name|...", help
 *           the names stand in the order of the C enum, the default is its
 *           number
 *     ROOM  key, help                   a heading: the key of a mapping
 *
 * `model.targets` and `model.layers` are lists of mappings. Layers have a table
 * of their own: layers.h.
 */
#ifndef COH_COMMON_OPTIONS_H
#define COH_COMMON_OPTIONS_H

#include <stdint.h>

#define COH_OPTIONS(INT, REAL, BOOL, TEXT, LIST, INTS, ENUM, ROOM)             \
    INT("groups", groups, 1, 1, 1000000, "groups",                             \
        "worker groups: synchronous inside, asynchronous to each other")       \
    INT("group_size", group_size, 0, 0, 1000000, "ranks",                      \
        "workers in a group; 0 takes what the launch gives, if it divides")    \
    INT("servers", servers, 0, 0, 1000000, "ranks",                            \
        "parameter servers; 0 needs one group")                                \
    ENUM("policy", policy, 0, "async|bounded|sync",                            \
         "how groups meet at the servers; async: each gradient is applied on " \
         "arrival; bounded: so too, but no group is more than policy_bound "   \
         "steps ahead; sync: a step is one of all groups together, averaged")  \
    INT("policy_bound", policy_bound, 4, 0, 1000000, "steps",                  \
        "policy bounded: how many steps a group may begin ahead of the "       \
        "slowest; below 2 there is less read ahead")                           \
    ROOM("run", "the run and its folder OUT/NAME")                             \
    TEXT("run.name", run.name, "",                                             \
         "name of the run; empty is the name of the config file")              \
    TEXT("run.out", run.out, "runs", "folder that holds the runs")             \
    INT("run.seed", run.seed, 1, 0, INT64_MAX, "",                             \
        "seed of every random number")                                         \
    REAL("run.time_limit", run.time_limit, 0, 0, 1e9, "s",                     \
         "save and stop (exit code 5) after this long; 0 is no limit")         \
    REAL("run.report_every", run.report_every, 5, 0.01, 1e6, "s",              \
         "time between two progress lines")                                    \
    ROOM("train", "what is trained on, and for how long")                      \
    INT("train.batch", train.batch, 32, 1, 1000000, "samples",                 \
        "samples a worker calculates at once; its step, but for accumulate")   \
    INT("train.group_batch", train.group_batch, 0, 0, INT32_MAX, "samples",    \
        "samples a group takes a step, split over its workers; 0 uses batch")  \
    INT("train.accumulate", train.accumulate, 1, 1, 4096, "batches",           \
        "batches whose gradients a worker adds up for one step and exchange; " \
        "group_batch is split into as many")                                   \
    REAL("train.epochs", train.epochs, 10, 0, 1e9, "epochs",                   \
         "passes over the training set, all groups together")                  \
    INT("train.steps", train.steps, 0, 0, INT64_MAX, "steps",                  \
        "stop after this many steps of all groups, if sooner; 0 is no limit")  \
    ROOM("optimizer", "how a gradient changes the weights")                    \
    ENUM("optimizer.rule", optimizer.rule, 0,                                  \
         "sgd|nesterov|adam|adamw|lars|lamb|dcasgd|dcasgd_a",                  \
         "update rule: see docs/rules.md")                                     \
    REAL("optimizer.rate", optimizer.rate, 0.01, 0, 1e6, "", "learning rate")  \
    REAL("optimizer.momentum", optimizer.momentum, 0.9, 0, 0.999999, "",       \
         "momentum of sgd, nesterov, lars, dcasgd and dcasgd_a")               \
    BOOL("optimizer.momentum_auto", optimizer.momentum_auto, false,            \
         "asynchronous groups: lower the momentum by 1 - 1/groups and raise "  \
         "the rate in exchange: see docs/rules.md")                            \
    REAL("optimizer.momentum_auto_factor", optimizer.momentum_auto_factor, 10, \
         1, 1e6, "", "momentum_auto raises the rate by this at most")          \
    REAL("optimizer.trust", optimizer.trust, 0.001, 1e-12, 1e3, "",            \
         "lars: an update of rate 1 is this long, measured by the weights")    \
    REAL("optimizer.compensation", optimizer.compensation, 0.04, 0, 1e6, "",   \
         "dcasgd and dcasgd_a: how strongly a gradient is corrected for what " \
         "other groups changed meanwhile")                                     \
    REAL("optimizer.beta1", optimizer.beta1, 0.9, 0, 0.999999, "",             \
         "decay of the first moment of adam, adamw and lamb")                  \
    REAL("optimizer.beta2", optimizer.beta2, 0.999, 0, 0.999999999, "",        \
         "decay of their second moment, and of that of dcasgd_a")              \
    REAL("optimizer.epsilon", optimizer.epsilon, 1e-8, 1e-30, 1, "",           \
         "epsilon of the same")                                                \
    REAL("optimizer.weight_decay", optimizer.weight_decay, 0, 0, 1e3, "",      \
         "this times the weights is added to the gradient; adamw "             \
         "and lamb: to the update")                                            \
    REAL("optimizer.clip_norm", optimizer.clip_norm, 0, 0, 1e30, "",           \
         "a group's mean gradient that is longer is scaled to this norm; 0 "   \
         "is any length. It is sent when all of it is known, after backward")  \
    ENUM("optimizer.staleness", optimizer.staleness, 0, "none|inverse",        \
         "inverse: the rate of a gradient is divided by how many updates it "  \
         "comes late")                                                         \
    ENUM("optimizer.schedule", optimizer.schedule, 0, "constant|step|cosine",  \
         "how the rate changes with the samples seen")                         \
    REAL("optimizer.warmup", optimizer.warmup, 0, 0, 1e9, "epochs",            \
         "the rate first rises linearly from 0 over this long")                \
    REAL("optimizer.step_every", optimizer.step_every, 10, 1e-6, 1e9,          \
         "epochs", "schedule step: time between two changes")                  \
    REAL("optimizer.step_factor", optimizer.step_factor, 0.1, 0, 1, "",        \
         "schedule step: the factor of a change")                              \
    REAL("optimizer.final_rate", optimizer.final_rate, 0, 0, 1e6, "",          \
         "schedule cosine: the rate at the end")                               \
    ROOM("data", "where samples come from")                                    \
    ENUM("data.kind", data.kind, 0, "idx|hdf5|synthetic",                      \
         "idx: MNIST's files, gzip or not; synthetic: made in memory")         \
    LIST("data.train", data.train, "", "training files, by name or pattern")   \
    LIST("data.train_labels", data.train_labels, "", "idx: their label files") \
    LIST("data.validation", data.validation, "",                               \
         "validation files, for eval.every; empty uses the test files")        \
    LIST("data.validation_labels", data.validation_labels, "",                 \
         "idx: their label files")                                             \
    LIST("data.test", data.test, "", "test files, for the end of the run")     \
    LIST("data.test_labels", data.test_labels, "", "idx: their label files")   \
    LIST("data.images", data.images, "data",                                   \
         "hdf5: dataset of the images; several of [N,H,W] "                    \
         "are channels")                                                       \
    TEXT("data.labels", data.labels, "label", "hdf5: dataset of the labels")   \
    TEXT("data.weights", data.weights, "",                                     \
         "hdf5: dataset of the event weights; empty is none")                  \
    ENUM("data.axes", data.axes, 0, "nchw|nhwc", "hdf5: order of the axes")    \
    ENUM("data.weights_for", data.weights_for, 0, "metrics|loss",              \
         "event weights count in the metrics only, or in the loss too")        \
    BOOL("data.log1p", data.log1p, false, "x becomes log(1 + x), first")       \
    ENUM("data.normalize", data.normalize, 0, "none|max|standard",             \
         "divide by the largest |x|, or by mean and deviation, of the "        \
         "training set")                                                       \
    ENUM("data.normalize_over", data.normalize_over, 0, "channel|global",      \
         "what one such number stands for")                                    \
    INT("data.normalize_samples", data.normalize_samples, 10000, 1, INT64_MAX, \
        "samples", "how many training samples it is measured on")              \
    INT("data.classes", data.classes, 10, 2, 1000000, "classes",               \
        "synthetic: how many classes")                                         \
    INT("data.train_samples", data.train_samples, 10000, 1, INT64_MAX,         \
        "samples", "synthetic: size of the training set")                      \
    INT("data.test_samples", data.test_samples, 1000, 0, INT64_MAX, "samples", \
        "synthetic: size of the test set")                                     \
    REAL("data.unlabelled", data.unlabelled, 0, 0, 1, "",                      \
         "synthetic: share of the training set that has no labels")            \
    INT("data.prefetch", data.prefetch, 2, 0, 64, "batches",                   \
        "batches read ahead, by a thread; 0: read when needed, without one")   \
    ROOM("exchange", "how gradients and weights travel")                       \
    INT("exchange.block", exchange.block, 1048576, 65536, COH_BLOCK_BYTES_MAX, \
        "bytes", "size of a block: what is sent, versioned and placed")        \
    INT("exchange.speakers", exchange.speakers, 0, 0, 1000000, "ranks",        \
        "members of a group that share out the talking to servers, or the "    \
        "update; 0 is all, 1 only its root")                                   \
    ENUM("exchange.collectives", exchange.collectives, 1, "mpi|own",           \
         "sums and spreads in a group: MPI's, or messages of our own along "   \
         "trees, with the same bits in every run")                             \
    ENUM("exchange.update", exchange.update, 0, "all|owners",                  \
         "without servers; all: each worker updates all weights; owners: the " \
         "speakers share out the update and spread what they made")            \
    INT("exchange.lag", exchange.lag, 0, 0, 1, "steps",                        \
        "1: the next step is calculated while this one's gradients and "       \
        "weights travel, on weights one update older: see docs/rules.md")      \
    INT("exchange.every", exchange.every, 1, 1, 1000000, "steps",              \
        "a group makes this many steps on weights of its own, then sends how " \
        "they changed: see docs/rules.md; 1 sends each gradient")              \
    REAL(                                                                      \
        "exchange.elastic", exchange.elastic, 0, 0, 0.9, "",                   \
        "elastic averaging (EASGD): the share by which a group's weights and " \
        "the servers' move towards each other; 0 is off")                      \
    ENUM("exchange.placement", exchange.placement, 0, "balanced|layer",        \
         "balanced: as many parameters on each server; layer: each layer on "  \
         "one server, in blocks of its own")                                   \
    ENUM("exchange.push", exchange.push, 0, "float32|bfloat16|float16",        \
         "how gradients go to servers; added up and applied as float32")       \
    ENUM("exchange.reply", exchange.reply, 0, "float32|bfloat16|float16",      \
         "how weights come back to train on; servers keep float32")            \
    REAL("exchange.timeout", exchange.timeout, 600, 1, 1e7, "s",               \
         "a peer silent for this long is lost (exit code 6); more than a "     \
         "checkpoint takes")                                                   \
    ROOM("eval", "measuring the network during and after training")            \
    REAL("eval.every", eval.every, 1, 0, 1e9, "epochs",                        \
         "time between two evaluations; 0 is only the one at the end")         \
    INT("eval.batch", eval.batch, 0, 0, 1000000, "samples",                    \
        "samples a worker evaluates at once; 0 is that of training")           \
    ENUM("eval.select", eval.select, 0, "last|best",                           \
         "the weights of the final test: the last, or the best seen on the "   \
         "validation set (by AUC for two classes, else by accuracy, without "  \
         "classes by loss)")                                                   \
    ROOM("checkpoint", "saving")                                               \
    REAL("checkpoint.every", checkpoint.every, 1, 0, 1e9, "epochs",            \
         "time between two checkpoints; 0 is only the one at the end")         \
    INT("checkpoint.keep", checkpoint.keep, 2, 1, 1000000, "checkpoints",      \
        "how many of the newest stay")                                         \
    ROOM("compute", "how a worker calculates")                                 \
    INT("compute.threads", compute.threads, 0, 0, 4096, "threads",             \
        "threads a rank; 0 is its share of the cores it may use")              \
    ENUM("compute.algorithm", compute.algorithm, 0, "auto|direct|winograd",    \
         "auto: each layer and pass as it measures fastest; direct; or "       \
         "Winograd wherever it can be done")                                   \
    ROOM("testing", "for tests and experiments")                               \
    INT("testing.slow_group", testing.slow_group, -1, -1, 1000000, "",         \
        "number of a group that is slowed down; -1 is none")                   \
    INT("testing.slow_server", testing.slow_server, -1, -1, 1000000, "",       \
        "number of a server that is slowed down; -1 is none")                  \
    REAL("testing.delay", testing.delay, 0, 0, 1e6, "s",                       \
         "what a slow group waits before each training step, a slow server "   \
         "after each round of answers")                                        \
    ROOM("model", "the network, layer by layer")                               \
    INTS("model.input", model.input, 3, 1, 1000000,                            \
         "shape of a sample: [channels, height, width]")

#endif
