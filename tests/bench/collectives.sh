#!/usr/bin/env bash
# Sums and spreads of a group by MPI's collectives and by our own
# (exchange.collectives), 64 MiB of gradients in blocks of 1 MiB, 2 and 4
# workers of one thread. Both take turns; printed is the best time of each over
# ROUNDS.
#   sums    without a server: the step of a network that is one large layer, so
#           that next to nothing hides its sums
#   trips   with a server beside: until all have pushed and pulled (cohort bench
#           --exchange)
#
#     tests/bench/collectives.sh [ROUNDS]    COHORT= MPIEXEC= as in the Makefile
set -eu
cd "$(dirname "$0")/../.."
cohort=$(realpath "${COHORT:-build/release/cohort}")
mpiexec=${MPIEXEC:-mpiexec.mpich}
rounds=${1:-3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1 XDG_CACHE_HOME=$work/cache

cat >"$work/job.yaml" <<'YAML'
train: {batch: 1, steps: 25}
optimizer: {rule: sgd, rate: 1e-6, momentum: 0}
data: {kind: synthetic, classes: 2, train_samples: 512, test_samples: 8}
compute: {threads: 1, algorithm: direct}
eval: {every: 0}
model:
  input: [1, 64, 64]
  layers:
    - dense: {units: 4094}
    - dense: {units: 2}
    - softmax_cross_entropy
YAML

# sums KIND WORKERS: the median step but for the first five.
sums() {
    rm -rf "$work/run"
    $mpiexec -n "$2" "$cohort" train "$work/job.yaml" --set run.out="$work" \
        --set run.name=run --set groups=1 --set servers=0 \
        --set exchange.collectives="$1" >"$work/out" 2>&1 ||
        { cat "$work/out"; exit 1; }
    sed -n 's/.*"type": "step".*"seconds": \([0-9.]*\).*/\1/p' \
        "$work/run/metrics.jsonl" | tail -n +6 |
        awk 'NR > 1 { print 1000 * ($1 - last) } { last = $1 }' | sort -g |
        awk '{ x[NR] = $1 } END { print x[int((NR + 1) / 2)] }'
}

# trips KIND WORKERS
trips() {
    $mpiexec -n $(($2 + 1)) "$cohort" bench "$work/job.yaml" --exchange --json \
        --largest 64 --set groups=1 --set servers=1 \
        --set exchange.collectives="$1" >"$work/out" 2>&1 ||
        { cat "$work/out"; exit 1; }
    sed -n 's/.*"step_median_ms": \([0-9.]*\).*/\1/p' "$work/out" | tail -1
}

least() { sort -g "$1" | head -1; }

for workers in 2 4; do
    for what in sums trips; do
        : >"$work/mpi" && : >"$work/own"
        for _ in $(seq "$rounds"); do
            for kind in mpi own; do
                $what "$kind" "$workers" >>"$work/$kind"
            done
        done
        awk -v w="$what" -v n="$workers" -v m="$(least "$work/mpi")" \
            -v o="$(least "$work/own")" 'BEGIN {
                printf "%-6s %d workers   mpi %8.1f ms   own %8.1f ms   %.3f x\n",
                    w, n, m, o, o / m }'
    done
done
