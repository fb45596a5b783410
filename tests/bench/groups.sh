#!/usr/bin/env bash
# What asynchrony costs in accuracy: the network of config/demo.yaml on
# Fashion-MNIST, equal samples, one synchronous group (batch 64) against 2, 4
# and 8 groups that do not wait for each other, with momentum 0.9 and
# momentum_auto. The rate of each is the best of one small grid, by a seed that
# is used for nothing else; printed is the median test accuracy of three others.
#
#     tests/bench/groups.sh [FOLDER]         COHORT= MPIEXEC= as in the Makefile
#
# Runs that FOLDER holds already are not made again.
set -eu
cd "$(dirname "$0")/../.."
cohort=$(realpath "${COHORT:-build/release/cohort}")
mpiexec=${MPIEXEC:-mpiexec.mpich}
made=$(mktemp -d)
work=${1:-$made}
mkdir -p "$work"
work=$(realpath "$work")
trap 'rm -rf "$made"' EXIT
rates="0.003 0.005 0.01 0.017 0.03"
tuning=9
seeds="1 2 3"

# accuracy GROUPS RATE SEED: of one run.
accuracy() {
    local name=g$1-r$2-s$3 servers=1
    [ "$1" != 1 ] || servers=0
    [ -f "$work/$name/summary.json" ] || OMP_NUM_THREADS=1 \
        $mpiexec -n $(($1 + servers)) "$cohort" train config/demo.yaml \
        --set run.out="$work" --set run.name="$name" --set run.seed="$3" \
        --set groups="$1" --set servers="$servers" --set compute.threads=1 \
        --set optimizer.momentum=0.9 --set optimizer.momentum_auto=true \
        --set optimizer.rate="$2" --set eval.every=0 --set checkpoint.every=0 \
        </dev/null >"$work/$name.out" 2>&1 || true # diverged: 0 below
    sed -n 's/.*"test_accuracy": \([0-9.]*\).*/\1/p' "$work/$name/summary.json" |
        grep . || echo 0
}

median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

printf '%-8s' groups
printf ' %9s' $rates
printf ' | %8s %s\n' rate 'accuracy, median and all'
for groups in 1 2 4 8; do
    best=0 rate=""
    printf '%-8s' "$groups"
    for r in $rates; do
        a=$(accuracy "$groups" "$r" "$tuning")
        printf ' %9s' "$a"
        if awk "BEGIN { exit !($a > $best) }"; then best=$a rate=$r; fi
    done
    all=""
    for seed in $seeds; do
        all="$all $(accuracy "$groups" "$rate" "$seed")"
    done
    printf ' | %8s %s:%s\n' "$rate" "$(median $all)" "$all"
done
