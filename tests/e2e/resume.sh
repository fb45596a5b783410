# A run that was stopped and resumed is the run that was not.
. "$(dirname "$0")/lib.bash"

parts() { # RUN STEP: what differs between checkpoints is nothing but names
    (cd "$work/$1/checkpoints/step_$2" && md5sum part_*.h5)
}

for layout in "1 0" "1 1" "1 2"; do
    set -- $layout
    shape="--set servers=$2 --set groups=$1"
    run=whole$2
    train $(($1 + $2)) $run $shape --set train.epochs=4
    is "$run: exit code" "$code" 0
    train $(($1 + $2)) half$2 $shape --set train.epochs=2
    train $(($1 + $2)) half$2 $shape --set train.epochs=4 --resume auto
    is "half$2: exit code" "$code" 0
    holds "half$2" "$work/half$2.out" "resuming from .*step_52"
    losses $run >"$work/a"
    losses half$2 >"$work/b"
    is "half$2: losses" "$(md5sum <"$work/b")" "$(md5sum <"$work/a")"
    is "half$2: weights" "$(parts half$2 104)" "$(parts $run 104)"
done

# A finished run has nothing to do.
train 1 half0 --set train.epochs=4 --resume auto
is "finished: exit code" "$code" 0
holds "finished" "$work/half0.out" "nothing to do"

# Without --resume its name is taken; another run's checkpoint may be used.
train 1 half0 --set train.epochs=4
is "taken name: exit code" "$code" 2
holds "taken name" "$work/half0.out" "exists.*--resume auto"
train 1 other --set train.epochs=5 --resume "$work/half0"
is "other's checkpoint: exit code" "$code" 0
is "other's checkpoint: samples" "$(field other samples_seen)" $((5 * 203))

# A checkpoint for another network or other servers is refused by name.
train 1 half0 --set train.epochs=9 --resume auto --set model.input='[2,13,13]'
is "other network: exit code" "$code" 2
holds "other network" "$work/half0.out" "another network"
train 3 half0 --set train.epochs=9 --resume auto --set servers=2
is "other servers: exit code" "$code" 2
holds "other servers" "$work/half0.out" "servers.*of then"

holds "a refused resume changes nothing" "$work/half0/config.yaml" \
    "train_samples: 203"
train 1 half0 --set train.epochs=9 --resume "$work/other"
is "another's checkpoint into a folder: exit code" "$code" 2

# The time limit: saved, exit code 5, and the rest done by the next job.
train 3 limited --set groups=2 --set servers=1 --set train.epochs=100000 \
    --set run.time_limit=1
is "time limit: exit code" "$code" 5
is "time limit: summary" "$(field limited exit_code)" 5
seen=$(field limited samples_seen)
step=$(field limited steps)
train 3 limited --set groups=2 --set servers=1 \
    --set train.steps=$((step + 30)) --set train.epochs=0 --resume auto
is "after the limit: exit code" "$code" 0
is "after the limit: steps" "$(field limited steps)" $((step + 30))
[ "$(field limited samples_seen)" -gt "$seen" ] || is "samples" more "$seen"

# SIGTERM does the same.
"$cohort" train "$here/small.yaml" --set run.out="$work" --set run.name=killed \
    --set train.epochs=1000000 >"$work/killed.out" 2>&1 &
pid=$!
for i in $(seq 100); do
    [ -d "$work/killed/checkpoints/step_26" ] && break
    sleep 0.1
done
kill -TERM $pid
wait $pid
is "SIGTERM: exit code" "$?" 5
is "SIGTERM: summary" "$(field killed exit_code)" 5

# A half-written checkpoint is passed over.
mkdir -p "$work/killed/checkpoints/step_999999.tmp" \
    "$work/killed/checkpoints/step_999998"
train 1 killed --set train.epochs=0 --set train.steps=1 --resume auto
is "half-written: exit code" "$code" 0
finish
