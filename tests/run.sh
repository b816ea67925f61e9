#!/usr/bin/env bash
# All tests, or some of them:
#
#   tests/run.sh                 everything but the control plane
#   tests/run.sh --plane         everything, which is what must pass before a change is taken
#   tests/run.sh unit            what needs neither a machine nor the executable
#   tests/run.sh lint            format, clippy, shellcheck, and actionlint for .github/workflows
#   tests/run.sh host            all that needs neither a guest nor root
#   tests/run.sh cli             the executable's replies, on this machine
#   tests/run.sh release         what install/release.sh makes of the last commit: the same bytes twice
#   tests/run.sh book            docs as a book in target/book, and its links
#   tests/run.sh msrv            compiles all with the oldest Rust that Cargo.toml allows, which rustup gets
#   tests/run.sh deny            licences and sources of the crates, by .cargo/deny.toml; `deny advisories`:
#                                known vulnerabilities, by a list that comes from the network
#   tests/run.sh fuzz [TARGET…]  random input for every parser; FUZZ_SECONDS=600 for longer than 20 s
#   tests/run.sh mutants [FILE…] changes the code in one place at a time, and the unit tests have to
#                                notice; `data` for the files that decide about data, `changed [REF]`
#                                for the lines that differ from where this branch left REF (main)
#   tests/run.sh packages        lintian, rpmlint, and rpm with the package's scripts; what dpkg does is
#                                `guest packages::`
#   tests/run.sh guest [CASE…]   real LVM in a guest kernel; CASE is a part of a test's name
#   tests/run.sh aarch64         what needs no LVM, with the driver for aarch64, which qemu translates
#   tests/run.sh shared [CASE…]  two nodes in two guests, with one volume group on one disk
#   tests/run.sh kubelet [CASE…] a real kubelet with pods on the driver's volumes, in a guest;
#                                KUBERNETES=DIR has it, as an official release unpacks or xz of
#                                that, else Debian's 1.20 is built once from its sources;
#                                PEER=PATH names the bash script that nodes change from
#   tests/run.sh plane [CASE…]   the same as a node of a control plane: claims, the scheduler, the
#                                controller that attaches, a node that goes down; KUBERNETES=DIR
#                                has kube-apiserver, kube-controller-manager and kube-scheduler too;
#                                CSI_DRIVERS=DIR has csi-driver-lvm and csi-node-driver-registrar
#   tests/run.sh life [SECONDS [SEED]] a node's life at random, in a guest: pods, hostile tenants,
#                                operators, kills, broken disks, power cuts; 300 seconds. A life that
#                                fails is printed as a short list of steps, and its seed plays it again
#   tests/run.sh failover        two such nodes share a volume group, and one of them dies; Kubernetes
#                                1.28 or newer
#
# The guest is a virtual machine where KVM works, else user-mode Linux, else an emulated machine;
# MACHINE=vng or MACHINE=uml chooses. It has this machine's files, or with
# SUITE=bullseye|bookworm|trixie|sid that Debian's own files and kernel, which debootstrap puts into
# the cache once. SUITE=all takes those of tests/suite.sh: the newest stable one with all tests, and the others
# with those tests whose result may depend on versions.
#
# With --full before these, also what takes hours: the driver is killed at every step of every
# call, and not only at a sample, which FLEXVOLUME_LVM_SEED chooses. Of the calls that are killed
# FLEXVOLUME_LVM_CALLS takes some, by the names that the test prints. Alone, --full is --plane too,
# failover, and two hours of life.
#
# What is missing is installed with apt on Debian and Ubuntu. The last lines say how many tests ran
# and how many of them passed, as the test runners themselves counted them. The very last one is for
# programs: "378 passed, 0 failed".
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh
# shellcheck source=tests/aarch64.sh
. tests/aarch64.sh
# shellcheck source=tests/checks.sh
. tests/checks.sh
# shellcheck source=tests/guest/boot.sh
. tests/guest/boot.sh
# shellcheck source=tests/packages.sh
. tests/packages.sh
# shellcheck source=tests/release.sh
. tests/release.sh
# shellcheck source=tests/kubelet/boot.sh
. tests/kubelet/boot.sh
# shellcheck source=tests/kubelet/plane/boot.sh
. tests/kubelet/plane/boot.sh

