#!/usr/bin/env bash
# The tests:
#
#   tests/run.sh                 what to run before sending a change: all that needs no guest, and the core of the
#                                cases on real LVM, two guests at once, by tests/guest/core.txt. Five minutes on two
#                                processors; eleven the first time
#   tests/run.sh rest            all else that must pass before a change is taken; .ci/run runs both
#   tests/run.sh full [PART…]    what costs much and finds little: before a release, and each night. The parts are
#                                aarch64, release, bare, fuzz, mutants, proofs, writes, versions and order
#
# Parts of these, some with options of their own:
#
#   tests/run.sh unit            what needs neither a machine nor the executable
#   tests/run.sh lint            format, clippy, shellcheck, and zizmor for .github
#   tests/run.sh host            all that needs no guest
#   tests/run.sh cli             the executable's replies, on this machine
#   tests/run.sh guest [CASE…]   real LVM in a guest kernel; CASE is a part of a test's name. With KEEP=1 a case that
#                                fails leaves a shell in the guest, and so does the end. SHUFFLE=SEED: in another order
#   tests/run.sh selinux [CASE…] what is only where SELinux is enforcing, with Debian's policy
#   tests/run.sh kubelet [CASE…] a real kubelet with pods on the driver's volumes, in a guest;
#                                KUBERNETES=DIR has it, else Debian's 1.20 is built once from its
#                                sources
#   tests/run.sh plane [CASE…]   the same as a node of a control plane: claims, and the
#                                controller that attaches; KUBERNETES=DIR has kube-apiserver and kube-controller-manager too
#   tests/run.sh shared [CASE…]  two nodes in two guests, with one volume group on one disk; `shared life` is only the
#                                life of both at random, for FLEXVOLUME_LVM_LIFE seconds, 45 unless set otherwise, from
#                                FLEXVOLUME_LVM_SEED, 1 unless set otherwise
#   tests/run.sh life [SECONDS [SEED]] a node's life at random, in a guest: pods,
#                                operators, kills, broken disks, power cuts; 180 seconds. A life that
#                                fails is printed as a short list of steps, and its seed plays it again
#   tests/run.sh bare            what README prints under "Try it", on Debians with nothing but what it asks for:
#                                the quickstart and ten cases; `bare whole`: all of tests/run.sh, by root and by a user.
#                                COMMIT=REF: of another commit
#   tests/run.sh release         what install/release.sh makes of the last commit: the same bytes twice
#   tests/run.sh packages        lintian, rpmlint, and rpm with the package's scripts; what dpkg does is
#                                `guest packages::`
#   tests/run.sh aarch64         what needs no LVM, with the driver for aarch64, which qemu translates
#   tests/run.sh book            docs as a book in target/book
#   tests/run.sh msrv            compiles all with the oldest Rust that Cargo.toml allows, which rustup gets; nothing
#                                where that is the Rust of all other steps
#   tests/run.sh deny            licences and sources of the crates, by .cargo/deny.toml; `deny advisories`:
#                                known vulnerabilities, by a list that comes from the network
#   tests/run.sh fuzz [TARGET…]  random input for every parser; FUZZ_SECONDS=600 for longer than 20 s
#   tests/run.sh mutants [FILE…] changes the code in one place at a time, and the unit tests have to
#                                notice; `data` for the files that decide about data, `changed [REF]`
#                                for the lines that differ from where this branch left REF (main)
#   tests/run.sh proofs [TEST]   takes rules out of the driver, by tests/proofs.txt, and the test of each must notice;
#                                TEST is a part of a test's name
#
# The guest is user-mode Linux. It has this machine's files, or with SUITE=bullseye|bookworm|trixie|sid that Debian's; and
# the kernel of Debian's next release, but bullseye and bookworm, or with KERNEL=own all, their own. The cache gets these once.
# Of several, the first has all tests, and the others those of tests/guest/versioned.txt and kernels.txt. With
# bullseye-tools beside bullseye, bullseye has those of kernels.txt, and its files with the newer kernel the others.
#
# With --full before these, also what takes hours: the driver is killed at every step of every
# call, and not only at a sample, which FLEXVOLUME_LVM_SEED chooses, or else the commit. Of the calls that are killed
# FLEXVOLUME_LVM_CALLS takes some, by the names that the test prints.
#
# What is missing is installed with apt on Debian and Ubuntu. Who is not root needs sudo. A guest has no limit of time: it is stopped when it
# has printed nothing for half an hour. The last lines say how long each step took, how many tests ran
# and how many of them passed, as the test runners themselves counted them. The very last one is for
# programs: "378 passed, 0 failed".
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh
# shellcheck source=tests/report.sh
. tests/report.sh
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
# shellcheck source=tests/selinux.sh
. tests/selinux.sh
# shellcheck source=tests/proofs.sh
. tests/proofs.sh
# shellcheck source=tests/bare.sh
. tests/bare.sh
# shellcheck source=tests/everything.sh
. tests/everything.sh

LARGEST=3500000 # bytes of the executable
FUZZ_SECONDS=${FUZZ_SECONDS:-20} # for each parser
SILENCE=${SILENCE:-1800} # seconds without a line from a guest
RUNS=${RUNS:-1} # of all tests in a guest
PROFILE=dev # of the driver that is tested; what is shipped is `release`
FULL=
if [ "${1:-}" = --full ]; then
    shift
    FULL=1 SILENCE=36000
fi
# Where the shell is that is left in a guest.
if [ -n "${KEEP:-}" ]; then
    KEEP=$(tty) || die "KEEP=1 needs a terminal"
fi

# Run by whom it may be, the output looks the same, and cargo finds what it built before. A panic names its line; no other
# error needs a backtrace, which would cost the proof of `decide` as much as its cases.
export CARGO_TERM_COLOR=never RUST_BACKTRACE=${RUST_BACKTRACE:-0} RUST_LIB_BACKTRACE=${RUST_LIB_BACKTRACE:-0}
unset CARGO_BUILD_TARGET
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
TOP=$DIR # A step that runs beside another has a DIR of its own.
UNDER_WAY= # tests are, so that a verdict is owed
trap ended EXIT
# What failed, and what the runners counted: files, since steps may run side by side.
export TIMES=$DIR/times BOOTS=$DIR/boots
touch "$DIR/failed" "$DIR/cases" "$DIR/counts" "$TIMES" "$BOOTS"

UNDER_WAY=1
need_rust
what=${1:-core}
[ $# = 0 ] || shift
case $what in
    core | rest) "$what" ;;
    full) full "$@" ;;
    host) on_host ;;
    unit) need "${RUST_TOOLS[@]}" && rust unit --lib --bins "$@" ;;
    msrv) need "${RUST_TOOLS[@]}" && msrv ;;
    release) release twice ;;
    lint | deny | book | bare | aarch64 | cli | fuzz | mutants | proofs) "$what" "$@" ;;
    packages | guest | selinux | shared | kubelet | life | plane)
        [ "$what" != packages ] || PROFILE=release
        [ "$what" = packages ] || need_tests_guest
        build
        "$what" "$@"
        ;;
    *)
        UNDER_WAY=
        usage tests/run.sh "$what"
        ;;
esac
verdict
