# A gradient that is too long is scaled to optimizer.clip_norm, whoever has its
# parts; what is never too long is trained on as without.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
steps="--set train.group_batch=24 --set train.steps=20 --set exchange.block=65536"
clip="--set optimizer.clip_norm=0.5"

# run NAME RANKS [ARG]...
run() {
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" $steps "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
}
norms() { # RUN
    sed -n 's/.*"step": \([0-9]*\),.*"gradient_norm": \([^,]*\),.*/\1 \2/p' \
        "$work/$1/metrics.jsonl" | sort -n
}

run off 2
run huge 2 --set optimizer.clip_norm=1e20
is "steps" "$(wc -l <"$work/off.losses")" 20
cmp -s "$work/off.losses" "$work/huge.losses" || is "huge: losses" different same

run alone 1 $clip
cmp -s "$work/off.losses" "$work/alone.losses" && is "clipped losses" same different
norms alone | awk '$2 > 0.5 { n++ } END { exit n < 2 }' ||
    is "alone: norms" clipped "as they are before"
run members 2 $clip
close "losses of 1 and 2 workers" 1e-6 "$work/alone.losses" "$work/members.losses"
run server 3 $clip --set groups=1 --set servers=1
close "losses with a server" 1e-6 "$work/alone.losses" "$work/server.losses"
run servers 5 $clip --set groups=1 --set servers=2
close "losses with two" 1e-6 "$work/alone.losses" "$work/servers.losses"

# The first update is that of a lower rate.
plain="--set optimizer.momentum=0 --set train.steps=2"
run clipped 2 $plain $clip
lower=$(norms clipped | awk '$1 == 0 { printf "%.9g", 0.02 * 0.5 / $2 }')
run lower 2 $plain --set optimizer.rate="$lower"
close "losses after an update" 1e-6 "$work/lower.losses" "$work/clipped.losses"

# One that is not finite ends the run, and nobody waits for it.
train 3 lost $steps --set optimizer.clip_norm=1e20 --set servers=1 \
    --set optimizer.rate=1e6
is "lost: exit code" "$code" 7
finish
