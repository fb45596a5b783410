# exchange.update: owners: members of a group update what they own and spread
# it; what is learnt is what all would learn by themselves.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
common="--set exchange.block=65536 --set optimizer.rate=0.004 --set train.group_batch=24"
owners="--set exchange.update=owners"

# run NAME RANKS [ARG]...
run() {
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" $common "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    field "$run" test_loss | sed 's/^/test /' >"$work/$run.test"
}
# same NAME OF RANKS [ARG]...
same() {
    local of=$2
    run "$1" "${@:3}" $owners
    close "losses of $of and $1" 1e-6 "$work/$of.losses" "$work/$1.losses"
    close "test losses of $of and $1" 1e-6 "$work/$of.test" "$work/$1.test"
}

run all 3
is "steps" "$(wc -l <"$work/all.losses")" 27
same three all 3
same root all 3 --set exchange.speakers=1
same two all 3 --set exchange.speakers=2
same alone all 1
same accumulated all 3 --set train.accumulate=2
adam="--set optimizer.rule=adam"
run all_adam 2 $adam
same adam all_adam 2 $adam
lamb="--set optimizer.rule=lamb --set exchange.placement=layer --set exchange.block=2097152"
run all_lamb 4 $lamb
same lamb all_lamb 4 $lamb
clip="--set optimizer.clip_norm=0.5"
run all_clip 2 $clip
same clip all_clip 2 $clip
lag="--set exchange.lag=1"
run all_lag 3 $lag
same lag all_lag 3 $lag
same mpi all 3 --set exchange.collectives=mpi
same mpi_lag all_lag 3 $lag --set exchange.collectives=mpi

# Each owner writes its part of a checkpoint, and reads it.
is "three: parts" "$(ls "$work"/three/checkpoints/step_27 | grep -c part_)" 3
run half 3 $adam $owners --set train.epochs=1
run half 3 $adam $owners --set train.epochs=3 --resume auto
run whole 3 $adam $owners
cmp -s "$work/half.losses" "$work/whole.losses" || is "half: losses" different same
train 3 half $common $adam --set train.epochs=4 --resume auto
is "not the owners of then: exit code" "$code" 2
holds "not the owners of then" "$work/half.out" "exchange.update, speakers and workers"
"$cohort" eval "$work/whole" >"$work/eval.out" 2>&1
is "eval: exit code" "$?" 0

train 3 best $common $owners --set eval.select=best
is "best: exit code" "$code" 0
train 3 lost $common $owners --set optimizer.rate=1e6
is "lost: exit code" "$code" 7
finish
