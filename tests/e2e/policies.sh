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
train 5 near $slow --set groups=2 --set group_size=2 --set servers=1 \
    --set policy=bounded --set policy_bound=1 --set testing.slow_group=1
held near 1
train 3 free $slow --set groups=2 --set servers=1 --set testing.slow_group=1
is "free: exit code" "$code" 0
[ "$(field free greatest_lead)" -gt 4 ] ||
    is "free: greatest lead" "$(field free greatest_lead)" "more than 4"
finish
