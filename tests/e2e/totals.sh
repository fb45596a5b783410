# What the summary counts adds up: pushes, the staleness of each group, the load
# of each server; under every policy, with evaluations, short last pieces, and
# after a resume.
. "$(dirname "$0")/lib.bash"
config=$here/exchange.yaml

# row RUN GROUP: the sum of a group's histogram.
row() {
    sed -n '/"staleness"/,/server_load/p' "$work/$1/summary.json" |
        grep -E '^ *\[[0-9]' | sed -n "$(($2 + 1))p" | grep -oE '[0-9]+' |
        awk '{ s += $1 } END { print s }'
}

# told RUN GROUP: the steps of a group in the metrics.
told() {
    grep -cE '"type": "step".*"group": '"$2," "$work/$1/metrics.jsonl"
}

# add_up RUN SAMPLES STEPS_OF_GROUP_0 STEPS_OF_GROUP_1: of this job.
add_up() {
    local blocks=10
    is "$1: exit code" "$code" 0
    is "$1: samples" "$(field "$1" samples_seen)" "$2"
    is "$1: pushes" "$(field "$1" pushes)" $((($3 + $4) * blocks))
    is "$1: staleness of group 0" "$(row "$1" 0)" $(($3 * blocks))
    is "$1: staleness of group 1" "$(row "$1" 1)" $(($4 * blocks))
    sed -n '/"server_load"/,/\]/p' "$work/$1/summary.json" >"$work/load"
    is "$1: bytes of the servers" "$(sed -n 's/.*"bytes": \([0-9]*\),/\1/p' \
        "$work/load" | awk '{ s += $1 } END { print s, NR }')" \
        "$((4 * 147655)) 2"
    is "$1: ranks of the servers" "$(sed -n 's/.*"rank": \([0-9]*\),/\1/p' \
        "$work/load" | tr '\n' ' ')" "2 5 "
    awk -v all="$(field "$1" seconds)" '/busy_s/ { n += $2 > 0 && $2 < all }
        END { exit n != 2 }' "$work/load" ||
        is "$1: busy time of the servers" "$(cat "$work/load")" \
            "above 0, below $(field "$1" seconds)"
}

# 203 samples are 12 pieces of 16, and 11: 8 for one worker, 3 for the other.
for policy in async bounded; do
    keys="--set groups=2 --set servers=2 --set exchange.block=65536
        --set policy=$policy"
    train 6 $policy $keys
    is "$policy: steps" "$(field $policy steps)" 39
    add_up $policy 609 "$(told $policy 0)" "$(told $policy 1)"
    first0=$(told $policy 0) first1=$(told $policy 1)
    train 6 $policy $keys --set train.epochs=5 --resume auto
    is "$policy: steps, resumed" "$(field $policy steps)" 65
    add_up $policy 1015 $(($(told $policy 0) - first0)) \
        $(($(told $policy 1) - first1))
done

# Sync: 6 pieces of 32, and 11: none for the second group.
keys="--set groups=2 --set servers=2 --set exchange.block=65536
    --set policy=sync"
train 6 sync $keys
is "sync: steps" "$(field sync steps)" 21
add_up sync 609 21 18
train 6 sync $keys --set train.epochs=5 --resume auto
is "sync: steps, resumed" "$(field sync steps)" 35
add_up sync 1015 14 12
finish