LARGEST=3700000 # bytes of the executable
FUZZ_SECONDS=${FUZZ_SECONDS:-20} # for each parser
GUEST_LIMIT=${GUEST_LIMIT:-2400} # seconds for one boot with all that runs in it
MACHINE_ASKED=${MACHINE:-}
RUNS=${RUNS:-1} # of all tests in a guest
FULL=
WITH_PLANE=
case ${1:-} in
    --full)
        shift
        FULL=1 WITH_PLANE=1 GUEST_LIMIT=36000 LIFE_SECONDS=7200 LIFE_SEED=$SEED RUNS=20
        SUITES+=(bookworm)
        ;;
    --plane)
        shift
        WITH_PLANE=1
        ;;
esac

# Run by whom it may be, the output looks the same, and cargo finds what it built before.
export CARGO_TERM_COLOR=never RUST_BACKTRACE=0 # A panic names its line.
unset CARGO_BUILD_TARGET
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
TOP=$DIR # A step that runs beside another has a DIR of its own.
UNDER_WAY= # tests are, so that a verdict is owed
trap ended EXIT
# What failed, and what the runners counted: files, since steps may run side by side.
touch "$DIR/failed" "$DIR/cases" "$DIR/counts"

failed() { echo "$1" >> "$TOP/failed"; }

ended() {
    end_background
    if [ -n "$UNDER_WAY" ]; then
        failed "this run ended before its time"
        verdict || true
    fi
    rm -rf "$DIR" 2> /dev/null || as_root rm -rf "$DIR"
}

# step NAME COMMAND…: runs it, and goes on if it fails: one run shows all that is wrong.
step() {
    local name=$1
    shift
    say "$name: $*"
    "$@" || failed "$name"
}

# beside NAME COMMAND…: runs it in the background.
beside() { in_file "$@" & }

# in_file NAME COMMAND…: what it prints is in $DIR/beside-NAME.
in_file() {
    local name=$1
    shift
    ("$@") > "$DIR/beside-$name" 2>&1 || failed "$name"
}

# here COMMAND…: runs it with this machine's own files in guests.
here() {
    local SUITE='' FILES='' MACHINE=$MACHINE_ASKED
    "$@"
}

# count NAME LOG [VERSIONS]: adds up the results that libtest printed, and keeps the names of what
# failed. A runner without any has not run. VERSIONS is a file of what they ran on.
count() {
    local ran passed
    read -r ran passed < <(awk '
        /^test result: / { passed += $4; failed += $6; results++ }
        END { print (results ? passed + failed : "none"), passed + 0 }' "$2")
    # libtest lists them by name behind what they printed.
    awk -v runner="$1" '/^failures:$/ { names = "" } /^    [a-z0-9_]+(::[a-z0-9_]+)*$/ { names = names runner " " $1 "\n" }
        /^test result: FAILED/ { printf "%s", names }' "$2" >> "$TOP/cases"
    if [ "$ran" = none ] || [ "$ran" = 0 ]; then
        failed "$1: no test ran"
        ran=0
    elif [ "$ran" != "$passed" ]; then
        failed "$1: $((ran - passed)) tests failed"
    fi
    echo "$1 $ran $passed $([ $# -lt 3 ] || xargs < "$3")" >> "$TOP/counts"
}

# host NAME ARGUMENT OF CARGO TEST…
host() {
    local name=$1
    shift
    step "$name" logged "$DIR/$name.log" cargo test --quiet --no-fail-fast "$@"
    count "$name" "$DIR/$name.log"
}

# All that needs neither a guest nor root.
on_host() {
    need promtool:prometheus valgrind:valgrind zsh:zsh fish:fish
    host host
}

# logged LOG COMMAND…: runs it, and keeps what it prints.
logged() {
    local log=$1
    shift
    "$@" 2>&1 | tee "$log"
}

# artifact OPTION OF CARGO… NAME: prints the path of the executable NAME, which cargo builds. It
# names others too, of which this one is made.
artifact() {
    cargo build --quiet --message-format=json-render-diagnostics "$@" |
        grep -F "\"name\":\"${!#}\"" | sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1
}

build() {
    DRIVER=$(artifact --release --bin lvm)
    [ -n "$DRIVER" ] || die "the driver did not build"
}

# one_static_executable [MACHINE]: of a machine as readelf calls it.
one_static_executable() {
    local size headers
    size=$(stat -c %s "$DRIVER")
    echo "$DRIVER: $size bytes of $LARGEST"
    headers=$(readelf --wide --file-header --program-headers --dynamic "$DRIVER") && [ "$size" -lt "$LARGEST" ] &&
        [[ $headers == *"Machine: "*"${1:-}"* ]] && ! grep -E 'INTERP|NEEDED' <<< "$headers"
}

# The quickstart, on the same files as the guest's tests.
quickstart() {
    local suite passed=0 suites=("")
    need_guest
    # Of several the last will do.
    [ -z "${SUITE:-}" ] || suites+=("${SUITES[-1]}")
    for suite in "${suites[@]}"; do
        say "quickstart ${suite:-here}"
        if SUITE=$suite examples/quickstart.sh > "$DIR/quickstart.log" 2>&1; then
            passed=$((passed + 1))
        else
            tail -n 60 "$DIR/quickstart.log"
            failed "quickstart ${suite:-here}"
        fi
    done
    echo "quickstart ${#suites[@]} $passed" >> "$DIR/counts"
}

verdict() {
    local name ran passed versions row total=0 good=0 bad
    UNDER_WAY=
    say result
    sed 's/^/FAILED /' "$DIR/failed"
    sort "$DIR/cases" | uniq -c | awk -v runs="$RUNS" '{
        print "FAILED " $2 ": " $3 (runs > 1 ? ", " $1 " times in " runs " runs" : "") }'
    # Each with the versions that it ran on.
    row='%-14s %4s %6s  %-9s %-10s %-9s %-8s %-11s %s\n'
    # shellcheck disable=SC2059
    printf "$row" '' ran passed LVM util-linux e2fsprogs xfsprogs btrfs-progs Linux
    while read -r name ran passed versions; do
        # shellcheck disable=SC2059,SC2086
        printf "$row" "$name" "$ran" "$passed" $versions
        total=$((total + ran)) good=$((good + passed))
    done < "$DIR/counts"
    # shellcheck disable=SC2059
    printf "$row" total "$total" "$good"
    # Where every test has passed, what failed is a step that is none, as clippy.
    bad=$((total - good))
    [ "$bad" != 0 ] || bad=$(wc -l < "$DIR/failed")
    echo "$good passed, $bad failed"
    [ "$bad" = 0 ]
}

