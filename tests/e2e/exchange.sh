# How weights travel does not change what is learnt: block size, speakers,
# servers, collectives, the same 20 steps of one group within 1e-6.
. "$(dirname "$0")/lib.bash"

config=$here/exchange.yaml
steps="--set groups=1 --set train.group_batch=24 --set train.steps=20"

# same NAME RANKS [ARG]...
same() {
    local run=$1 ranks=$2
    shift 2
    train "$ranks" "$run" $steps "$@"
    is "$run: exit code" "$code" 0
    losses "$run" >"$work/$run.losses"
    close "losses of base and $run" 1e-6 "$work/base.losses" \
        "$work/$run.losses"
}

train 3 base $steps
losses base >"$work/base.losses"
is "steps" "$(wc -l <"$work/base.losses")" 20
same small 3 --set exchange.block=65536
same root 4 --set servers=1 --set exchange.block=65536 --set exchange.speakers=1
same speakers 4 --set servers=1 --set exchange.block=65536
same servers 5 --set servers=2 --set exchange.block=65536
same two 6 --set servers=3 --set exchange.speakers=2

# MPI's collectives: all speakers, two, the root alone, with and without servers.
mpi="--set exchange.collectives=mpi --set exchange.block=65536"
same mpi 3 $mpi
same mpi_root 3 $mpi --set exchange.speakers=1
same mpi_speakers 4 $mpi --set servers=1
same mpi_servers 6 $mpi --set servers=2
same mpi_two 5 $mpi --set servers=1 --set exchange.speakers=2
same mpi_one 4 $mpi --set servers=1 --set exchange.speakers=1

# With our own, the same bits again, whoever is late.
own="--set exchange.collectives=own --set exchange.block=65536"
same own 3 $own
same own_again 3 $own
is "own: the bits of two runs" "$(cat "$work/own_again.losses")" \
    "$(cat "$work/own.losses")"
finish
