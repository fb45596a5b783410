# Every layout ends, uses every sample once an epoch, and learns.
. "$(dirname "$0")/lib.bash"

check() { # RUN GROUPS SIZE SERVERS
    train $(($2 * $3 + $4)) "$1" --set groups="$2" --set group_size="$3" \
        --set servers="$4" --set train.epochs=12 --set train.batch=4 \
        --set data.train_samples=1003 --set optimizer.warmup=2 \
        --set optimizer.rate=0.04 --set optimizer.momentum=0
    is "$1: exit code" "$code" 0
    is "$1: status" "$(field "$1" status)" "done"
    is "$1: samples" "$(field "$1" samples_seen)" $((12 * 1003))
    # One class in three by chance. How old gradients are depends on the load
    # of the machine, and so does what is learnt from them.
    awk -v a="$(field "$1" test_accuracy)" 'BEGIN { exit !(a > 0.55) }' ||
        is "$1: accuracy above 0.55" "$(field "$1" test_accuracy)" more
    # Every pushed block is counted once in the staleness of its group.
    if [ "$4" -gt 0 ]; then
        got=$(sed -n '/"staleness"/,/server_load/p' "$work/$1/summary.json" |
            grep -oE '[0-9]+' | awk '{ s += $1 } END { print s }')
        blocks=$(grep -oE 'in [0-9]+ blocks' "$work/$1.out" | grep -oE '[0-9]+')
        is "$1: pushes" "$(field "$1" pushes)" $(($(field "$1" steps) * blocks))
        is "$1: staleness" "$got" "$(field "$1" pushes)"
    fi
}

check alone 1 1 0
check sync 1 3 0
check one_group 1 1 1
check hybrid 2 2 1
check async 4 1 2
check spread 2 1 3
finish
