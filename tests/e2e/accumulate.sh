# Gradients added up over several batches: the steps of batches so many times
# as large, dropout on, with less memory for a network's values.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
small="--set exchange.block=65536"

# same NAME RANKS OF [ARG]...: the losses of a run are those of OF; the last step of an
# epoch is short.
same() {
    local run=$1 ranks=$2 of=$3
    shift 3
    train "$ranks" "$run" $small "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    close "losses of $of and $run" 1e-5 "$work/$of.losses" "$work/$run.losses"
    for key in steps samples_seen; do
        is "$run: $key" "$(field "$run" $key)" "$(field "$of" $key)"
    done
}

train 1 large $small --set train.batch=24
is "large: exit code" "$code" 0
losses large >"$work/large.losses"
is "large: steps" "$(wc -l <"$work/large.losses")" 27
same three 1 large --set train.batch=8 --set train.accumulate=3
# 12 samples are 5 + 5 + 2 of each member, in the last step 5 + 5 + 1 and none.
same members 2 large --set train.group_batch=24 --set train.accumulate=3
same uneven 2 large --set train.group_batch=24 --set train.accumulate=5
same served 4 large --set train.batch=4 --set train.accumulate=3 --set servers=2
same together 4 large --set train.batch=4 --set train.accumulate=3 \
    --set servers=2 --set groups=2 --set policy=sync
same clipped 2 large --set train.batch=4 --set train.accumulate=3 \
    --set optimizer.clip_norm=1e20

# Groups apart do as many samples.
train 3 apart $small --set train.batch=4 --set train.accumulate=3 \
    --set servers=1 --set groups=2 --set policy=bounded --set optimizer.rate=0.005
is "apart: exit code" "$code" 0
is "apart: samples" "$(field apart samples_seen)" 609

# A stop and a resume change nothing.
three="--set train.batch=8 --set train.accumulate=3"
train 1 half $small $three --set train.epochs=1
train 1 half $small $three --set train.epochs=3 --resume auto
is "half: exit code" "$code" 0
losses half >"$work/half.losses"
cmp -s "$work/half.losses" "$work/three.losses" ||
    is "half: losses" different same

# Running statistics: each batch is normalised by itself, and counts by its
# samples. Two members of one batch, or one of two.
config=$here/batch_norm.yaml
bn() { # RUN RANKS ARG...
    train "$2" "$1" "${@:3}"
    is "$1: exit code" "$code" 0
    losses "$1" >"$work/$1.losses"
    field "$1" validation_loss | sed 's/^/v /' >"$work/$1.v"
}
bn bn_two 2 --set train.batch=12
bn bn_twice 1 --set train.batch=12 --set train.accumulate=2
head -40 "$work/bn_two.losses" >"$work/bn_two.first"
head -40 "$work/bn_twice.losses" >"$work/bn_twice.first"
close "losses with batch_norm" 1e-5 "$work/bn_two.first" "$work/bn_twice.first"
close "validation losses with batch_norm" 1e-5 "$work/bn_two.v" "$work/bn_twice.v"
finish
