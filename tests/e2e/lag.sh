# exchange.lag: 1: a step is calculated on the weights before the last update,
# whoever makes and spreads the updates; two steps that start from the same
# weights are one of twice the samples and rate.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
slow="--set optimizer.rate=0.004" # else rounding grows
lag="--set exchange.lag=1 --set exchange.block=65536"

# run NAME RANKS [ARG]...
run() {
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" $lag "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    field "$run" test_loss | sed 's/^/test /' >"$work/$run.test"
}
# same NAME RANKS [ARG]...: as one worker, over saves and evaluations.
same() {
    run "$@" $slow
    close "losses of alone and $1" 1e-6 "$work/alone.losses" "$work/$1.losses"
    close "test losses of alone and $1" 1e-6 "$work/alone.test" "$work/$1.test"
}

plain="--set optimizer.momentum=0"
two="--set train.batch=12 --set train.steps=2"
run pair 1 $plain $two
train 1 one $plain --set train.batch=24 --set train.steps=1 --set optimizer.rate=0.04
field one test_loss | sed 's/^/test /' >"$work/one.test"
close "test losses after two steps at once" 1e-6 "$work/one.test" "$work/pair.test"
run pair_served 2 $plain $two --set servers=1
close "the same with a server" 1e-6 "$work/one.test" "$work/pair_served.test"

run alone 1 --set train.group_batch=24 $slow
is "steps" "$(wc -l <"$work/alone.losses")" 27
train 1 prompt --set train.group_batch=24 $slow
losses prompt >"$work/prompt.losses"
cmp -s "$work/prompt.losses" "$work/alone.losses" && is "alone: losses" "as without a lag" different
same members 3 --set train.group_batch=24
same large 3 --set train.group_batch=24 --set exchange.block=1048576
same served 2 --set train.group_batch=24 --set servers=1
same root 4 --set train.group_batch=24 --set servers=1 --set exchange.speakers=1
same servers 5 --set train.group_batch=24 --set servers=2
same delayed 3 --set train.group_batch=24 --set servers=1 --set testing.slow_group=0 \
    --set testing.delay=0.01
same accumulated 3 --set train.group_batch=24 --set servers=1 --set train.accumulate=2
same mpi 4 --set train.group_batch=24 --set servers=1 --set exchange.collectives=mpi
same together 4 --set train.group_batch=12 --set servers=2 --set groups=2 --set policy=sync
same clipped 3 --set train.group_batch=24 --set servers=1 --set optimizer.clip_norm=1e20

# Every push of a step is one update late, but for the first on weights that
# were all here: at the start, and after each save and evaluation.
late=$(sed -n '/"staleness"/,/\]/p' "$work/served/summary.json" | grep -oE '[0-9]+' | tr '\n' ' ')
awk -v bins="$late" 'BEGIN { split(bins, b); exit !(b[2] > 5 * b[1] && b[1] > 0 && b[3] == "") }' ||
    is "served: staleness" "$late" "mostly 1"

# Groups apart.
run apart 5 --set train.batch=4 --set servers=1 --set groups=2 --set group_size=2 \
    --set policy=bounded --set policy_bound=1 --set optimizer.rate=0.003
is "apart: samples" "$(field apart samples_seen)" 609

# A stop and a resume change nothing, whoever holds the weights.
for n in 0 1; do
    run half$n $((2 + n)) --set train.group_batch=24 --set servers=$n --set train.epochs=1
    run half$n $((2 + n)) --set train.group_batch=24 --set servers=$n --set train.epochs=3 \
        --resume auto
    run whole$n $((2 + n)) --set train.group_batch=24 --set servers=$n
    cmp -s "$work/half$n.losses" "$work/whole$n.losses" ||
        is "half, $n servers: losses" different same
done

# A gradient that is not finite, data that cannot be read: the run ends.
train 3 lost $lag --set servers=1 --set optimizer.rate=1e6
is "lost: exit code" "$code" 7
train 4 lost_sync $lag --set servers=2 --set groups=2 --set policy=sync --set optimizer.rate=1e6
is "lost_sync: exit code" "$code" 7
finish
