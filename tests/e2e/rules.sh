# Every update rule, over servers and without: the same updates, whoever makes
# them and however the parameters are placed.
. "$(dirname "$0")/lib.bash"

# rule NAME RATE [ARG]...: one worker alone, and one with two servers that have
# whole layers, train alike.
rule() {
    local rule=$1 rate=$2
    shift 2
    train 1 "$rule.alone" --set optimizer.rule="$rule" \
        --set optimizer.rate="$rate" --set exchange.placement=layer "$@"
    is "$rule: exit code" "$code" 0
    train 3 "$rule.served" --set optimizer.rule="$rule" --set servers=2 \
        --set optimizer.rate="$rate" --set exchange.placement=layer "$@"
    is "$rule with servers: exit code" "$code" 0
    losses "$rule.alone" >"$work/alone"
    losses "$rule.served" >"$work/served"
    close "$rule: losses alone and with servers" 1e-5 "$work/alone" \
        "$work/served"
    awk '{ if (NR == 1) first = $2; last = $2 } END { exit !(last < first) }' \
        "$work/alone" || is "$rule: the last loss" higher lower
}

rule sgd 0.02 --set exchange.block=65536
rule nesterov 0.02
rule adam 0.003
rule adamw 0.003 --set optimizer.weight_decay=0.1
rule lars 5 --set optimizer.weight_decay=1e-3
rule lamb 0.01 --set optimizer.weight_decay=0.01

# Where no other group comes between, there is no delay to compensate.
same="--set train.epochs=1 --set servers=1 --set groups=1"
train 2 sgd.one $same
losses sgd.one >"$work/one"
for rule in dcasgd dcasgd_a; do
    train 2 $rule.one $same --set optimizer.rule=$rule
    losses $rule.one | cmp - "$work/one" ||
        is "$rule, one group: losses" others "those of sgd"
    train 4 $rule.two --set groups=2 --set servers=2 --set optimizer.rule=$rule \
        --set optimizer.compensation=2 --set optimizer.momentum=0.5
    is "$rule: exit code" "$code" 0
    losses $rule.two | awk '{ l[NR] = $2 }
        END { for (i = 1; i <= 10; i++) { a += l[i]; z += l[NR + 1 - i] }
              exit !(z < a) }' || is "$rule: the last losses" higher lower
done

# How parameters are placed changes nothing for a rule of single weights.
train 3 balanced --set optimizer.rule=adam --set servers=2 \
    --set optimizer.rate=0.003
losses adam.served >"$work/layer"
losses balanced >"$work/even"
close "losses of both placements" 1e-5 "$work/layer" "$work/even"

# again RULE PLACEMENT: resume the run of lamb with these.
again() {
    train 3 lamb.served --set servers=2 --set optimizer.rate=0.01 \
        --set train.epochs=4 --set optimizer.weight_decay=0.01 --resume auto \
        --set optimizer.rule="$1" --set exchange.placement="$2"
}

# The state of a rule is of use to that rule, where its blocks were.
again lars layer
is "another rule: exit code" "$code" 2
holds "another rule" "$work/lamb.served.out" "another optimizer.rule"
again lamb balanced
is "lamb without whole layers: exit code" "$code" 2
holds "lamb without whole layers" "$work/lamb.served.out" "placement: layer"
again lamb layer
is "resumed: exit code" "$code" 0
holds "resumed" "$work/lamb.served.out" "resuming from .*step_78"

# Momentum by the number of groups.
four="--set groups=4 --set servers=1 --set optimizer.rate=0.001"
train 5 warned $four
is "warned: exit code" "$code" 0
holds warned "$work/warned.out" "warn +4 groups act like a momentum of 0.75"
train 5 auto $four --set optimizer.momentum_auto=true \
    --set optimizer.staleness=inverse
is "auto: exit code" "$code" 0
holds auto "$work/auto.out" "momentum 0.15 instead of 0.9, .* rate x 8.5"
if grep -q " warn " "$work/auto.out"; then
    is "auto: warnings" some none
fi
finish
