#!/usr/bin/env bash
# What the exchange adds to a step: one group of two workers of one thread,
# without a server and with one beside them, against two runs of one worker side
# by side. The network of config/hep.yaml, batch 8 a worker; on two cores.
# All three take turns; printed is the mean step of each, the least of ROUNDS.
#
#     tests/bench/group.sh [ROUNDS]          COHORT= MPIEXEC= as in the Makefile
set -eu
cd "$(dirname "$0")/../.."
cohort=$(realpath "${COHORT:-build/cohort}")
mpiexec=${MPIEXEC:-mpiexec.mpich}
rounds=${1:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

# run RANKS NAME [ARG]...
run() {
    local ranks=$1 name=$2
    shift 2
    $mpiexec -n "$ranks" "$cohort" train config/hep.yaml --set run.out="$work" \
        --set run.name="$name" --set data.kind=synthetic --set data.classes=2 --set train.batch=8 \
        --set train.steps=30 --set compute.threads=1 --set eval.every=0 \
        --set data.train_samples=512 --set data.test_samples=8 \
        "$@" >"$work/$name.out" 2>&1 || { cat "$work/$name.out"; exit 1; }
}

# Milliseconds a step, without the first five.
step_ms() {
    sed -n 's/.*"type": "step".*/&/p' "$work/$1/metrics.jsonl" |
        sed 's/.*"seconds": \([0-9.]*\).*/\1/' |
        awk 'NR == 6 { first = $1 } { last = $1 }
             END { print 1000 * (last - first) / (NR - 6) }'
}

least() { printf '%s\n' "$@" | sort -g | head -1; }

apart="" group="" served=""
for round in $(seq "$rounds"); do
    run 1 "a$round" --set groups=1 --set servers=0 &
    run 1 "b$round" --set groups=1 --set servers=0
    wait
    run 2 "group$round" --set groups=1 --set servers=0
    run 3 "served$round" --set groups=1 --set servers=1
    a=$(step_ms "a$round") b=$(step_ms "b$round")
    apart="$apart $(awk "BEGIN { print ($a + $b) / 2 }")"
    group="$group $(step_ms "group$round")"
    served="$served $(step_ms "served$round")"
done
apart=$(least $apart) group=$(least $group) served=$(least $served)
awk -v a="$apart" -v g="$group" -v s="$served" 'BEGIN {
    printf "two runs of one worker        %8.1f ms a step\n", a
    printf "one group of two workers      %8.1f ms  %.3f x\n", g, g / a
    printf "the same beside one server    %8.1f ms  %.3f x\n", s, s / a }'
