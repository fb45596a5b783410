# What can be calculated beforehand: losses and times of one group without
# servers, and that the simulation is the same in every run. The batch is the
# whole set, half of it odd: src/worker/timed.h.
. "$(dirname "$0")/../e2e/lib.bash"

known="--set train.steps=20 --set train.epochs=20 --set train.batch=8
    --set data.train_samples=64 --set optimizer.rule=sgd
    --set optimizer.rate=0.1 --set optimizer.momentum=0
    --set exchange.collectives=mpi"

train 8 eight $known
is "exit code" "$code" 0
is "steps" "$(field eight steps)" 20
is "samples" "$(field eight samples_seen)" 1280

# Of P parameters: loss = norm^2 / 2 + P / 8, the norm 1 - rate of the last.
sed -n 's/.*"loss": \([^,]*\), "gradient_norm": \([^,]*\),.*/\1 \2/p' \
    "$work/eight/metrics.jsonl" |
    awk -v parameters="$(field eight parameters)" '
        function off(a, b) { return a > b * (1 + 1e-5) || a < b * (1 - 1e-5) }
        off($1, $2 * $2 / 2 + parameters / 8) { bad = 1 }
        NR > 1 && off($2, 0.9 * norm) { bad = 1 }
        { norm = $2 }
        END { exit bad || NR != 20 }' || is "losses" "wrong" "as calculated"

# 8 images of 2 x 41,472 + 3 x 9,216 + 3 x 96 flop, at 1 GFLOP/s. Waiting: by
# MPI each rank's 19,308 bytes reach 7 others, at 1 GB/s; a millisecond would be
# too long.
is "time to compute a step" \
    "$(sed -n 's/.*"compute_s": \([^,]*\),.*/\1/p' \
        "$work/eight/metrics.jsonl" | sort -u)" 0.00088704
sed -n 's/.*"wait_s": \([^}]*\)}/\1/p' "$work/eight/metrics.jsonl" |
    awk '$1 < 7 * 19308e-9 || $1 > 1e-3 { bad = 1; print }
         END { exit bad || NR != 20 }' || is "time to wait" "wrong" "plausible"

# The clock is the simulation's own. (The memory is that of the process.)
mv "$work/eight" "$work/first"
train 8 eight $known
for file in metrics.jsonl log/W0.log; do
    for run in first eight; do
        grep -v 'memory:' "$work/$run/$file" >"$work/$run.said"
    done
    cmp "$work/first.said" "$work/eight.said" || is "$file" differs equal
done

# Checkpoints and resuming.
train 8 half $known --set train.steps=10 --set checkpoint.every=1
train 8 half $known --resume auto
is "resumed: exit code" "$code" 0
losses half >"$work/half.losses"
losses eight >"$work/eight.losses"
close "losses with and without resuming" 1e-6 "$work/half.losses" \
    "$work/eight.losses"

# Bad news are told as usual.
train 7 wrong --set groups=2 --set servers=2
is "a launch that does not fit" "$code" 4
holds "a launch that does not fit" "$work/wrong.out" 'launch'
finish
