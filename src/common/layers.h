/* layers.h - every kind of layer and every field of one, once.
 *
 * In YAML a layer is a name, or a name with its fields:
 *
 *     - relu
 *     - conv2d: {filters: 32, kernel: 3, padding: same}
 *
 *     - add: {from: [a, b]}
 *
 * A layer takes the output of the layer before it, the first one the images,
 * unless `from` names others that stand before it; `input` names the images.
 * A loss compares its input x with a target t. The loss of a sample is the sum
 * of the losses, each times its weight.
 *
 * A field may be given for a layer if the layer's letter stands in its row.
 * PAIR fields are one number for both axes, or [height, width].
 */
#ifndef COH_COMMON_LAYERS_H
#define COH_COMMON_LAYERS_H

enum { COH_LOSSES_MAX = 16 }; /* in one model */

/* Name in YAML, C name, letter, help. */
#define COH_LAYER_KINDS(X)                                                     \
    X("conv2d", CONV2D, "c", "convolution, bias added")                        \
    X("deconv2d", DECONV2D, "D",                                               \
      "transposed convolution: conv2d's input gradient as a layer, bias "      \
      "added")                                                                 \
    X("maxpool", MAXPOOL, "p", "largest value of each window")                 \
    X("avgpool", AVGPOOL, "a", "mean of each window, padding not counted")     \
    X("global_avgpool", GLOBAL_AVGPOOL, "g", "mean of each channel")           \
    X("upsample", UPSAMPLE, "u", "each value scale times, in both directions") \
    X("crop", CROP, "k", "a part of height and width")                         \
    X("relu", RELU, "r", "max(x, 0)")                                          \
    X("leaky_relu", LEAKY_RELU, "l", "x, or slope x where x < 0")              \
    X("sigmoid", SIGMOID, "s", "1 / (1 + exp(-x))")                            \
    X("tanh", TANH, "t", "hyperbolic tangent")                                 \
    X("softmax", SOFTMAX, "m", "exp(x) / sum of exp over the channels")        \
    X("layer_norm", LAYER_NORM, "n",                                           \
      "a sample's values less their mean, divided by their deviation, times "  \
      "weights that begin as 1, plus a bias")                                  \
    X("batch_norm", BATCH_NORM, "b",                                           \
      "a channel's values less their mean over the worker's batch, divided "   \
      "by their deviation, times a weight that begins as 1, plus a bias; "     \
      "outside of training by running mean and variance, which are "           \
      "parameters")                                                            \
    X("dense", DENSE, "d", "matrix product, bias added")                       \
    X("flatten", FLATTEN, "f", "[C, H, W] becomes [C H W]")                    \
    X("dropout", DROPOUT, "o",                                                 \
      "zeroes a value with probability rate, divides the others by 1 - rate")  \
    X("add", ADD, "+", "sum of two inputs or more of one shape")               \
    X("concat", CONCAT, "&", "the channels of two inputs or more, in order")   \
    X("softmax_cross_entropy", SOFTMAX_CROSS_ENTROPY, "x",                     \
      "loss: -log softmax of the label's channel, at each position")           \
    X("sigmoid_cross_entropy", SIGMOID_CROSS_ENTROPY, "y",                     \
      "loss: of each value, -t log sigmoid x - (1 - t) log sigmoid -x")        \
    X("mean_squared_error", MEAN_SQUARED_ERROR, "q",                           \
      "loss: of each value, (x - t)^2")                                        \
    X("smooth_l1", SMOOTH_L1, "z",                                             \
      "loss: of each value, d = |x - t|: d^2 / 2 where d < 1, else d - 1/2")

/* INT, REAL: key, field, letters, default, low, high, help; an INT or PAIR
 * whose default lies below low must be given. PAIR: two integers. BOOL: key,
 * field, letters, default, help. PADDING: two integers, or same. NAMES: one
 * name, or a list of them; default none. */
#define COH_EVERY_LAYER "cDpagukrlstmnbdfo+&xyqz"
#define COH_EVERY_LOSS "xyqz"
#define COH_LAYER_FIELDS(INT, PAIR, REAL, BOOL, TEXT, PADDING, NAMES)       \
    TEXT("name", name, COH_EVERY_LAYER,                                     \
         "name in messages; default kind + number")                         \
    INT("filters", filters, "cD", 0, 1, 1000000, "output channels")         \
    INT("units", filters, "d", 0, 1, 100000000, "output values")            \
    PAIR("kernel", kernel, "cDpa", 0, 1, 100000, "size of the window")      \
    PAIR("stride", stride, "cD", 1, 1, 100000, "step of the window")        \
    PAIR("stride", stride, "pa", 0, 0, 100000,                              \
         "step of the window; default: the kernel")                         \
    PADDING("padding", padding, "cpa",                                      \
            "zeros added on each side, or same: output = input / stride, "  \
            "rounded up")                                                   \
    PADDING("padding", padding, "D",                                        \
            "taken off each side of the output, or same: output = input x " \
            "stride")                                                       \
    PAIR("output_padding", output_padding, "D", 0, 0, 100000,               \
         "added to the end of the output; less than the stride")            \
    PAIR("dilation", dilation, "cD", 1, 1, 100000,                          \
         "distance between the taps; 1 is dense")                           \
    INT("groups", groups, "cD", 1, 1, 1000000, "channel groups")            \
    PAIR("scale", scale, "u", 0, 1, 1000, "how often each value stands")    \
    PAIR("size", size, "k", 0, 1, 1000000, "what is left")                  \
    PAIR("offset", offset, "k", 0, 0, 1000000, "where it begins")           \
    REAL("epsilon", epsilon, "nb", 1e-5, 0, 1, "added to the variance")     \
    REAL("momentum", momentum, "b", 0.9, 0, 0.999999,                       \
         "what a step keeps of running means and variances")                \
    REAL("slope", slope, "l", 0.01, 0, 1, "factor of negative values")      \
    REAL("rate", rate, "o", 0.5, 0, 0.999999, "probability of a zero")      \
    BOOL("bias", bias, "cDd", true, "add a bias")                           \
    REAL("weight", weight, COH_EVERY_LOSS, 1, 0, 1e9,                       \
         "factor in the sum of all losses")                                 \
    TEXT("target", target, COH_EVERY_LOSS,                                  \
         "what x is compared with: a name of model.targets, input, or "     \
         "label; default: label")                                           \
    TEXT("mask", mask, COH_EVERY_LOSS,                                      \
         "a name of model.targets, of one channel or as many as the "       \
         "input: factors, 0 does not count; default: none")                 \
    INT("ignore", ignore, "x", -1, -1, 1000000,                             \
        "positions of this label do not count, nor do negative ones")       \
    BOOL("mean", mean, COH_EVERY_LOSS, true,                                \
         "divide by what counts in the sample (the sum of the mask); "      \
         "false: the sum")                                                  \
    BOOL("unlabelled", unlabelled, COH_EVERY_LOSS, false,                   \
         "count unlabelled samples too")                                    \
    NAMES("from", from, COH_EVERY_LAYER,                                    \
          "the layers whose outputs it takes; default: the one before it")

#endif
