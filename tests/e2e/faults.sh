# Bad input of each kind: the right exit code, one message, and no traces.
. "$(dirname "$0")/lib.bash"

# fault CODE RANKS RUN PATTERN [ARG]...
fault() {
    local want=$1 ranks=$2 run=$3 pattern=$4
    shift 4
    train "$ranks" "$run" "$@"
    is "$run: exit code" "$code" "$want"
    holds "$run" "$work/$run.out" "$pattern"
    is "$run: messages" "$(grep -c '^cohort train:' "$work/$run.out")" 1
}

fault 2 2 unknown_key "did you mean train.batch" --set train.bacth=3
fault 2 2 bounds "optimizer.rate.*1e\+06" --set optimizer.rate=1e9
fault 2 1 two_sizes "model.input=.*2 given; 3 integers" --set model.input='[2,12]'
fault 2 2 pool "maxpool1.*1 x 1.*window" --set model.input='[1,1,1]'
fault 3 2 no_files "no file matches.*/nowhere" --set data.kind=hdf5 \
    --set data.train='/nowhere/*.h5'
fault 3 2 no_images "$here" --set data.kind=idx \
    --set data.train="$here/small.yaml" \
    --set data.train_labels="$here/small.yaml"
fault 4 2 few_ranks "servers 1 \+ groups 2 x group_size 1 = 3 ranks, but 2" \
    --set groups=2 --set servers=1
fault 4 5 many_ranks "servers 1 \+ groups 2 x group_size 1 = 3 ranks, but 5" \
    --set groups=2 --set servers=1 --set group_size=1
fault 2 2 no_server "servers" --set groups=2
fault 1 2 no_folder "/proc/nowhere" --set run.out=/proc/nowhere
for run in unknown_key bounds no_files few_ranks; do
    [ -e "$work/$run" ] && is "$run: run folder" made "not made"
done

# Numbers that are not finite: exit code 7 for all layouts, no checkpoint of it.
fault 7 1 diverged0 "not finite.*optimizer.rate" --set optimizer.rate=1e6
fault 7 2 diverged1 "not finite.*optimizer.rate" --set optimizer.rate=1e6
fault 7 5 diverged2 "not finite.*optimizer.rate" --set optimizer.rate=1e6 \
    --set groups=2 --set group_size=2 --set servers=1
is "diverged2: summary" "$(field diverged2 exit_code)" 7
# The last update, which only the test at the end sees, and eval.
fault 7 1 diverged3 "not finite.*optimizer.rate" --set optimizer.rate=1e6 \
    --set optimizer.weight_decay=1000 --set train.steps=2
"$cohort" eval "$work/diverged3" >"$work/eval" 2>&1
is "diverged3: eval: exit code" "$?" 7
holds "diverged3: eval" "$work/eval" "weights of step 2 are not finite"

# Usage.
for words in "frob" "train" "train --frob" "train a b" "plan" "help frob" ""; do
    "$cohort" $words >"$work/usage" 2>&1 </dev/null
    is "usage '$words': exit code" "$?" 2
done
"$cohort" help >"$work/usage"
is "help: exit code" "$?" 0
holds "help" "$work/usage" "cohort train"
"$cohort" plan "$here/none.yaml" >"$work/usage" 2>&1
is "no config: exit code" "$?" 2
holds "no config" "$work/usage" "none.yaml.*No such file"

# A rank that falls silent: found by the deadline, told in the summary, exit
# code 6 (what the launcher makes of it is its own).
timeout 60 $MPIEXEC -n 3 "$cohort" train "$here/small.yaml" \
    --set run.out="$work" --set run.name=silent --set groups=2 \
    --set servers=1 --set train.epochs=1e7 --set exchange.timeout=4 \
    >"$work/silent.out" 2>&1 &
pid=$!
for i in $(seq 100); do
    [ -d "$work/silent/checkpoints/step_26" ] && break
    sleep 0.1
done
# Ranks are the only processes called cohort with this run's name; the first
# is rank 0.
for p in $(pgrep -f "run.out=$work --set run.name=silent" | sort -n); do
    [ "$(cat "/proc/$p/comm" 2>/dev/null)" = "$(basename "$cohort")" ] || continue
    kill -STOP "$p"
    stopped=$p
    break
done
wait $pid
kill -KILL "${stopped:-$pid}" 2>/dev/null
is "silent: summary" "$(field silent exit_code)" 6
holds "silent" "$work/silent/summary.json" "group 0 .rank|group 0 \(root rank 0\)"
finish
