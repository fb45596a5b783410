# `cohort plan` says what memory a worker and a server need, and is right
# within a tenth; where there is too little, a run says how much it wants, ends
# on every rank, and leaves no folder.
. "$(dirname "$0")/lib.bash"
config=$here/memory.yaml

planned() { # KEY
    sed -n 's/^ *"'"$1"'": \([0-9]*\),$/\1/p' "$work/plan"
}

# near WHAT GOT WANT: within a tenth.
near() {
    awk -v a="$2" -v b="$3" \
        'BEGIN { exit !(a > 0.9 * b && a < 1.1 * b && b > 0) }' && return
    echo "$name: $1: $2 bytes planned, $3 used"
    failures=$((failures + 1))
}

compare() { # RUN RANKS GROUPS SERVERS [ARG]...
    local run=$1 ranks=$2
    local keys=(--set groups="$3" --set servers="$4" "${@:5}")
    "$cohort" plan "$config" --ranks "$ranks" --json "${keys[@]}" >"$work/plan"
    is "$run: plan" "$?" 0
    train "$ranks" "$run" "${keys[@]}"
    is "$run: exit code" "$code" 0
    near "$run: worker" "$(planned memory_per_worker)" \
        "$(field "$run" memory_per_worker)"
    [ "$4" -gt 0 ] && near "$run: server" "$(planned memory_per_server)" \
        "$(field "$run" memory_per_server)"
    holds "$run" "$work/$run.out" "memory: at most [0-9]+ MiB in a worker"
}

compare alone 1 1 0
compare hybrid 3 2 1
compare grouped 3 1 1
compare mpi 3 1 1 --set exchange.collectives=mpi

# Too little memory: on all ranks, on one of two.
starve() { # RUN MPIEXEC_ARG...
    local run=$1
    shift
    timeout -k 5 60 $MPIEXEC "$@" >"$work/$run.out" 2>&1
    is "$run: exit code" "$?" 1
    holds "$run" "$work/$run.out" "^cohort train: out of memory: .*values, [0-9.]+ GiB .*layer conv2d1.*smaller train.batch"
    is "$run: messages" "$(grep -c '^cohort train:' "$work/$run.out")" 1
    [ -e "$work/$run" ] && is "$run: run folder" made "not made"
}

words() { # RUN
    echo "$cohort train $config --set run.out=$work --set run.name=$1" \
        "--set train.batch=200"
}

poor="ulimit -v 1500000; exec" # KiB; the values take 2.07 GiB
starve poor -n 2 bash -c "$poor $(words poor)"
starve one_poor -n 1 $(words one_poor) : -n 1 bash -c "$poor $(words one_poor)"
holds "one_poor" "$work/one_poor.out" "out of memory: rank 1: "
finish
