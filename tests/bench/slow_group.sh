#!/usr/bin/env bash
# What a group that is 5 x slower costs a fast one under async: steps a second of
# group 0 alone with one server, beside a group as fast as itself, and beside one
# that rests four of its steps before each (testing.delay; it computes as much a
# step, and sleeps the rest). The network of config/hep.yaml, one thread a worker;
# on two cores the first comparison also has what the cores are shared for.
# All three take turns; printed is the best of ROUNDS.
#
#     tests/bench/slow_group.sh [ROUNDS]     COHORT= MPIEXEC= as in the Makefile
set -eu
cd "$(dirname "$0")/../.."
cohort=$(realpath "${COHORT:-build/cohort}")
mpiexec=${MPIEXEC:-mpiexec.mpich}
rounds=${1:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1

# run RANKS NAME STEPS [ARG]...
run() {
    local ranks=$1 name=$2 steps=$3
    shift 3
    $mpiexec -n "$ranks" "$cohort" train config/hep.yaml --set run.out="$work" \
        --set run.name="$name" --set data.kind=synthetic --set data.classes=2 \
        --set train.batch=4 --set train.steps="$steps" --set servers=1 \
        --set compute.threads=1 --set eval.every=0 --set train.epochs=100 \
        --set data.train_samples=512 --set data.test_samples=8 \
        "$@" >"$work/$name.out" 2>&1 || { cat "$work/$name.out"; exit 1; }
}

# pace NAME GROUP: its steps a second, without the first five.
pace() {
    grep -E '"type": "step".*"group": '"$2," "$work/$1/metrics.jsonl" |
        sed 's/.*"seconds": \([0-9.]*\).*/\1/' |
        awk 'NR == 6 { first = $1 } { last = $1 }
             END { print (NR - 6) / (last - first) }'
}

most() { printf '%s\n' "$@" | sort -gr | head -1; }

alone="" even="" beside="" slow=""
for round in $(seq "$rounds"); do
    run 2 "alone$round" 30 --set groups=1
    alone="$alone $(pace "alone$round" 0)"
    run 3 "even$round" 60 --set groups=2
    even="$even $(pace "even$round" 0)"
    delay=$(awk -v a="$(most $alone)" 'BEGIN { print 4 / a }')
    run 3 "slow$round" 60 --set groups=2 --set testing.slow_group=1 \
        --set testing.delay="$delay"
    beside="$beside $(pace "slow$round" 0)"
    slow="$slow $(pace "slow$round" 1)"
done
alone=$(most $alone) even=$(most $even) beside=$(most $beside) slow=$(most $slow)
awk -v a="$alone" -v e="$even" -v b="$beside" -v s="$slow" 'BEGIN {
    printf "alone                       %8.3f steps/s\n", a
    printf "beside an equal group       %8.3f\n", e
    printf "beside a group of %8.3f  %8.3f  %.3f x alone, %.3f x beside an equal\n", s, b, b / a, b / e }'
