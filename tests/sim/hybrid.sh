# Two groups of three workers and two servers: every sample once, as policies
# and clocks say.
. "$(dirname "$0")/../e2e/lib.bash"

config=$here/exchange.yaml # several blocks
hybrid="--set groups=2 --set servers=2 --set optimizer.rate=0.05
    --set optimizer.momentum=0 --set train.epochs=8 --set data.train_samples=200
    --set checkpoint.every=0 --set eval.every=0"

# step_s RUN GROUP: how long a step of the group took, its first one left out.
step_s() {
    sed -n 's/.*"type": "step", "seconds": \([^,]*\),.*"group": '"$2"',.*/\1/p' \
        "$work/$1/metrics.jsonl" |
        awk 'NR == 1 { first = $1 } { last = $1 }
             END { printf "%.9f\n", (last - first) / (NR - 1) }'
}

# within WHAT GOT FROM TO
within() {
    awk -v got="$2" -v from="$3" -v to="$4" \
        'BEGIN { exit !(got >= from && got <= to) }' ||
        is "$1" "$2" "between $3 and $4"
}

# 200 samples are 8 steps of 24 and one of 8. A checkpoint would wait for
# both groups, so there is one only at the end.
train 8 even $hybrid
is "exit code" "$code" 0
is "samples" "$(field even samples_seen)" 1600
is "steps" "$(field even steps)" 72
losses even >"$work/even.losses"
within "the last loss" "$(tail -n 1 "$work/even.losses" | cut -d ' ' -f 2)" 0 \
    "$(awk 'NR == 1 { print $2 / 2 }' "$work/even.losses")"

mv "$work/even" "$work/first"
train 8 even $hybrid
cmp "$work/first/metrics.jsonl" "$work/even/metrics.jsonl" ||
    is "a second run" differs equal

# A step computes for 8 ms; one group waits another 32 before each. The other
# does not feel it, but as the run ends.
train 8 uneven $hybrid --set testing.slow_group=1 --set testing.delay=0.032
is "uneven: exit code" "$code" 0
is "uneven: samples" "$(field uneven samples_seen)" 1600
fast=$(step_s uneven 0) alone=$(step_s even 0)
within "seconds a step beside a slow group" "$fast" 0 \
    "$(awk "BEGIN { print 1.05 * $alone }")"
within "seconds a step of the slow group" "$(step_s uneven 1)" 0.040 0.060

train 8 bounded $hybrid --set testing.slow_group=1 --set testing.delay=0.032 \
    --set policy=bounded
is "bounded: exit code" "$code" 0
is "bounded: samples" "$(field bounded samples_seen)" 1600
is "bounded: greatest lead" "$(field bounded greatest_lead)" 4

# Sync: the losses of one group that has all workers, with servers or without.
one="--set train.group_batch=24 --set train.steps=20"
train 8 sync $hybrid --set policy=sync --set train.group_batch=12 \
    --set train.steps=20
train 8 served $hybrid $one --set groups=1
train 6 plain $hybrid $one --set groups=1 --set servers=0
for run in sync served plain; do
    losses $run >"$work/$run.losses"
done
is "steps" "$(wc -l <"$work/plain.losses")" 20
close "losses with and without servers" 1e-6 "$work/served.losses" \
    "$work/plain.losses"
close "losses of two groups and one" 1e-6 "$work/sync.losses" \
    "$work/plain.losses"
finish
