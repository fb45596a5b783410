# batch_norm: running statistics are part of the model, for groups and servers;
# a batch without a variance is refused.
. "$(dirname "$0")/lib.bash"
config=$here/batch_norm.yaml

learns() { # RUN
    is "$1: exit code" "$code" 0
    # One class in three by chance; the test normalises by running statistics.
    awk -v a="$(field "$1" test_accuracy)" 'BEGIN { exit !(a > 0.6) }' ||
        is "$1: accuracy above 0.6" "$(field "$1" test_accuracy)" more
}
same_eval() { # RUN: eval knows the statistics of the checkpoint
    "$cohort" eval "$work/$1" --json >"$work/eval" 2>&1
    is "$1: eval" "$?" 0
    holds "$1: eval" "$work/eval" "\"accuracy\": $(field "$1" test_accuracy)"
    about "$1: eval: loss" \
        "$(sed -n 's/^ *"loss": \(.*\),$/\1/p' "$work/eval")" \
        "$(field "$1" test_loss)"
}

train 1 alone
learns alone
same_eval alone
train 2 pair
learns pair
same_eval pair
train 5 hybrid --set groups=2 --set servers=1 --set train.batch=4 \
    --set optimizer.momentum=0
learns hybrid
same_eval hybrid
train 2 adam --set servers=1 --set optimizer.rule=adam --set optimizer.rate=0.01
learns adam
same_eval adam

# Two workers normalise by other batches than one, and do so again.
train 2 again
losses pair >"$work/pair.losses"
losses again >"$work/again.losses"
cmp -s "$work/pair.losses" "$work/again.losses" || is "again" different same

# A run that was stopped and resumed is the run that was not.
train 2 half --set train.epochs=4
train 2 half --resume auto
is "half: exit code" "$code" 0
losses half >"$work/half.losses"
cmp -s "$work/pair.losses" "$work/half.losses" || is "half" different same
is "half: test loss" "$(field half test_loss)" "$(field pair test_loss)"

# A last batch of one sample is no trouble, and more workers than samples.
train 1 last --set data.train_samples=25
is "last: exit code" "$code" 0
train 4 few --set data.train_samples=3 --set train.batch=2
is "few: exit code" "$code" 0

# But a batch of one is, where a channel has one value.
train 1 one --set train.batch=1
is "one: exit code" "$code" 2
holds "one" "$work/one.out" "layer flat: its input is 16 x 1 x 1.*1 sample "
[ -e "$work/one" ] && is "one: its folder" there absent
train 2 three --set train.group_batch=3
is "three: exit code" "$code" 2
"$cohort" plan "$config" --set train.batch=1 >"$work/plan" 2>&1
is "plan: exit code" "$?" 2
holds "plan" "$work/plan" "layer flat.*raise train.batch"
"$cohort" bench "$config" --set train.batch=1 >"$work/bench" 2>&1
is "bench: exit code" "$?" 2

# What is counted: 12, 8 and 16 channels have two statistics each.
"$cohort" plan "$config" >"$work/plan"
holds "plan" "$work/plan" "batch_norm1 +12 x 12 x 12 +48 "
holds "plan" "$work/plan" "of them are trained, 72 are running statistics"
finish
