# Steps and samples beyond 31 and 32 bits: a run that goes on from there does
# what it does from where it really stood.
. "$(dirname "$0")/lib.bash"

keys="--set data.train_samples=1002 --set train.batch=3 --set train.epochs=0
    --set eval.every=0 --set checkpoint.every=0"

# little NUMBER: its 8 bytes, as they lie in a file.
little() {
    local n=$1 i
    for i in 1 2 3 4 5 6 7 8; do
        printf '\\x%02x' $((n & 255))
        n=$((n >> 8))
    done
}

# change FILE FROM TO: the one number of 8 bytes in it that is FROM.
change() {
    local at
    at=$(LC_ALL=C grep -obUaP "$(little "$2")" "$1" | cut -d: -f1)
    is "places of $2" "$(echo "$at" | wc -w)" 1
    printf "$(little "$3")" |
        dd of="$1" bs=1 seek="$at" conv=notrunc status=none
}

# beyond BITS RANKS ARG...: 1,237 steps of 3 samples, the same with the counters
# of its checkpoint set to just below 2^BITS, and 20 steps more of both.
beyond() {
    local bits=$1 ranks=$2
    local steps=$(((1 << bits) - 7)) samples=$(((1 << bits) - 31))
    shift 2
    train "$ranks" near $keys --set train.steps=1237 "$@"
    is "near: exit code" "$code" 0
    cp -r "$work/near" "$work/far"
    mv "$work/far/checkpoints/step_1237" "$work/far/checkpoints/step_$steps"
    change "$work/far/checkpoints/step_$steps/manifest.h5" 1237 "$steps"
    change "$work/far/checkpoints/step_$steps/manifest.h5" 3711 "$samples"

    train "$ranks" near $keys --set train.steps=1257 --resume auto "$@"
    is "near: exit code" "$code" 0
    train "$ranks" far $keys --set train.steps=$((steps + 20)) --resume auto "$@"
    is "far $bits: exit code" "$code" 0
    is "far $bits: steps" "$(field far steps)" $((steps + 20))
    is "far $bits: samples" "$(field far samples_seen)" $((samples + 60))
    [ -d "$work/far/checkpoints/step_$((steps + 20))" ] ||
        is "far $bits: its checkpoint" absent there
    losses near | tail -20 >"$work/near.losses"
    losses far | tail -20 |
        awk -v by=$((steps - 1237)) '{ print $1 - by, $2 }' >"$work/far.losses"
    cmp -s "$work/near.losses" "$work/far.losses" ||
        close "losses $bits" 0 "$work/near.losses" "$work/far.losses"
    is "last step" "$(tail -1 "$work/near.losses" | cut -d' ' -f1)" 1256
    rm -r "$work/near" "$work/far"
}

beyond 31 1
beyond 32 2 --set servers=1 --set groups=1
finish
