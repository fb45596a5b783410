#!/usr/bin/env bash
# Sums and spreads of a group by MPI's collectives and by our own
# (exchange.collectives): the exchange alone (cohort bench --exchange) of 64 MiB
# of parameters in blocks of 1 MiB, in a group of 2 and of 4 workers of one
# thread, without a server and with one beside them. Both kinds take turns;
# printed is the median step of each, the least of ROUNDS.
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
mib=64

# Its network is nothing: the sizes are made up.
cat >"$work/job.yaml" <<'YAML'
groups: 1
train: {batch: 1}
data: {kind: synthetic, classes: 2}
compute: {threads: 1, algorithm: direct}
model: {input: [1, 4, 4], layers: [dense: {units: 2}, softmax_cross_entropy]}
YAML

# step_ms KIND WORKERS SERVERS
step_ms() {
    $mpiexec -n $(($2 + $3)) "$cohort" bench "$work/job.yaml" --exchange \
        --json --largest $mib --set servers="$3" \
        --set exchange.collectives="$1" >"$work/out" 2>&1 ||
        { cat "$work/out"; exit 1; }
    awk -F'[:,]' -v bytes=$((mib << 20)) '
        /"parameter_bytes"/ { here = $2 + 0 == bytes }
        /"step_median_ms"/ && here { print $2 + 0; exit }' "$work/out"
}

least() { sort -g "$1" | head -1; }

for workers in 2 4; do
    for servers in 0 1; do
        rm -f "$work/mpi" "$work/own"
        for _ in $(seq "$rounds"); do
            for kind in mpi own; do
                step_ms "$kind" "$workers" "$servers" >>"$work/$kind"
            done
        done
        awk -v w="$workers" -v s="$servers" -v m="$(least "$work/mpi")" \
            -v o="$(least "$work/own")" 'BEGIN {
                printf "workers %d  servers %d   mpi %7.1f ms   own %7.1f ms" \
                       "   %.3f x\n", w, s, m, o, o / m }'
    done
done
