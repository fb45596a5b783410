# Every sample once an epoch, however unequal the groups: with weights that do
# not move, the mean loss of the steps is that of the whole training set.
. "$(dirname "$0")/lib.bash"
sed '/dropout/d' "$here/small.yaml" >"$work/still.yaml"
config=$work/still.yaml

once() { # RUN RANKS EPOCHS ARG...
    local run=$1 ranks=$2 epochs=$3
    shift 3
    train "$ranks" "$run" --set train.epochs="$epochs" --set eval.every=0 \
        --set checkpoint.every=0 --set optimizer.rate=1e-12 \
        --set optimizer.momentum=0 "$@"
    is "$run: exit code" "$code" 0
    is "$run: samples" "$(field "$run" samples_seen)" $((203 * epochs))
    "$cohort" eval "$work/$run" --split train --json >"$work/eval" 2>&1
    about "$run: mean loss of all steps" \
        "$(sed -n 's/.*"type": "step".*"samples": \([0-9]*\), "loss": \([^,]*\),.*/\1 \2/p' \
            "$work/$run/metrics.jsonl" |
            awk '{ n += $1; s += $1 * $2 } END { printf "%.9g", s / n }')" \
        "$(sed -n 's/^ *"loss": \(.*\),$/\1/p' "$work/eval")"
}
steps() { # RUN GROUP
    grep -cE '"type": "step".*"group": '"$2," "$work/$1/metrics.jsonl"
}

slow="--set testing.slow_group=1 --set testing.delay=0.05"
once alone 2 1
once async 3 1 --set groups=2 --set servers=1 $slow
once grouped 6 3 --set groups=2 --set servers=2 $slow
once three 4 1 --set groups=3 --set servers=1 --set train.batch=7 $slow
once bounded 3 2 --set groups=2 --set servers=1 --set policy=bounded $slow
once sync 6 2 --set groups=2 --set servers=2 --set policy=sync $slow

# A fast group takes what a slow one leaves, and does not wait for it.
[ "$(steps grouped 0)" -ge $((2 * $(steps grouped 1))) ] ||
    is "steps of the fast group" "$(steps grouped 0)" \
        "twice those of the slow one, $(steps grouped 1)"
is "steps of all" $(($(steps grouped 0) + $(steps grouped 1))) \
    "$(field grouped steps)"

# And so after a stop: what was not used is leased again, nothing twice.
train 3 half --set groups=2 --set servers=1 --set train.steps=20 $slow \
    --set optimizer.rate=1e-12 --set optimizer.momentum=0
is "half: exit code" "$code" 0
once half 3 2 --set groups=2 --set servers=1 $slow --resume auto
finish
