# Gradients and weights in 16 bits on their way: nearly the same losses, counted
# values, and servers that keep float32.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
steps="--set train.steps=20 --set optimizer.rate=0.002 --set exchange.block=65536"
one="$steps --set groups=1 --set servers=1 --set train.group_batch=24"
sync="$steps --set groups=2 --set servers=1 --set policy=sync --set train.batch=12"

# near RUN TOLERANCE RANKS PUSH REPLY ARG...: losses are near those of base.
near() {
    local run=$1 tolerance=$2 ranks=$3
    train "$ranks" "$run" --set exchange.push="$4" --set exchange.reply="$5" \
        "${@:6}"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    close "losses of base and $run" "$tolerance" "$work/base.losses" \
        "$work/$run.losses"
    if cmp -s "$work/base.losses" "$work/$run.losses"; then
        is "$run: losses" "the same to the last digit" "rounded"
    fi
}
count() { # RUN WAY KEY: of "narrowed" in the summary
    sed -n '/"'"$2"'": {/,/}/s/^ *"'"$3"'": "\{0,1\}\([a-z0-9]*\)"\{0,1\},\{0,1\}$/\1/p' \
        "$work/$1/summary.json"
}

# Rounding gradients moves weights a little; rounded weights can take another
# way through a relu or a pool.
train 3 base $one
losses base >"$work/base.losses"
is "steps" "$(wc -l <"$work/base.losses")" 20
is "base: narrowed" "$(grep -c narrowed "$work/base/summary.json")" 0
near bf_push 2e-3 3 bfloat16 float32 $one
near half_push 5e-4 3 float16 float32 $one
near bf_reply 5e-2 3 float32 bfloat16 $one
near half_reply 3e-2 3 float32 float16 $one
near sync_bf 5e-2 3 bfloat16 bfloat16 $sync
near sync_half 3e-2 3 float16 float16 $sync

# Each value pushed is counted once, whichever server it went to, and each one
# answered: to all pushes, and to each group before its first step; the pull for
# the test is exact. How old gradients are depends on the load of the machine.
train 5 async --set groups=2 --set servers=3 --set exchange.block=65536 \
    --set exchange.push=bfloat16 --set exchange.reply=float16 \
    --set optimizer.rate=0.04 --set optimizer.momentum=0 \
    --set optimizer.warmup=2 --set train.epochs=12 --set train.batch=4 \
    --set data.train_samples=1003 --set eval.every=0
is "async: exit code" "$code" 0
parameters=$(field async parameters)
pushed=$(($(field async steps) * parameters))
is "async: push" "$(count async push format)" bfloat16
is "async: reply" "$(count async reply format)" float16
is "async: values pushed" "$(count async push values)" "$pushed"
is "async: values answered" "$(count async reply values)" \
    $((pushed + 2 * parameters))
is "async: infinite" "$(count async push infinite)" 0
awk -v a="$(field async test_accuracy)" 'BEGIN { exit !(a > 0.55) }' ||
    is "async: accuracy above 0.55" "$(field async test_accuracy)" more

# What is tested are the servers' weights, not those that came to train on.
timeout 60 $MPIEXEC -n 1 "$cohort" eval "$work/async" --json >"$work/eval"
sed -n 's/^ *"loss": \([^,]*\),*$/test \1/p' "$work/eval" >"$work/eval.loss"
field async test_loss | sed 's/^/test /' >"$work/async.loss"
close "losses of the test and of the checkpoint" 1e-6 "$work/async.loss" \
    "$work/eval.loss"

# A stop, a resume and an evaluation change nothing.
long="$sync --set train.steps=0 --set exchange.push=bfloat16 --set exchange.reply=bfloat16"
train 3 whole $long --set train.epochs=2 --set eval.every=0
train 3 halves $long --set train.epochs=1 --set eval.every=0.5
train 3 halves $long --set train.epochs=2 --set eval.every=0.5 --resume auto
is "halves: exit code" "$code" 0
losses whole >"$work/whole.losses"
losses halves >"$work/halves.losses"
is "steps of whole" "$(wc -l <"$work/whole.losses")" 18
cmp -s "$work/whole.losses" "$work/halves.losses" ||
    is "halves: losses" different same

# Running statistics travel, too.
config=$here/batch_norm.yaml
for push in float32 bfloat16; do
    train 3 bn_$push --set groups=2 --set servers=1 --set policy=sync \
        --set exchange.push=$push --set exchange.reply=$push \
        --set optimizer.rate=0.002 --set train.epochs=2
    is "bn_$push: exit code" "$code" 0
    field bn_$push test_loss | sed 's/^/test /' >"$work/bn_$push.test"
done
close "test losses with batch_norm" 2e-2 "$work/bn_float32.test" \
    "$work/bn_bfloat16.test"
unset config

# Without servers there is no such way.
train 1 plain --set train.epochs=1
train 1 without --set train.epochs=1 --set exchange.push=float16 \
    --set exchange.reply=bfloat16
is "without: exit code" "$code" 0
losses plain >"$work/plain.losses"
losses without >"$work/without.losses"
cmp -s "$work/plain.losses" "$work/without.losses" ||
    is "without servers: losses" different same
is "without: narrowed" "$(grep -c narrowed "$work/without/summary.json")" 0

# Said before anything runs.
"$cohort" plan "$here/exchange.yaml" --set servers=1 --json \
    --set exchange.push=float16 >"$work/plan"
parameters=$(sed -n '1,/"parameters"/s/^ *"parameters": \([0-9]*\),$/\1/p' "$work/plan")
holds "plan: push" "$work/plan" "\"push_bytes\": $((2 * parameters)),"
holds "plan: reply" "$work/plan" "\"reply_bytes\": $((4 * parameters)),"
"$cohort" plan "$here/exchange.yaml" --set servers=1 \
    --set exchange.push=float16 >"$work/plan"
holds "plan" "$work/plan" "pushes .* \(float16\) a step, and gets .* \(float32\)"
timeout 120 $MPIEXEC -n 2 "$cohort" bench "$here/small.yaml" --exchange \
    --largest 4 --json --set servers=1 --set exchange.push=bfloat16 \
    --set compute.threads=1 >"$work/bench" 2>&1
is "bench: exit code" "$?" 0
holds "bench" "$work/bench" '"push": "bfloat16"'
holds "bench" "$work/bench" '"reply": "float32"'
finish
