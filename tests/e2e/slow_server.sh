# A server that is slow to answer holds its groups up, and nobody's memory grows
# meanwhile: what is on its way is bounded.
. "$(dirname "$0")/lib.bash"
config=$here/exchange.yaml

# lines: steps told so far.
lines() {
    cat "$work/slow/metrics.jsonl" 2>/dev/null | grep -c '"type": "step"'
}

# sample FILE STEPS: after so many steps, the memory of every rank: pid, KiB.
sample() {
    while kill -0 $pid && [ "$(lines)" -lt "$2" ]; do
        sleep 0.05
    done
    for p in $(pgrep -f "run.out=$work --set run.name=slow" | sort -n); do
        [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$(basename "$cohort")" ] ||
            continue
        echo "$p $(awk '/^VmRSS/ { print $2 }' "/proc/$p/status")"
    done >"$work/$1"
}

timeout 100 $MPIEXEC -n 4 "$cohort" train "$config" --set run.out="$work" \
    --set run.name=slow --set compute.threads=1 --set groups=2 \
    --set servers=2 --set optimizer.rate=1e-4 --set exchange.block=65536 \
    --set train.batch=1 --set train.epochs=1000000 --set eval.every=0 \
    --set checkpoint.every=0 --set run.report_every=0.05 \
    --set testing.slow_server=1 --set testing.delay=0.002 \
    >"$work/slow.out" 2>&1 &
pid=$!
sample early 200
sample late 1000
kill -TERM "$(head -1 "$work/late" | cut -d' ' -f1)"
wait $pid
is "exit code" "$(field slow exit_code)" 5
[ "$(field slow steps)" -ge 1000 ] || is "steps" "$(field slow steps)" 1000
is "ranks that were looked at" "$(wc -l <"$work/early")" 4
is "ranks" "$(cut -d' ' -f1 "$work/late")" "$(cut -d' ' -f1 "$work/early")"
paste "$work/early" "$work/late" >"$work/both"
awk '{ if ($2 == 0 || $4 - $2 > 400) grew++ } END { exit grew > 0 }' "$work/both" || {
    is "memory in KiB (pid, step 200, pid, step 1000)" growing flat
    cat "$work/both"
}
finish
