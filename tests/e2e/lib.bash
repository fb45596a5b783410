# Sourced by the end-to-end tests. COHORT and MPIEXEC come from the Makefile.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cohort=$(realpath "${COHORT:?}")
name=$(basename "$0" .sh)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export OMP_NUM_THREADS=1
export XDG_CACHE_HOME=$work/cache # nobody's measurements but our own
failures=0

# train RANKS RUN [ARG]...: $config, or small.yaml, into $work/RUN; output in $work/RUN.out,
# exit code in $code.
train() {
    local ranks=$1 run=$2
    shift 2
    timeout 120 $MPIEXEC -n "$ranks" "$cohort" train "${config:-$here/small.yaml}" \
        --set run.out="$work" --set run.name="$run" --set compute.threads=1 \
        "$@" >"$work/$run.out" 2>&1
    code=$?
}

# field RUN KEY: a number or word of the summary.
field() {
    sed -n 's/^ *"'"$2"'": "\{0,1\}\([^",]*\)"\{0,1\},\{0,1\}$/\1/p' \
        "$work/$1/summary.json"
}

# losses RUN: the loss of every step, in the order of the steps.
losses() {
    sed -n 's/.*"type": "step".*"step": \([0-9]*\),.*"loss": \([^,]*\),.*/\1 \2/p' \
        "$work/$1/metrics.jsonl" | sort -n
}

# is WHAT GOT WANT
is() {
    [ "$2" = "$3" ] && return
    echo "$name: $1 is '$2', wanted '$3'"
    failures=$((failures + 1))
}

# holds WHAT FILE PATTERN: grep -E finds it once or more.
holds() {
    grep -qE "$3" "$2" && return
    echo "$name: $1: no '$3' in:"
    tail -5 "$2"
    failures=$((failures + 1))
}

# about WHAT GOT WANT: two numbers, within 1e-6: other ranks or batches add up in
# another order.
about() {
    awk -v a="$2" -v b="$3" 'BEGIN { d = a < b ? b - a : a - b
        exit !(a != "" && b != "" && d <= 1e-6 * (b < 0 ? -b : b)) }' && return
    echo "$name: $1 is '$2', wanted '$3' within 1e-6"
    failures=$((failures + 1))
}

# close WHAT TOLERANCE FILE FILE: two columns "step value", relative.
close() {
    paste "$3" "$4" | awk -v tolerance="$2" '
        { d = $2 - $4; d = d < 0 ? -d : d; m = $2 < 0 ? -$2 : $2
          if ($1 != $3 || d > tolerance * m) bad++ }
        END { exit bad > 0 || NR == 0 }' && return
    echo "$name: $1 differ by more than $2:"
    paste "$3" "$4" | head -20
    failures=$((failures + 1))
}

finish() {
    [ "$failures" = 0 ] && echo "$name: ok" || exit 1
}
