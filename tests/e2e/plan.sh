# `cohort plan`: the networks of the papers, to the last parameter, and every
# config of the tree; without MPI, without data.
. "$(dirname "$0")/lib.bash"
configs=$here/../../config

value() { # KEY
    sed -n 's/^ *"'"$1"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' "$work/plan"
}

"$cohort" plan "$configs/hep.yaml" --json >"$work/plan"
is "hep: exit code" "$?" 0
is "hep: parameters" "$(value parameters | head -1)" 594178
is "hep: bytes" "$(value parameter_bytes)" 2376712
# 3 x forward of 5,260,050,944, less the 346,816,512 of the first layer.
is "hep: flop" "$(value flop_per_image_step)" 15433336320
is "hep: flop with the first input gradient" "$(value flop_per_image_step_full)" \
    15780152832
"$cohort" plan "$configs/hep.yaml" >"$work/plan"
holds "hep" "$work/plan" "15.433 GFLOP.*15.780"
holds "hep" "$work/plan" "594178 \(2.267 MiB\)"

"$cohort" plan "$configs/climate.yaml" --json >"$work/plan"
is "climate: exit code" "$?" 0
is "climate: parameters" "$(value parameters | head -1)" 79201498
is "climate: bytes" "$(value parameter_bytes)" 316805992
# 3 x forward of 665,389,891,584, less the 22,196,256,768 of conv1.
is "climate: flop" "$(value flop_per_image_step)" 1973973417984
is "climate: flop with the first input gradient" \
    "$(value flop_per_image_step_full)" 1996169674752
"$cohort" plan "$configs/climate.yaml" >"$work/plan"
holds "climate" "$work/plan" "79201498 \(302.130 MiB\)"
holds "climate" "$work/plan" "deconv5  +16 x 768 x 768 +75280 +22.196257"

# A worker of the climate network fits 3 GiB with one image and 16 GiB with
# eight, in whatever way the passes are done.
most() { # BATCH GIB
    "$cohort" plan "$configs/climate.yaml" --json --set train.batch="$1" \
        >"$work/plan"
    is "climate, batch $1: passes" "$(value passes)" unmeasured
    awk -v b="$(value memory_per_worker)" -v gib="$2" \
        'BEGIN { exit !(b > 0 && b <= gib * 2^30) }' ||
        is "climate, batch $1: bytes" "$(value memory_per_worker)" "$2 GiB"
}
most 1 3
most 8 16

# Without its files a set is not counted, and the reason is given.
"$cohort" plan "$configs/hep.yaml" --set compute.algorithm=direct >"$work/plan"
holds "memory" "$work/plan" "MiB at most +a worker +a server"
holds "memory" "$work/plan" "^values: [0-9.]+ MiB to train, .*passes direct"
holds "memory" "$work/plan" "^data: not counted.*hep/train/\*.h5"

for config in "$configs"/*.yaml; do
    "$cohort" plan "$config" >"$work/plan" 2>&1
    is "$(basename "$config"): exit code" "$?" 0
done

"$cohort" plan "$configs/hep.yaml" --ranks 9 --json >"$work/plan"
is "9 ranks: group size" "$(value group_size)" 4
"$cohort" plan "$configs/hep.yaml" --ranks 10 --set servers=2 >"$work/plan"
holds "10 ranks" "$work/plan" "servers +rank 4, 9$"
"$cohort" plan "$configs/hep.yaml" --ranks 8 >"$work/plan" 2>&1
is "8 ranks: exit code" "$?" 4
holds "8 ranks" "$work/plan" "servers 1 \+ groups 2 x group_size 3 = 7 ranks"

"$cohort" help config --yaml | diff - "$configs/reference.yaml" >"$work/diff" ||
    is "config/reference.yaml" "old: make reference" "new"
finish
