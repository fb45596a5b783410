# `cohort eval` gives what the run measured, on any number of ranks, also with
# fewer samples than ranks.
. "$(dirname "$0")/lib.bash"

evaluate() { # RANKS ARG...
    timeout 60 $MPIEXEC -n "$1" "$cohort" eval "${@:2}" --json
}
value() { # KEY
    sed -n 's/^ *"'"$1"'": \([^,]*\),\{0,1\}$/\1/p'
}

train 3 run --set groups=2 --set servers=1 --set data.classes=2 \
    --set model.input='[2,12,12]' --set train.epochs=3
# Two classes need two outputs: the network above has three, one unused.
is "run: exit code" "$code" 0
for n in 1 2 3; do
    evaluate $n "$work/run" >"$work/eval$n"
    is "$n ranks: accuracy" "$(value accuracy <"$work/eval$n")" \
        "$(field run test_accuracy)"
    is "$n ranks: samples" "$(value samples <"$work/eval$n")" 61
done
evaluate 4 "$work/run" --set data.test_samples=3 >"$work/few"
is "3 samples on 4 ranks" "$(value samples <"$work/few")" 3
evaluate 1 "$work/run" --split train >"$work/train"
is "training set" "$(value samples <"$work/train")" 203
evaluate 1 "$work/run" --set data.test_samples=0 >"$work/none" 2>&1
is "empty set: exit code" "$?" 3
evaluate 1 "$work/nowhere" >"$work/none" 2>&1
is "no checkpoint: exit code" "$?" 2

# The scores of two classes come to the root in several messages.
cat >"$work/scores.yaml" <<END
data: {kind: synthetic, classes: 2, train_samples: 64, test_samples: 200003}
train: {epochs: 1}
eval: {batch: 1000, every: 0}
model: {input: [1, 2, 2], layers: [dense: {units: 2}, softmax_cross_entropy]}
END
config=$work/scores.yaml train 1 scores
is "scores: exit code" "$code" 0
evaluate 2 "$work/scores" >"$work/scores.eval"
about "scores: AUC on 2 ranks" "$(value auc <"$work/scores.eval")" \
    "$(field scores test_auc)"
is "scores: samples" "$(value samples <"$work/scores.eval")" 200003

# Evaluation in the middle of training never hangs, whatever the numbers.
for samples in 1 2 5; do
    train 5 odd$samples --set groups=2 --set group_size=2 --set servers=1 \
        --set data.test_samples=$samples --set eval.every=0.3 \
        --set train.epochs=1
    is "odd$samples: exit code" "$code" 0
done
train 4 tiny --set train.batch=4 --set data.train_samples=1 --set train.epochs=3
is "one training sample on 4 workers: exit code" "$code" 0
is "one training sample: samples" "$(field tiny samples_seen)" 3

# The best weights are kept, and the final test uses them.
train 1 best --set eval.select=best --set eval.every=0.5 --set train.epochs=3
is "best: exit code" "$code" 0
evaluate 1 "$work/best/best" >"$work/b"
is "best: accuracy" "$(value accuracy <"$work/b")" "$(field best test_accuracy)"
is "best: step" "$(value step <"$work/b")" "$(field best best_step)"
finish
