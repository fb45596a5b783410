# Steps that groups make on weights of their own: exchange.every and elastic.
. "$(dirname "$0")/lib.bash"

# served RUN RANKS [ARG]...: with one server.
served() {
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" --set servers=1 "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
}

# counted RUN: all that was pushed has a staleness.
counted() {
    is "$1: staleness" "$(sed -n '/"staleness"/,/"server_load"/p' \
        "$work/$1/summary.json" | grep -o '[0-9][0-9]*' |
        awk '{ sum += $1 } END { print sum + 0 }')" "$(field "$1" pushes)"
}

# falls RUN
falls() {
    awk '{ l[NR] = $2 }
        END { for (i = 1; i <= 10; i++) { a += l[i]; z += l[NR + 1 - i] }
              exit !(z < a) }' "$work/$1.losses" ||
        is "$1: the last losses" higher lower
}

# One group: the same updates, whoever makes them, whenever they are sent; none
# is lost where it is evaluated, and at the end.
one() { # NAME TOLERANCE RANKS ARG...
    local name=$1 tolerance=$2 ranks=$3
    shift 3
    served $name.1 2 --set groups=1 --set train.group_batch=8 "$@"
    for every in 3 1000; do
        served $name.$every "$ranks" --set groups=1 --set exchange.every=$every \
            --set train.group_batch=8 "$@"
        close "$name: losses of every 1 and $every" "$tolerance" \
            "$work/$name.1.losses" "$work/$name.$every.losses"
        counted $name.$every
        for n in 1 $every; do
            field $name.$n test_loss | sed 's/^/test /' >"$work/$n.test"
        done
        close "$name: test losses of every 1 and $every" 1e-5 "$work/1.test" \
            "$work/$every.test"
    done
}
one plain 1e-6 2 --set optimizer.momentum=0
one momentum 1e-5 3
one adam 1e-5 2 --set optimizer.rule=adam --set optimizer.rate=0.003
one many 1e-5 3 --set train.accumulate=2 --set optimizer.clip_norm=0.5 \
    --set exchange.collectives=mpi
config=$here/batch_norm.yaml one norm 1e-5 2 --set train.epochs=1
# Changes of several groups added up would make running variances negative.
config=$here/batch_norm.yaml served norms 5 --set groups=4 --set exchange.every=20 \
    --set optimizer.momentum=0
falls norms
[ "$(field plain.1000 pushes)" -lt "$(field plain.1 pushes)" ] ||
    is "every 1000: pushes" "$(field plain.1000 pushes)" fewer
# It has no others to be in step with.
served nobody 2 --set groups=1 --set policy=sync --set train.group_batch=8 \
    --set exchange.every=1000 --set optimizer.momentum=0
[ "$(field nobody pushes)" -lt "$(field plain.1 pushes)" ] ||
    is "sync of one: pushes" "$(field nobody pushes)" fewer

# Groups that do not wait, and a slow one that is waited for.
served apart 4 --set groups=3 --set exchange.every=4 --set optimizer.momentum=0.5
falls apart
counted apart
served bounded 3 --set groups=2 --set exchange.every=4 --set policy=bounded \
    --set testing.slow_group=1 --set testing.delay=0.01
counted bounded
served narrow 5 --set groups=2 --set exchange.every=3 --set train.epochs=6 \
    --set exchange.push=bfloat16 --set exchange.reply=bfloat16 \
    --set optimizer.momentum=0.5
falls narrow
counted narrow

# Sync: models are averaged at each fifth step and the last: the same bits each
# time. 27 steps of 3 epochs, evaluated and saved between: 6 exchanges of 3
# groups, of one block.
averaged="--set groups=3 --set policy=sync --set exchange.every=5"
served sync 4 $averaged
served again 4 $averaged
cmp "$work/sync.losses" "$work/again.losses" ||
    is "sync: losses of a second run" others "the same"
falls sync
counted sync
is "sync: steps" "$(field sync steps)" 27
is "sync: pushes" "$(field sync pushes)" 18

# A checkpoint has all steps: the samples of a stopped run are used once.
served part 4 $averaged --set train.epochs=1
train 4 part --set servers=1 $averaged --resume auto
is "resumed: exit code" "$code" 0
holds "resumed" "$work/part.out" "optimizer state is not in a checkpoint"
is "resumed: steps" "$(field part steps)" 27
is "resumed: samples" "$(field part samples_seen)" 609

# It has no optimizer state to go on with as if it had, whatever the rule; and who
# is refused leaves the run as it was. The other way there is nothing to miss.
train 4 part --set servers=1 --set groups=3 --resume auto
is "resumed with every 1: exit code" "$code" 2
holds "resumed with every 1" "$work/part.out" "exchange.every.*the keys of then"
is "resumed with every 1: samples in the summary" "$(field part samples_seen)" 609
train 4 part --set servers=1 $averaged --set train.epochs=4 \
    --set optimizer.rule=adam --resume auto
is "resumed with another rule: exit code" "$code" 0

# A stop does not wait for them to exchange: it makes them, and is saved.
train 4 limited --set servers=1 --set groups=3 --set policy=sync \
    --set exchange.every=1000000 --set train.epochs=3000 --set run.time_limit=1
is "limited: exit code" "$code" 5
is "limited: pushes" "$(field limited pushes)" 3
is "limited: checkpoints" "$(ls "$work/limited/checkpoints")" "step_$(field limited steps)"

# Without momentum there is no state: resumed at an epoch's end, or not.
plain="--set groups=1 --set exchange.every=4 --set optimizer.momentum=0"
served whole 2 $plain
served stopped 2 $plain --set train.epochs=2
train 2 stopped --set servers=1 $plain --resume auto
losses stopped >"$work/stopped.losses"
close "losses of a whole and a resumed run" 1e-6 "$work/whole.losses" \
    "$work/stopped.losses"

# EASGD: both learn, the servers' weights too; and they alone are saved.
for every in 1 4; do
    served elastic$every 4 --set groups=3 --set exchange.elastic=0.25 \
        --set exchange.every=$every --set train.epochs=6 \
        --set optimizer.momentum=0.5
    falls elastic$every
    counted elastic$every
done
is "elastic: pushes" "$(field elastic1 pushes)" "$(field elastic1 steps)"
# One group goes on after an evaluation as if there had been none.
calm="--set groups=1 --set exchange.elastic=0.25 --set exchange.every=3"
served measured 2 $calm
served calm 2 $calm --set eval.every=0 --set checkpoint.every=0
cmp "$work/measured.losses" "$work/calm.losses" ||
    is "elastic: losses with evaluations" others "those without"
timeout 60 "$cohort" eval "$work/elastic4" --set compute.threads=1 \
    >"$work/eval.out" 2>&1
is "elastic: exit code of eval" "$?" 0

plan() { # ARG...
    "$cohort" plan "$here/small.yaml" --set servers=1 "$@" >"$work/plan"
}
plan --set exchange.every=20
holds "plan" "$work/plan" "MiB of changes \(float32\) every 20 steps, "
plan --set exchange.elastic=0.2
holds "plan" "$work/plan" "MiB of weights \(float32\) a step, "

train 2 refused --set groups=1 --set exchange.every=4
is "refused: exit code" "$code" 2
holds "refused" "$work/refused.out" "nobody to exchange with"
finish
