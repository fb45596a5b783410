# The same global batch gives the same losses, whatever the number of workers;
# dropout on, 20 steps, 1e-5 relative.
. "$(dirname "$0")/lib.bash"

for n in 1 2 4; do
    train $n group$n --set train.group_batch=24 --set train.steps=20
    is "group$n: exit code" "$code" 0
    losses group$n >"$work/$n"
done
is "steps" "$(wc -l <"$work/1")" 20
close "losses of 1 and 2 workers" 1e-5 "$work/1" "$work/2"
close "losses of 1 and 4 workers" 1e-5 "$work/1" "$work/4"

# One group behind servers takes the same steps.
train 4 served --set train.group_batch=24 --set train.steps=20 \
    --set groups=1 --set servers=2
losses served >"$work/s"
close "losses without and with servers" 1e-5 "$work/1" "$work/s"

# Unequal members, 5 + 3 samples, are one worker with 8.
few="--set data.train_samples=8 --set train.epochs=20"
train 1 eight $few --set train.batch=8
train 2 unequal $few --set train.batch=5
losses eight >"$work/8"
losses unequal >"$work/5+3"
is "steps of unequal members" "$(wc -l <"$work/5+3")" 20
close "losses of 8 and 5 + 3 samples" 1e-5 "$work/8" "$work/5+3"
finish
