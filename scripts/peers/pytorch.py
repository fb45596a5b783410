#!/usr/bin/env python3
"""Time a training step of a cohort job's network in PyTorch, on made-up data.

    pytorch.py CONFIG [--threads N] [--batch N] [--steps N] ...

CONFIG is a job of cohort, or - for one on standard input. Prints one line of
JSON; README.md says what its numbers are. Needs torch and yaml (Debian:
python3-torch, python3-yaml). Exit code 2: a job or a layer that this script
does not know, or a network that is not the one of --parameters and --flop.

What PyTorch gets that it would not have by itself is in tune() and Net, and
said in README.md; the options are for where another choice may be faster.
"""

import argparse
import ctypes
import json
import math
import os
import re
import statistics
import sys
import time

import torch
import torch.nn.functional as F
import yaml
from torch import nn

# As in `cohort bench`: steps for so long, at least so many; a rate that hardly
# moves the weights.
STEPS_S = 5.0
STEPS_LEAST = 5
RATE = 1e-6

# The fields of each kind of layer and their defaults; MUST has none. As in
# src/common/layers.h.
MUST = object()
WINDOW = {"kernel": MUST, "stride": 1, "padding": 0}
CONV = {**WINDOW, "filters": MUST, "dilation": 1, "groups": 1, "bias": True}
LOSS = {"weight": 1, "target": "label", "mask": "", "mean": True,
        "unlabelled": False}
FIELDS = {
    "conv2d": CONV,
    "deconv2d": {**CONV, "output_padding": 0},
    "maxpool": {**WINDOW, "stride": 0},
    "global_avgpool": {},
    "relu": {},
    "leaky_relu": {"slope": 0.01},
    "dense": {"units": MUST, "bias": True},
    "flatten": {},
    "dropout": {"rate": 0.5},
    "softmax_cross_entropy": {**LOSS, "ignore": -1},
    "sigmoid_cross_entropy": LOSS,
    "mean_squared_error": LOSS,
    "smooth_l1": LOSS,
}
LOSSES = [kind for kind, fields in FIELDS.items() if "target" in fields]
WEIGHTED = (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)


class Refused(Exception):
    """What cannot be compared; the text says why."""


# --- The job ---------------------------------------------------------------


class Layer:
    """A row of model.layers: kind, name, source (a name) and its fields."""

    def __init__(self, row, before, seen):
        self.kind, given = row, {}
        if isinstance(row, dict):
            [(self.kind, given)] = row.items()
        if self.kind not in FIELDS:
            raise Refused(f"layer {self.kind} is not known here; those that "
                          f"are: {', '.join(FIELDS)}")
        seen[self.kind] = seen.get(self.kind, 0) + 1
        given = dict(given or {})
        self.name = given.pop("name", f"{self.kind}{seen[self.kind]}")
        self.source = given.pop("from", before)
        if isinstance(self.source, list):
            [self.source] = self.source
        self.fields = {**FIELDS[self.kind], **given}
        for key, value in self.fields.items():
            if key not in FIELDS[self.kind] or value is MUST:
                raise Refused(f"layer {self.name}: {key} is "
                              f"{'missing' if value is MUST else 'not known'}")

    @property
    def is_loss(self):
        """Has no output."""
        return self.kind in LOSSES

    def pair(self, key):
        """A field for height and width."""
        value = self.fields.get(key, 1)
        return tuple(value) if isinstance(value, list) else (value, value)


def read_layers(job):
    """The layers of the job, in order."""
    layers, seen, before = [], {}, "input"
    for row in job["model"]["layers"]:
        layers.append(Layer(row, before, seen))
        before = layers[-1].name
    return layers


def load_job(path):
    """The job as YAML has it."""
    with sys.stdin if path == "-" else open(path, encoding="utf-8") as file:
        job = yaml.safe_load(file)
    if not isinstance(job, dict) or "layers" not in job.get("model", {}):
        raise Refused(f"{path} is no job of cohort: it has no model.layers")
    return job


# --- The layers ------------------------------------------------------------


