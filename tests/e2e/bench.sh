# `cohort bench`: every promised key, with a number that is one; no timing is
# asserted. Needs no launch and no data.
. "$(dirname "$0")/lib.bash"

number() { # KEY: a number greater than 0
    grep -qE '^ *"'"$1"'": [0-9.e+-]+,?$' "$work/bench" &&
        sed -n 's/^ *"'"$1"'": \([^,]*\),\{0,1\}$/\1/p' "$work/bench" |
        awk '$1 <= 0 { bad = 1 } END { exit bad || NR == 0 }' ||
        is "$1" "$(grep "\"$1\"" "$work/bench")" "a number above 0"
}

"$cohort" bench "$here/small.yaml" --json >"$work/bench" 2>&1
is "exit code" "$?" 0
for key in fma_peak_gflops memcpy_gb_s step_ms step_gflops fma_loop_gflops \
    matmul_gflops step_median_ms step_share update_ms input_ms threads batch \
    ms; do
    number $key
done
is "numbers that are none" "$(grep -c null "$work/bench")" 0
# The two relus are done with the layers before them; the loss is all backward.
is "forward passes" "$(grep -c '"pass": "forward"' "$work/bench")" 6
is "weight gradients" "$(grep -c '"pass": "backward_weights"' "$work/bench")" 3
for key in name pass gflops algorithm layout; do
    is "rows with $key" "$(grep -c "\"$key\": " "$work/bench")" \
        "$(grep -c '"ms": ' "$work/bench")"
done
if command -v python3 >/dev/null; then
    python3 -m json.tool "$work/bench" >"$work/out" 2>&1
    is "JSON" "$?" 0
fi

"$cohort" bench "$here/small.yaml" >"$work/bench" 2>&1
is "table: exit code" "$?" 0
holds "table" "$work/bench" "conv2d1 +backward_weights +[0-9.]+ +[0-9.]+"
holds "table" "$work/bench" "^step .* x the FMA peak"

# A network without a classifier, with targets and several losses.
"$cohort" bench "$here/heads.yaml" >"$work/bench" 2>&1
is "heads: exit code" "$?" 0
holds "heads" "$work/bench" "deconv2d2 +backward_weights +[0-9.]+ +[0-9.]+"

"$cohort" bench "$work/none.yaml" >"$work/bench" 2>&1
is "no such file: exit code" "$?" 2
finish
