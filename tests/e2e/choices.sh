# How the network is calculated is measured once a kind of node, kept in the
# cache, and stays what it was when a run is resumed.
. "$(dirname "$0")/lib.bash"
# A batch that is large enough to be measured.
large="--set train.batch=203 --set checkpoint.every=1"

choices() { # RUN: how many tables its file holds
    grep -c '^choices 2$' "$work/$1/choices.txt"
}

train 2 first $large --set train.epochs=2
is "first: exit code" "$code" 0
is "first: tables of two equal nodes" "$(choices first)" 1
is "first: rows" "$(grep -c '^layer ' "$work/first/choices.txt")" 3
holds "first" "$work/first.out" "passes of layers with weights: [0-9]+ [a-z_]+"
is "files in the cache" "$(ls "$XDG_CACHE_HOME/cohort" | wc -l)" 1
file=$(echo "$XDG_CACHE_HOME"/cohort/*)
is "cache" "$(md5sum <"$file")" "$(md5sum <"$work/first/choices.txt")"

# A cache that says otherwise is used by new runs, and not by old ones.
sed 's/^layer 0 .* conv2d1/layer 0 channels_last direct direct conv2d1/' \
    "$file" >"$work/other"
cp "$work/other" "$file"
before=$(md5sum <"$work/first/choices.txt")
train 2 first $large --set train.epochs=3 --resume auto
is "resumed: exit code" "$code" 0
is "resumed: choices" "$(md5sum <"$work/first/choices.txt")" "$before"
train 1 second $large --set train.epochs=1
is "second: choices" "$(md5sum <"$work/second/choices.txt")" \
    "$(md5sum <"$work/other")"
cp "$work/first/choices.txt" "$file"
train 1 second $large --set train.epochs=2 --resume auto
is "second, resumed: choices" "$(md5sum <"$work/second/choices.txt")" \
    "$(md5sum <"$work/other")"

# A damaged one is measured anew.
head -c 100 "$work/other" >"$file"
train 1 damaged $large --set train.epochs=1
is "damaged: exit code" "$code" 0
is "damaged: cache" "$(md5sum <"$file")" "$(md5sum <"$work/damaged/choices.txt")"

# No place for a cache is no error.
XDG_CACHE_HOME=/proc/none train 1 nowhere $large --set train.epochs=1
is "nowhere: exit code" "$code" 0
(
    unset XDG_CACHE_HOME HOME
    train 1 homeless $large --set train.epochs=1
    is "homeless: exit code" "$code" 0
    exit "$failures"
) || is "homeless" failed "not"

# What can be asked for.
for algorithm in direct winograd; do
    train 1 $algorithm $large --set train.epochs=1 \
        --set compute.algorithm=$algorithm
    is "$algorithm: exit code" "$code" 0
    losses $algorithm >"$work/$algorithm.losses"
done
holds "direct" "$work/direct.out" "weights: 8 direct;"
is "direct: table" "$(cat "$work/direct/choices.txt")" ""
close "losses of direct and Winograd" 1e-4 "$work/direct.losses" \
    "$work/winograd.losses"
train 1 wrong --set compute.algorithm=fast
is "unknown algorithm: exit code" "$code" 2
finish
