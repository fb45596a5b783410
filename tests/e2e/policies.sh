# How groups meet: bounded holds the lead over a slow group, sync is one big
# group.
. "$(dirname "$0")/lib.bash"

# One group waits 20 ms before each step, the others do not.
slow="--set testing.delay=0.02 --set train.epochs=6 --set data.train_samples=400"

held() { # RUN LEAD
    is "$1: exit code" "$code" 0
    is "$1: greatest lead" "$(field "$1" greatest_lead)" "$2"
    is "$1: samples" "$(field "$1" samples_seen)" 2400
}

train 3 two $slow --set groups=2 --set servers=1 --set policy=bounded \
    --set testing.slow_group=1
held two 4
# The slow one evaluates, too, after each epoch: nobody waits for that.
train 5 four $slow --set groups=4 --set servers=1 --set policy=bounded \
    --set testing.slow_group=0
held four 4
train 9 eight $slow --set groups=8 --set servers=1 --set policy=bounded \
    --set testing.slow_group=7
held eight 4
train 5 near $slow --set groups=2 --set group_size=2 --set servers=1 \
    --set policy=bounded --set policy_bound=1 --set testing.slow_group=1
held near 1
train 3 free $slow --set groups=2 --set servers=1 --set testing.slow_group=1
is "free: exit code" "$code" 0
[ "$(field free greatest_lead)" -gt 4 ] ||
    is "free: greatest lead" "$(field free greatest_lead)" "more than 4"

# Sync: the samples, losses and weights of one group that has them all. The
# last step of an epoch is 11 samples: none for the second of two groups.
big() { # RUN ARG...
    train 1 "$@" --set train.batch=24 --set train.epochs=3
    losses "$1" >"$work/$1.losses"
    field "$1" test_loss | sed 's/^/test /' >"$work/$1.test"
}
same() { # RUN RANKS OF ARG...
    local run=$1 ranks=$2 of=$3
    shift 3
    train "$ranks" "$run" --set policy=sync --set train.epochs=3 "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    field "$run" test_loss | sed 's/^/test /' >"$work/$run.test"
    close "losses of $of and $run" 1e-5 "$work/$of.losses" "$work/$run.losses"
    close "test losses of $of and $run" 1e-5 "$work/$of.test" "$work/$run.test"
    for key in steps samples_seen; do
        is "$run: $key" "$(field "$run" $key)" "$(field "$of" $key)"
    done
    is "$run: greatest lead" "$(field "$run" greatest_lead)" 0
}
two="--set groups=2"
big big
is "big: steps" "$(wc -l <"$work/big.losses")" 27
same sync_2x1+1 3 big $two --set servers=1 --set train.batch=12
same sync_2x2+2 6 big $two --set servers=2 --set train.batch=6
same sync_3x1+2 5 big --set groups=3 --set servers=2 --set train.batch=8 \
    --set testing.slow_group=1 --set testing.delay=0.01
adam="--set optimizer.rule=adam --set optimizer.rate=0.002"
big big_adam $adam
same sync_adam 4 big_adam $two --set servers=2 --set train.batch=12 $adam

# What every group pushed is in the histogram, and nothing is stale.
blocks=$(grep -oE 'in [0-9]+ blocks' "$work/sync_3x1+2.out" | grep -oE '[0-9]+')
is "sync_3x1+2: staleness" \
    "$(sed -n '/"staleness"/,/server_load/p' "$work/sync_3x1+2/summary.json" |
        grep -oE '[0-9]+' | awk '{ s += $1 } END { print s, NR }')" \
    "$(field sync_3x1+2 pushes) 3"
# The last step of an epoch has 8 + 3 + 0 samples: the third pushes nothing.
is "sync_3x1+2: pushes" "$(field sync_3x1+2 pushes)" $(((27 * 3 - 3) * blocks))

# Running statistics follow the mean of all workers, too.
config=$here/batch_norm.yaml
train 4 bn_big --set train.batch=6
losses bn_big >"$work/bn_big.losses"
train 5 bn_sync $two --set servers=1 --set train.batch=6 --set policy=sync
is "bn_sync: exit code" "$code" 0
losses bn_sync >"$work/bn_sync.losses"
head -40 "$work/bn_big.losses" >"$work/bn_big.first"
head -40 "$work/bn_sync.losses" >"$work/bn_sync.first"
close "losses with batch_norm" 1e-5 "$work/bn_big.first" "$work/bn_sync.first"
field bn_big validation_loss | sed 's/^/v /' >"$work/bn_big.v"
field bn_sync validation_loss | sed 's/^/v /' >"$work/bn_sync.v"
close "validation losses with batch_norm" 1e-5 "$work/bn_big.v" "$work/bn_sync.v"
unset config

# A stop and a resume change nothing.
train 3 half $two --set servers=1 --set train.batch=12 --set policy=sync \
    --set train.epochs=1
train 3 half $two --set servers=1 --set train.batch=12 --set policy=sync \
    --set train.epochs=3 --resume auto
is "half: exit code" "$code" 0
losses half >"$work/half.losses"
cmp -s "$work/half.losses" "$work/sync_2x1+1.losses" ||
    is "half: losses" different same

finish