UNDER_WAY=1
need_rust
# To kill the installer at each of its system calls.
need strace:strace
what=${1:-all}
[ $# = 0 ] || shift
case $what in
    all)
        (build) > /dev/null 2>&1 & # That takes one processor for a minute or two.
        lint
        deny
        if have_msrv; then beside msrv msrv; else say "NOT RUN: Rust $MSRV, which rustup cannot get here"; fi
        on_host
        book
        wait
        build
        step executable one_static_executable
        # What is missing is installed before anything runs beside.
        need_guest
        need containerd:containerd runc:runc linux.uml:user-mode-linux jq:jq etcd:etcd-server \
            slirp-fullbolt:slirp curl:curl openssl:openssl
        need_aarch64
        (here need_guest && need_lockd && KUBERNETES='' need_kubernetes kubelet)
        need lintian:lintian rpm:rpm rpmlint:rpmlint
        need_packages
        # These wait more than they work.
        beside kubelet kubelets
        [ -z "$WITH_PLANE" ] || beside plane planes
        AT_ONCE=4
        MEANWHILE=(shared "life here life $LIFE_SECONDS $LIFE_SEED" release quickstart packages aarch64 fuzz)
        # `data` takes a quarter of an hour.
        mutated=src/driver/volume/decide/doubt.rs
        [ -z "$FULL" ] || mutated=data
        [ -z "$WITH_PLANE" ] || MEANWHILE+=("mutants mutants $mutated")
        guest
        wait
        cat "$DIR"/beside-*
        [ -z "$FULL" ] || ! (need_kubernetes kubelet && since 1.28) || here failover
        ;;
    lint) lint ;;
    host) on_host ;;
    msrv)
        have_msrv || die "rustup is missing, or cannot get Rust $MSRV; \`rustup toolchain install $MSRV\` says why"
        msrv
        ;;
    deny) deny "$@" ;;
    unit) host unit --lib --bins "$@" ;;
    book) book ;;
    cli)
        need promtool:prometheus valgrind:valgrind zsh:zsh fish:fish
        host cli --test cli "$@"
        ;;
    fuzz) fuzz "$@" ;;
    release) release ;;
    mutants) mutants "$@" ;;
    packages)
        build
        packages
        ;;
    guest)
        build
        guest "$@"
        ;;
    shared)
        build
        shared "$@"
        ;;
    aarch64) aarch64 ;;
    kubelet)
        build
        kubelet "$@"
        ;;
    life)
        build
        life "$@"
        ;;
    plane)
        build
        plane "$@"
        ;;
    failover)
        build
        failover
        ;;
    *)
        UNDER_WAY=
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
verdict
