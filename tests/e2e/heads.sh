# Several losses, targets, and images without labels: the terms are written, sum
# to the loss, and fall; groups do not change what is learnt; eval knows no
# accuracy without a classifier.
. "$(dirname "$0")/lib.bash"
config=$here/heads.yaml

train 1 one
is "one: exit code" "$code" 0
is "one: status" "$(field one status)" done
is "one: accuracy" "$(field one test_accuracy)" ""
holds "one" "$work/one.out" "test after step [0-9]+: loss [0-9.]+  \(31 samples\)"
count=$(sed -n 's/.*"losses": {\([^}]*\)}.*/\1/p' "$work/one/metrics.jsonl" |
    wc -l)
is "one: steps with losses" "$count" "$(field one steps)"

# The four terms sum to the loss of their step.
sed -n 's/.*"loss": \([^,]*\),.*"losses": {"kinds": \([^,]*\), "objects": \([^,]*\), "places": \([^,]*\), "images": \([^}]*\)}.*/\1 \2 \3 \4 \5/p' \
    "$work/one/metrics.jsonl" >"$work/terms"
awk '{ d = $1 - $2 - $3 - $4 - $5; if (d < 0) d = -d; if (d > 1e-6 * $1) bad++ }
     END { exit bad > 0 || NR == 0 }' "$work/terms" ||
    is "one: sums of terms" wrong right
awk 'NR == 1 { first = $1 } { last = $1 } END { exit !(last < 0.8 * first) }' \
    "$work/terms" || is "one: the loss" "not falling" falling

# The same samples on two workers, and again: the same losses.
train 2 two --set train.group_batch=6
train 2 again --set train.group_batch=6
is "two: exit code" "$code" 0
losses one >"$work/one.losses"
losses two >"$work/two.losses"
losses again >"$work/again.losses"
close "one worker and two" 1e-4 "$work/one.losses" "$work/two.losses"
cmp -s "$work/two.losses" "$work/again.losses" || is "again" different same

# A hybrid, and its checkpoint.
train 5 hybrid --set groups=2 --set servers=1
is "hybrid: exit code" "$code" 0
"$cohort" eval "$work/hybrid" --json >"$work/eval" 2>&1
is "eval: exit code" "$?" 0
holds "eval" "$work/eval" '"loss": [0-9]'
grep -q accuracy "$work/eval" && is "eval: accuracy" there absent

# The best weights are chosen by the loss.
train 1 best --set eval.select=best
is "best: exit code" "$code" 0
holds "best" "$work/best/summary.json" '"best_score": 0\.[0-9]'

# Files have no targets.
train 1 files --set data.kind=idx --set data.train=x --set data.train_labels=y
[ "$code" = 0 ] && is "files: exit code" 0 "not 0"
finish
