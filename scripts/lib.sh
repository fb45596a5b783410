# lib.sh - what the scripts here share. Sourced by bash, at the top of the tree.
# shellcheck shell=bash disable=SC2034 # the lists are used by those who source

log=build/log # where the output of long steps goes
mkdir -p "$log"

die()
{
    printf '%s\n' "$@" >&2
    exit 1
}

# quietly LOG COMMAND...: the output goes to a file, shown if it fails.
quietly()
{
    local file=$log/$1
    shift
    "$@" >"$file" 2>&1 </dev/null && return
    tail -n 40 "$file" >&2
    printf '\n%s\n' "failed: $* (all of its output: $file)" >&2
    return 1
}

# --- What must be installed ---------------------------------------------
# Debian's package | how to see that it is there | what it is for
#
# The second column asks for the thing, not for the package: so it holds on
# other systems, and for a library in a prefix of its own (DNNL_ROOT=...).

to_build='
gcc                   | command -v gcc               | C compiler
libc6-dev             | header stdio.h               | headers of the C library
make                  | command -v make              | build
pkgconf               | command -v pkg-config        | finds the libraries
mpich                 | mpich MPIEXEC                | MPICH: mpiexec
libmpich-dev          | mpich MPICC                  | MPICH: mpicc
libdnnl-dev           | header oneapi/dnnl/dnnl.h    | oneDNN: the layers
libyaml-dev           | header yaml.h                | libyaml: configurations
libhdf5-dev           | header hdf5.h                | HDF5: data, checkpoints
zlib1g-dev            | header zlib.h                | zlib: packed data files
dataset-fashion-mnist | share datasets/fashion-mnist | images, in /usr/share'

to_test='
check                 | header check.h               | Check: unit tests
libonnx-testdata      | share libonnx-testdata       | known outputs of layers
procps                | command -v pgrep             | tests/e2e
cppcheck              | command -v cppcheck          | make lint'

release=$(. /etc/os-release 2>/dev/null && echo "${VERSION_CODENAME-}")

# The house format is version 14, which only these releases have.
case $release in
bookworm | jammy)
    to_test+='
clang-format          | command -v clang-format      | make lint' ;;
esac

# Those that have SimGrid; elsewhere scripts/test does without, if it must.
case $release in
bookworm | trixie)
    to_test+='
libsimgrid-dev        | command -v smpicc            | make sim' ;;
esac

# $1 as the Makefile sees it
variable()
{
    make --no-print-directory -s "print-$1" 2>/dev/null
}

header()
{
    # shellcheck disable=SC2046 # flags are words
    printf '#include <%s>\n' "$1" |
        gcc -E $(variable PKG_CFLAGS) $(variable CHECK_CFLAGS) -
}

share()
{
    test -d "/usr/share/$1"
}

# Debian can have another MPI under the plain names: there MPICH's own names
# count, unless the user chose.
mpich()
{
    local program
    program=$(variable "$1")
    case $program in
    *.mpich) ;;
    *) ! has_apt || [ -n "${!1-}" ] || return 1 ;;
    esac
    command -v "${program%% *}"
}

has_apt()
{
    command -v apt-get >/dev/null
}

# need "$to_build" ...: installs what is missing of the lists, or says what it
# is and ends the script.
need()
{
    local package check purpose
    local -a missing=() lines=()
    while IFS='|' read -r package check purpose; do
        [ -n "$package" ] || continue
        eval "$check" >/dev/null 2>&1 </dev/null && continue
        missing+=("${package// /}")
        lines+=("  $package $purpose")
    done < <(printf '%s\n' "$@")
    [ ${#missing[@]} -gt 0 ] || return 0

    local -a as_root=()
    [ "$(id -u)" = 0 ] || as_root=(sudo)
    if ! has_apt || ! command -v "${as_root[0]-true}" >/dev/null; then
        die 'Missing here, by the names of Debian packages:' "${lines[@]}" \
            'Install them, or give their places (make help), and run again.'
    fi
    echo "installing ${missing[*]}"
    quietly apt.log "${as_root[@]}" apt-get update -q &&
        quietly apt.log "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
            apt-get install -q -y --no-install-recommends "${missing[@]}" &&
        return
    die 'Could not install what is missing:' "${lines[@]}"
}
