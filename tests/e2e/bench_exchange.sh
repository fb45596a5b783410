# `cohort bench --exchange`: every promised key with a number that is one, for
# several layouts; launches and words that do not fit are told. No timing is
# asserted.
. "$(dirname "$0")/lib.bash"

bench() { # RANKS [ARG]...: output in $work/out, exit code in $code
    timeout 120 $MPIEXEC -n "$1" "$cohort" bench "$here/small.yaml" --exchange \
        --set compute.threads=1 "${@:2}" >"$work/out" 2>&1
    code=$?
}

has() { # KEY VALUE: wherever it stands
    is "$1" "$(sed -n 's/^ *"'"$1"'": \([^,]*\),\{0,1\}$/\1/p' "$work/out" |
        sort -u)" "$2"
}

number() { # KEY: a number greater than 0
    sed -n 's/^ *"'"$1"'": \([0-9.e+-]*\),\{0,1\}$/\1/p' "$work/out" |
        awk '$1 <= 0 { bad = 1 } END { exit bad || NR == 0 }' ||
        is "$1" "$(grep "\"$1\"" "$work/out")" "a number above 0"
}

# One worker; small.yaml has no server and gets one.
bench 2 --largest 16 --json
is "exit code" "$code" 0
has servers 1
is "rows" "$(grep -c push_pull "$work/out")" 2
for key in memcpy_gb_s parameter_bytes ranks workers speakers blocks \
    block_bytes steps step_ms step_median_ms push_pull_gb_s memcpy_share \
    compute_ms; do
    number $key
done
if command -v python3 >/dev/null; then
    # libraries of MPI may have said something before
    sed -n '/^{/,$p' "$work/out" | python3 -m json.tool >"$work/json" 2>&1
    is "JSON" "$?" 0
fi

holds "exposed" "$work/out" '"exposed": 0'

# A group of two without servers: everybody updates.
bench 2 --largest 4 --json --set group_size=2
is "group: exit code" "$code" 0
has servers 0
has workers 2

# So too where members own the weights, who are as many as the launch gives.
bench 3 --largest 4 --json --set exchange.update=owners
is "owners: exit code" "$code" 0
has servers 0
has speakers 3

# Groups, members, servers, speakers.
bench 6 --largest 4 --json --set groups=2 --set group_size=2 --set servers=2 \
    --set exchange.block=262144 --set policy=sync
is "sync: exit code" "$code" 0
has ranks 6
has workers 4
has speakers 2
is "sync: bytes" "$(grep -c '"parameter_bytes": 4194304' "$work/out")" 1
has block_bytes 262144
has blocks 16

# A rule that takes layers; the placement is of no matter.
bench 4 --largest 4 --set servers=1 --set exchange.speakers=2 \
    --set optimizer.rule=lamb --set exchange.placement=layer
is "lamb: exit code" "$code" 0
holds "table" "$work/out" "^memcpy +[0-9.]+ GB/s"
holds "table" "$work/out" "^ +4 +4 +3 +1 +2 +1024 +[0-9.]+ +[0-9.]+ +[0-9.]+$"

bench 1
is "one rank: exit code" "$code" 4
holds "one rank" "$work/out" "start it with .srun -n 2. "
bench 2 --largest 3
holds "too small" "$work/out" "the smallest size is 4 MiB"
bench 2 --largest many
holds "no number" "$work/out" "must be a number of 1 or more"
is "said once" "$(grep -c "must be a number" "$work/out")" 1
"$cohort" bench "$here/small.yaml" --largest 4 >"$work/out" 2>&1
is "without --exchange: exit code" "$?" 2
finish
