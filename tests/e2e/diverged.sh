# Policy sync, where each waits for the others' pushes: groups that diverge end
# the run, one of them or both, at a step or one after the other, with exit code
# 7 and one message.
. "$(dirname "$0")/lib.bash"

ends() { # RUN RANKS ARG...
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" --set groups=2 --set policy=sync \
        --set optimizer.rate=1e6 "$@"
    is "$run: exit code" "$code" 7
    is "$run: summary" "$(field "$run" exit_code)" 7
    is "$run: messages" "$(grep -c '^cohort train:' "$work/$run.out")" 1
    holds "$run" "$work/$run.out" "not finite.*optimizer.rate"
}

# Both have nothing finite at step 2.
ends both 3 --set servers=1 --set optimizer.weight_decay=1000
ends both_of_two 6 --set servers=2 --set optimizer.weight_decay=1000
# Other samples, so maybe other steps.
ends each 3 --set servers=1
ends each_of_two 6 --set servers=2 --set optimizer.rate=1e5
# One has heard of nothing, and begins late what the other failed in.
for slow in 0 1; do
    ends late$slow 6 --set servers=2 --set testing.slow_group=$slow \
        --set testing.delay=0.1
done
# The second has no samples: only the first can diverge, every time.
ends one 3 --set servers=1 --set data.train_samples=8 --set train.epochs=30 \
    --set optimizer.weight_decay=1000
ends one_of_two 6 --set servers=2 --set data.train_samples=10 \
    --set train.epochs=30
finish