def padding_of(layer, size):
    """Zeros on each side. `same` may want one more behind: PyTorch's layers
    have no such thing, so it is refused."""
    if layer.fields["padding"] != "same":
        return layer.pair("padding")
    padding = []
    for n, kernel, stride, dilation in zip(
            size, layer.pair("kernel"), strides_of(layer),
            layer.pair("dilation")):
        reach = (kernel - 1) * dilation + 1
        total = (reach - stride if layer.kind == "deconv2d" else
                 max(0, (math.ceil(n / stride) - 1) * stride + reach - n))
        if total < 0 or total % 2:
            raise Refused(f"layer {layer.name}: padding: same is not known "
                          "here where it differs from side to side")
        padding.append(total // 2)
    return tuple(padding)


def strides_of(layer):
    """A pool's stride is its kernel unless it is given."""
    return layer.pair("stride" if layer.fields["stride"] else "kernel")


def make_conv(layer, shape):
    """conv2d and deconv2d."""
    fields = layer.fields
    options = {"stride": layer.pair("stride"), "groups": fields["groups"],
               "padding": padding_of(layer, shape[2:]),
               "dilation": layer.pair("dilation"), "bias": fields["bias"]}
    if layer.kind == "conv2d":
        return nn.Conv2d(shape[1], fields["filters"], layer.pair("kernel"),
                         **options)
    return nn.ConvTranspose2d(shape[1], fields["filters"],
                              layer.pair("kernel"), **options,
                              output_padding=layer.pair("output_padding"))


def make_module(layer, shape, inplace):
    """The layer for inputs [N, C, ...] of this shape."""
    fields = layer.fields
    if layer.kind in ("conv2d", "deconv2d"):
        return make_conv(layer, shape)
    if layer.kind == "maxpool":
        return nn.MaxPool2d(layer.pair("kernel"), strides_of(layer),
                            padding_of(layer, shape[2:]))
    if layer.kind == "dense":
        linear = nn.Linear(math.prod(shape[1:]), fields["units"],
                           bias=fields["bias"])
        return nn.Sequential(nn.Flatten(), linear)
    if layer.kind == "leaky_relu":
        return nn.LeakyReLU(fields["slope"], inplace)
    if layer.kind == "dropout":
        return nn.Dropout(fields["rate"])
    return {"relu": nn.ReLU(inplace), "flatten": nn.Flatten(),
            "global_avgpool": nn.AdaptiveAvgPool2d(1)}[layer.kind]


def flop_of(module, shape, out):
    """Forward, a sample: those of docs/numbers.md."""
    flop = 0
    for part in module.modules():
        if isinstance(part, nn.Conv2d):
            flop += 2 * part.weight.numel() * math.prod(out[2:])
        elif isinstance(part, nn.ConvTranspose2d):
            flop += 2 * part.weight.numel() * math.prod(shape[2:])
        elif isinstance(part, nn.Linear):
            flop += 2 * part.weight.numel()
    return flop


# --- The losses ------------------------------------------------------------


def values_of(layer, x, t, reduction):
    """The loss at each position [N, H, W] or value [N, C, ...], or of all."""
    if layer.kind == "softmax_cross_entropy":
        return F.cross_entropy(x, t, reduction=reduction, ignore_index=-1)
    if layer.kind == "sigmoid_cross_entropy":
        return F.binary_cross_entropy_with_logits(x, t, reduction=reduction)
    if layer.kind == "mean_squared_error":
        return F.mse_loss(x, t, reduction=reduction)
    return F.smooth_l1_loss(x, t, reduction=reduction)


def labels_of(layer, batch):
    """[N] or [N, H, W]: the labels, -1 where they do not count."""
    t = batch[layer.fields["target"]].long()
    t = t if t.dim() == 1 else t.squeeze(1)
    return t.masked_fill((t < 0) | (t == layer.fields["ignore"]), -1)


def counts_of(layer, t, batch):
    """How much each position or value counts, in the shape of t; None: all of
    them, once."""
    is_labels = layer.kind == "softmax_cross_entropy"
    factors = [(t >= 0).float()] if is_labels else []
    if layer.fields["mask"]:
        mask = batch[layer.fields["mask"]]
        factors.append(mask.squeeze(1) if is_labels else mask)
    if "labelled" in batch and not layer.fields["unlabelled"]:
        factors.append(batch["labelled"].view(-1, *[1] * (t.dim() - 1)))
    return math.prod(factors).expand(t.shape) if factors else None


def loss_of(layer, x, batch):
    """Its weight times the mean over the samples of the loss [N], which in
    each is the mean, or sum, of what counts there: src/common/model.h."""
    weight, mean = layer.fields["weight"], layer.fields["mean"]
    if layer.kind == "softmax_cross_entropy":
        t = labels_of(layer, batch)
        x = x.flatten(1) if t.dim() == 1 else x
    else:
        t = batch[layer.fields["target"]]
    counts = counts_of(layer, t, batch)
    if counts is None:  # samples are of one size: one mean is the other
        loss = values_of(layer, x, t, "mean" if mean else "sum")
        return weight * loss / (1 if mean else len(x))
    losses = values_of(layer, x, t, "none") * counts
    sums = losses.reshape(len(x), -1).sum(1)
    if mean:  # where nothing counts the sum is 0
        sums = sums / counts.reshape(len(x), -1).sum(1).clamp(min=1e-30)
    return weight * sums.mean()


# --- The network -----------------------------------------------------------


class Net(nn.Module):
    """The layers of a job; forward() gives the loss of a batch.

    Shapes come from a pass over meta tensors, which hold no values. A relu
    writes over its input where no other layer has it and no gradient needs it.
    """

    def __init__(self, job):
        super().__init__()
        self.layers = read_layers(job)
        self.parts = nn.ModuleDict()
        self.last_user = {layer.source: layer for layer in self.layers}
        self.shapes = {"input": (1, *job["model"]["input"])}
        self.flop_step = 0  # a sample; without needless input gradients
        leads = set()       # layers with weights, or behind such
        for layer in self.layers:
            shape = self.shapes.get(layer.source)
            if shape is None:
                raise Refused(f"layer {layer.name}: there is no "
                              f"{layer.source} before it")
            if layer.is_loss:
                continue
            part = self.add(layer, shape)
            flop = flop_of(part, shape, self.shapes[layer.name])
            self.flop_step += flop * (3 if layer.source in leads else 2)
            if layer.source in leads or list(part.parameters()):
                leads.add(layer.name)

    def add(self, layer, shape):
        """The layer's module, without memory, and the shape of its output."""
        users = sum(other.source == layer.source for other in self.layers)
        inplace = (users == 1 and layer.source in self.parts and
                   isinstance(self.parts[layer.source], WEIGHTED))
        with torch.device("meta"):
            part = make_module(layer, shape, inplace)
            self.shapes[layer.name] = tuple(part(torch.empty(shape)).shape)
        self.parts[layer.name] = part
        return part

    def forward(self, batch):
        """The mean over the samples of the sum of all losses."""
        values, losses = {"input": batch["input"]}, []
        for layer in self.layers:
            x = values[layer.source]
            if layer.is_loss:
                losses.append(loss_of(layer, x, batch))
            else:
                values[layer.name] = self.parts[layer.name](x)
            if self.last_user[layer.source] is layer:
                del values[layer.source]
        return sum(losses)


def init_weights(net):
    """He et al., as cohort: normal, variance 2 / fan-in; biases 0."""
    for part in net.modules():
        if not isinstance(part, WEIGHTED):
            continue
        outputs = part.weight.shape[0]
        fan_in = part.weight.numel() / outputs
        if isinstance(part, nn.ConvTranspose2d):
            fan_in = part.weight.numel() / part.out_channels
            fan_in = max(1, fan_in / math.prod(part.stride))
        nn.init.normal_(part.weight, std=math.sqrt(2 / fan_in))
        if part.bias is not None:
            nn.init.zeros_(part.bias)


def check_net(net, options):
    """Is it the network that cohort has?"""
    parameters = sum(p.numel() for p in net.parameters())
    for what, is_, wanted in (("parameters", parameters, options.parameters),
                              ("flop", net.flop_step, options.flop)):
        if wanted not in (None, is_):
            raise Refused(f"another network: {is_} {what}, not {wanted}")
    return parameters


# --- Data ------------------------------------------------------------------


def make_target(net, name, shape):
    """Numbers of the kind that its losses ask for."""
    users = [layer for layer in net.layers if layer.is_loss
             and name in (layer.fields["target"], layer.fields["mask"])]
    if any(layer.fields["mask"] == name for layer in users):
        return torch.randint(0, 2, shape).float()
    for layer in users:
        if layer.kind == "softmax_cross_entropy":
            classes = net.shapes[layer.source][1]
            low = 0 if name == "label" else -1  # positions without a label
            return torch.randint(low, classes, shape).float()
        if layer.kind == "sigmoid_cross_entropy":
            return torch.rand(shape)
    return torch.randn(shape)


def make_batch(job, net, count, layout):
    """Images `input`, `label` and the targets of a batch, by their names, and
    `labelled` [N] if some samples are not: the share that the job has."""
    images = torch.randn(count, *job["model"]["input"])
    batch = {"input": images.to(memory_format=layout),
             "label": make_target(net, "label", (count,))}
    for target in job["model"].get("targets", []):
        batch[target["name"]] = make_target(net, target["name"],
                                            (count, *target["shape"]))
    share = float(job.get("data", {}).get("unlabelled", 0))
    if round(share * count) > 0:
        batch["labelled"] = (torch.arange(count) >=
                             round(share * count)).float()
    return batch


# --- Steps -----------------------------------------------------------------


def make_optimizer(job, net, how):
    """The job's rule; cohort's defaults and meaning (src/common/optim/rule.h)
    are PyTorch's."""
    given = {"rule": "sgd", **job.get("optimizer", {})}
    options = {"lr": RATE, "weight_decay": float(given.get("weight_decay", 0))}
    if how != "plain":
        options[how] = True
    if given["rule"] in ("sgd", "nesterov"):
        return torch.optim.SGD(net.parameters(), **options,
                               momentum=float(given.get("momentum", 0.9)),
                               nesterov=given["rule"] == "nesterov")
    if given["rule"] in ("adam", "adamw"):
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        return kind[given["rule"]](net.parameters(), **options,
                                   betas=(float(given.get("beta1", 0.9)),
                                          float(given.get("beta2", 0.999))),
                                   eps=float(given.get("epsilon", 1e-8)))
    raise Refused(f"optimizer.rule: {given['rule']} is not known here")


def step(net, optimizer, batch):
    """One step of training: (loss, seconds of gradient, of update)."""
    start = time.perf_counter()
    optimizer.zero_grad(set_to_none=True)
    loss = net(batch)
    loss.backward()
    middle = time.perf_counter()
    optimizer.step()
    return loss, middle - start, time.perf_counter() - middle


def time_steps(net, optimizer, batch, options):
    """The times of what is counted, and the last loss."""
    for _ in range(options.warmup):
        loss = step(net, optimizer, batch)[0]
    gradients, updates = [], []
    end = time.perf_counter() + STEPS_S
    while len(gradients) < (options.steps or STEPS_LEAST) or (
            not options.steps and time.perf_counter() < end):
        loss, gradient_s, update_s = step(net, optimizer, batch)
        gradients.append(gradient_s)
        updates.append(update_s)
    steps = [g + u for g, u in zip(gradients, updates)]
    return {
        "steps": len(steps),
        "step_s": min(steps),
        "step_median_s": statistics.median(steps),
        "gradient_s": min(gradients),
        "gradient_median_s": statistics.median(gradients),
        "update_s": min(updates),
        "loss": loss.item(),
    }


# --- The command -----------------------------------------------------------


def hold_memory():
    """Let the C library keep what is freed: else each step gives its large
    blocks back to the system, which clears every page of them anew."""
    m_trim_threshold, m_mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(m_mmap_max, 0)
    libc.mallopt(m_trim_threshold, -1)


def tune(options):
    """What a careful user of PyTorch would set. Threads begin after this, and
    take flushing from the one that starts them."""
    if options.memory == "hold":
        hold_memory()
    torch.set_flush_denormal(True)
    torch.set_num_threads(options.threads)
    if not torch.backends.mkldnn.is_available():
        raise Refused("this PyTorch has no oneDNN: no fair comparison")
    torch.backends.mkldnn.enabled = True


def run(options):
    """The object to print."""
    job = load_job(options.config)
    count = options.batch or int(job.get("train", {}).get("batch", 32))
    layout = {"channels_last": torch.channels_last,
              "nchw": torch.contiguous_format}[options.layout]
    tune(options)
    torch.manual_seed(1)
    net = Net(job)
    parameters = check_net(net, options)
    net.to_empty(device="cpu")
    init_weights(net)
    net.to(memory_format=layout)
    optimizer = make_optimizer(job, net, options.optimizer)
    batch = make_batch(job, net, count, layout)
    onednn = re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())
    return {
        "torch": torch.__version__,
        "onednn": onednn[1] if onednn else "",
        "threads": options.threads,
        "batch": count,
        "layout": options.layout,
        "optimizer": options.optimizer,
        "memory": options.memory,
        "huge_pages": os.environ.get("THP_MEM_ALLOC_ENABLE") == "1",
        "parameters": parameters,
        "flop_per_image_step": net.flop_step,
        **time_steps(net, optimizer, batch, options),
    }


def read_options():
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="pytorch.py", description=__doc__.splitlines()[0])
    parser.add_argument("config", help="a job, or - for standard input")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, help="default: train.batch")
    parser.add_argument("--steps", type=int, default=0,
                        help="default: what fits 5 s, at least 5")
    parser.add_argument("--warmup", type=int, default=2,
                        help="steps before, not counted")
    parser.add_argument("--layout", default="channels_last",
                        choices=["channels_last", "nchw"])
    parser.add_argument("--optimizer", default="fused",
                        choices=["fused", "foreach", "plain"])
    parser.add_argument("--memory", default="hold", choices=["hold", "libc"],
                        help="keep freed memory, or as the C library does")
    parser.add_argument("--parameters", type=int, help="refuse other networks")
    parser.add_argument("--flop", type=int, help="the same, a sample and step")
    return parser.parse_args()


def main():
    """0, or 2 for what is refused."""
    try:
        print(json.dumps(run(read_options())))
    except (Refused, OSError, yaml.YAMLError) as why:
        print(f"pytorch.py: {why}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
