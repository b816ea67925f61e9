#!/usr/bin/env bash
# All tests, or some of them:
#
#   tests/run.sh                 everything but the control plane
#   tests/run.sh --plane         everything, which is what must pass before a change is taken
#   tests/run.sh unit            what needs neither a machine nor the executable
#   tests/run.sh lint            format, clippy and shellcheck
#   tests/run.sh cli             the executable's replies, on this machine
#   tests/run.sh fuzz [TARGET…]  random input for every parser; FUZZ_SECONDS=600 for longer than 20 s
#   tests/run.sh guest [CASE…]   real LVM in a guest kernel; CASE is a part of a test's name
#   tests/run.sh shared [CASE…]  two nodes in two guests, with one volume group on one disk
#   tests/run.sh kubelet [CASE…] a real kubelet with pods on the driver's volumes, in a guest;
#                                KUBERNETES=DIR has it, as an official release unpacks or xz of
#                                that, else Debian's 1.20 is built once from its sources;
#                                PEER=PATH names the bash script that nodes change from
#   tests/run.sh plane [CASE…]   the same as a node of a control plane: claims, the scheduler, the
#                                controller that attaches, a node that goes down; KUBERNETES=DIR
#                                has kube-apiserver, kube-controller-manager and kube-scheduler too
#
# The guest is a virtual machine where KVM works, else user-mode Linux, else an emulated machine;
# MACHINE=vng or MACHINE=uml chooses. It has this machine's files, or with
# SUITE=bullseye|bookworm|trixie|sid that Debian's own files and kernel, which debootstrap puts into
# the cache once. SUITE=all takes all of them: the newest stable one with all tests, and the others
# with those tests whose result may depend on versions.
#
# With --full before these, also what takes hours: the driver is killed at every step of every
# call, and not only at a sample, which FLEXVOLUME_LVM_SEED chooses. Of the calls that are killed
# FLEXVOLUME_LVM_CALLS takes some, by the names that the test prints. Alone, --full is --plane too.
#
# What is missing is installed with apt on Debian and Ubuntu. The last lines say how many tests ran
# and how many of them passed, as the test runners themselves counted them. The very last one is for
# programs: "378 passed, 0 failed".
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh
# shellcheck source=tests/kubelet/boot.sh
. tests/kubelet/boot.sh
# shellcheck source=tests/kubelet/plane/boot.sh
. tests/kubelet/plane/boot.sh

LARGEST=3250000 # bytes of the executable
FUZZ_SECONDS=${FUZZ_SECONDS:-20} # for each parser
GUEST_LIMIT=${GUEST_LIMIT:-2400} # seconds for one boot with all that runs in it
# What differs between versions of LVM, util-linux, filesystems and kernel is in these tests.
VERSIONED=(lives:: creation:: growth:: foreign:: swapped:: call_outs:: sigterm_in_mkfs)
SEED=${FLEXVOLUME_LVM_SEED:-$(date +%s)}
CALLS=${FLEXVOLUME_LVM_CALLS:+FLEXVOLUME_LVM_CALLS=${FLEXVOLUME_LVM_CALLS@Q}}
MACHINE_ASKED=${MACHINE:-}
FULL=
WITH_PLANE=
case ${1:-} in
    --full)
        shift
        FULL=1 WITH_PLANE=1 GUEST_LIMIT=36000
        ;;
    --plane)
        shift
        WITH_PLANE=1
        ;;
esac

# Run by whom it may be, the output looks the same, and cargo finds what it built before.
export CARGO_TERM_COLOR=never
unset CARGO_BUILD_TARGET
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
TOP=$DIR # A step that runs beside another has a DIR of its own.
UNDER_WAY= # tests are, so that a verdict is owed
trap ended EXIT
# What failed, and what the runners counted: files, since steps may run side by side.
touch "$DIR/failed" "$DIR/counts"

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

# once_more NAME LOG COMMAND…: runs the one or two tests again that failed by this log. Guests share
# two cores, and kubelet and udev have a timing of their own. The result names what did not pass at
# once: that is to be looked into, and more than two are no accident.
once_more() {
    local unsteady=$TOP/unsteady-$1 names
    mapfile -t names < <(sed -n '/^failures:$/,$s/^    \([a-z0-9_]*::[a-z0-9_:]*\)$/\1/p' "$2" | sort -u)
    shift 2
    [ ${#names[@]} -gt 0 ] && [ ${#names[@]} -le 2 ] || return 1
    say "once more: ${names[*]}"
    "$@" "${names[@]}" || return 1
    printf '%s\n' "${names[@]}" >> "$unsteady"
}

# count NAME LOG [VERSIONS]: adds up the results that libtest printed. A runner without any has not
# run. VERSIONS is a file of what they ran on.
count() {
    local ran passed again=0
    [ ! -e "$TOP/unsteady-$1" ] || again=$(wc -l < "$TOP/unsteady-$1")
    read -r ran passed < <(awk -v again="$again" '
        /^test result: / { passed += $4; failed += $6; results++ }
        END { print (results ? passed + failed - again : "none"), passed + 0 }' "$2")
    if [ "$ran" = none ] || [ "$ran" = 0 ]; then
        failed "$1: no test ran"
        ran=0
    elif [ "$ran" != "$passed" ]; then
        failed "$1: $((ran - passed)) tests failed"
    fi
    echo "$1 $ran $passed $([ $# -lt 3 ] || xargs < "$3")" >> "$TOP/counts"
}

lint() {
    step format cargo fmt --check
    step clippy cargo clippy --quiet --all-targets -- -D warnings
    # Those that run in a guest are not among "all".
    step clippy cargo clippy --quiet --test guest --test shared --test kubelet --test recorder -- -D warnings
    need shellcheck:shellcheck
    local scripts
    mapfile -t scripts < <(grep -rlE '^#!.*sh$' --exclude-dir={.git,target} .)
    # With what they source.
    step shellcheck shellcheck --external-sources --check-sourced "${scripts[@]}"
}

# host NAME ARGUMENT OF CARGO TEST…
host() {
    local name=$1
    shift
    step "$name" logged "$DIR/$name.log" cargo test --quiet --no-fail-fast "$@"
    count "$name" "$DIR/$name.log"
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

one_static_executable() {
    local size linked
    size=$(stat -c %s "$DRIVER")
    linked=$(ldd "$DRIVER" 2>&1 || true)
    echo "$DRIVER: $size bytes,$linked"
    [ "$size" -lt "$LARGEST" ] && [[ $linked == *"statically linked"* ]]
}

# fuzz [TARGET…]: what was found before is in the cache, and is tried again first. An input that
# breaks a parser is left in tests/fuzz/artifacts.
fuzz() {
    local target passed=0 path=$PATH
    [ $# -gt 0 ] || set -- options lvm_report mountinfo config
    need_cargo_fuzz
    PATH=$CARGO_FUZZ/bin:$PATH
    step "format of the fuzz targets" cargo fmt --check --manifest-path tests/fuzz/Cargo.toml
    for target in "$@"; do
        mkdir -p "$CACHE/fuzz/$target"
        say "fuzz $target"
        # No sanitizer: that needs a nightly compiler, and there is no unsafe code to look at.
        if cargo fuzz run --fuzz-dir tests/fuzz --sanitizer none "$target" \
            "$CACHE/fuzz/$target" "tests/fuzz/seeds/$target" -- -max_total_time="$FUZZ_SECONDS" \
            -timeout=10 -max_len=8192 -print_final_stats=1 > "$DIR/fuzz.log" 2>&1; then
            grep -E '^stat::(number_of_executed|average_exec|new_units)' "$DIR/fuzz.log"
            passed=$((passed + 1))
        else
            grep -vE '^(#|\s*NEW_FUNC|INFO)' "$DIR/fuzz.log" | tail -n 60
            failed "fuzz $target"
        fi
    done
    PATH=$path
    echo "fuzz $# $passed" >> "$DIR/counts"
}

# Prints the versions of what the driver runs, for a shell in a guest.
VERSIONS="for tool in 'lvm version' 'mount -V' 'mke2fs -V' 'mkfs.xfs -V' 'btrfs version' 'uname -r'; do
    \$tool 2>&1 | grep -oE '[0-9]+(\.[0-9]+)+' | head -n 1; done"

# in_guest HALF COMMAND: boots a guest on both disks of a half, with what its tests want to know.
in_guest() {
    local half=$1
    # A case itself says what is active: udev's rules for LVM and md would activate, and lock, what
    # they like.
    boot "$half" "$GUEST_LIMIT" "modprobe -a loop dm-mod; cd /run
        mkdir -p udev/rules.d; touch udev/rules.d/{64-md-raid-assembly,69-lvm}.rules; udevadm control --reload
        export FLEXVOLUME_LVM_DRIVER=$half/lvm FLEXVOLUME_LVM_BOOT_AGAIN=$half/again
        export FLEXVOLUME_LVM_POWER_DISK=/dev/vdb FLEXVOLUME_LVM_SEED=$SEED
        ${FULL:+export FLEXVOLUME_LVM_FULL=1}
        ${CALLS:+export $CALLS}
        $VERSIONS > $half/versions
        $2" "$half/disk" "$half/power"
}

# cases HALF LOG NAME…: runs the tests of these names in a guest. The names go there in a file:
# the kernel's command line is too short for them.
cases() {
    local half=$1
    local log=$half/$2
    shift 2
    printf '%s\n' "$@" > "$half/names"
    # By whole lines: the other half prints too.
    if ! in_guest "$half" "$half/guest --test-threads=1 --exact \$(cat $half/names)" |
        tee "$log" | sed -u "s/^/${half##*/}: /"; then
        # libtest has said what failed in the cases; the kernel may know why.
        say "the console of ${half##*/}"
        cat "$half/console"
        return 1
    fi
}

# power_cut HALF LOG NAME: leaves calls under way in a guest, and resets it. What it printed may be
# lost then, so that goes into a file; its exit status is lost for certain.
power_cut() {
    in_guest "$1" "$1/guest --test-threads=1 --exact $3 > $1/printed 2>&1
        cut_power" || true
    tee "$1/$2" < "$1/printed"
    grep -q '^test result: ok' "$1/$2"
}

# named PATTERN OR OPTION OF LIBTEST…: prints the names of the tests that it chooses.
named() { "$DIR/guest" --list "$@" | sed -n 's/: test$//p'; }

# half SUITE-NUMBER TEST…: runs them in a guest of their own, on the files of that Debian, or on this
# machine's if the suite is "guest". What goes on after a power-off takes another boot.
half() {
    local half=$DIR/$1 suite=${1%-*} name first=() cut=() later=() round=1 done=''
    shift
    [ "$suite" = guest ] || files_of "$suite"
    mkdir "$half"
    cp "$DIR/guest" "$DIR/lvm" "$half/"
    truncate -s 4G "$half/disk"
    truncate -s 40G "$half/power"
    for name in "$@"; do
        case $name in
            *::after_the_reboot_*) ;;
            *::when_the_power_goes_calls_*)
                cut+=("$name")
                later+=("$(named after_the_reboot_calls_)")
                ;;
            *) first+=("$name") ;;
        esac
    done
    if [ ${#first[@]} -gt 0 ]; then
        say "${half##*/}: ${#first[@]} tests on real LVM"
        if ! cases "$half" 1.log "${first[@]}" &&
            ! once_more "$suite" "$half/1.log" cases "$half" 4.log; then
            failed "${half##*/}"
            rm -f "$half/4.log" # They count once.
        fi
    fi
    [ ${#cut[@]} = 0 ] || step "${half##*/}" power_cut "$half" 2.log "${cut[@]}"
    [ ${#later[@]} = 0 ] || step "${half##*/}" cases "$half" 3.log "${later[@]}"
    # All steps of all calls do not fit on one disk. A round that did nothing is the last.
    while [ -e "$half/again.rounds" ] && [ "$done" != "$(cksum < "$half/again.rounds")" ]; do
        done=$(cksum < "$half/again.rounds")
        round=$((round + 1))
        rm -f "$half/power" "$half/again.cut"
        truncate -s 40G "$half/power"
        step "${half##*/}" power_cut "$half" "2-$round.log" "${cut[@]}"
        step "${half##*/}" cases "$half" "3-$round.log" "$(named after_the_reboot_calls_)"
    done
}

# at_once COMMAND…: runs it beside what runs, once there is a processor for it.
at_once() {
    while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || true; done
    { "$@" || failed "$1 $2"; } &
}

# The quickstart, on the same files as the guest's tests.
quickstart() {
    local suite passed=0
    need_guest
    [ -n "${SUITE:-}" ] || SUITES=("")
    for suite in "${SUITES[@]}"; do
        say "quickstart ${suite:-here}"
        if SUITE=$suite examples/quickstart.sh > "$DIR/quickstart.log" 2>&1; then
            passed=$((passed + 1))
        else
            tail -n 60 "$DIR/quickstart.log"
            failed "quickstart ${suite:-here}"
        fi
    done
    echo "quickstart ${#SUITES[@]} $passed" >> "$DIR/counts"
}

# guest [CASE…]: two guests at once, with half of the tests each if there are many.
guest() {
    local tests suite all other
    need strace:strace
    need_guest
    [ -n "${SUITE:-}" ] || SUITES=(guest)
    tests=$(artifact --test guest)
    [ -n "$tests" ] || die "the tests for the guest did not build"
    install "$tests" "$DIR/guest"
    install "$DRIVER" "$DIR/lvm"
    for suite in "${SUITES[@]}"; do
        if [ $# = 0 ] && [ "$suite" != "${SUITES[0]}" ]; then
            mapfile -t all < <(for part in "${VERSIONED[@]}"; do
                named "$part" | grep . || failed "no test in the guest is called $part"
            done)
        else
            mapfile -t all < <(named "$@")
        fi
        # The one with the reboots gets fewer.
        mapfile -t other < <(printf '%s\n' "${all[@]}" | grep -v '::power::' | awk 'NR % 5 < 3')
        if [ ${#all[@]} -ge 10 ]; then
            mapfile -t all < <(printf '%s\n' "${all[@]}" | grep -vxF "$(printf '%s\n' "${other[@]}")")
            at_once half "$suite-2" "${other[@]}"
        fi
        at_once half "$suite-1" "${all[@]}"
    done
    wait
    for suite in "${SUITES[@]}"; do
        cat "$DIR/$suite"-?/*.log > "$DIR/$suite.log"
        count "$suite" "$DIR/$suite.log" "$DIR/$suite-1/versions"
    done
}

# shared [CASE…]: two guests at once. The tests run here, and tell the guests what to do.
shared() {
    local SUITE='' FILES='' MACHINE=uml tests here=$DIR/shared disk=/dev/shm/${DIR##*/}
    need_guest
    need_lockd
    tests=$(artifact --test shared)
    [ -n "$tests" ] || die "the tests for two nodes did not build"
    mkdir "$here"
    install "$DRIVER" "$here/lvm"
    # In memory: its leases are made of many small writes.
    ln -s "$disk" "$here/disk"
    # Each guest ends when the tests do.
    shared_cases "$here" shared.log "$tests" "$@" || {
        tail -n 20 "$here"/?/printed
        once_more shared "$DIR/shared.log" shared_cases "$here" shared-2.log "$tests" --exact ||
            failed shared
    }
    as_root rm -f "$disk"
    cat "$DIR/shared-2.log" >> "$DIR/shared.log" 2> /dev/null || true
    count shared "$DIR/shared.log"
}

shared_cases() {
    local here=$1 log=$2
    shift 2
    say "two nodes on one disk"
    logged "$DIR/$log" as_root env FLEXVOLUME_LVM_SHARED="$here" FLEXVOLUME_LVM_LOCKD="$LOCKD" \
        timeout --kill-after=10 "$GUEST_LIMIT" "$@" --test-threads=1
}

verdict() {
    local name ran passed versions row total=0 good=0 bad
    UNDER_WAY=
    say result
    sed 's/^/FAILED /' "$DIR/failed"
    cat "$DIR"/unsteady-* 2> /dev/null | sed 's/^/UNSTEADY, passed at the second try: /' || true
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
        lint
        need promtool:prometheus
        host host
        build
        step executable one_static_executable
        # It builds with one core for most of the time, and then runs on one.
        { (fuzz) > "$DIR/fuzzed" 2>&1 || failed fuzz; } &
        quickstart
        guest
        shared
        cat "$DIR/fuzzed"
        # A kubelet runs on this machine's files.
        SUITE='' FILES='' MACHINE=$MACHINE_ASKED
        # With a newer one, what differs is run on the oldest too. Packages are installed before.
        if [ -n "${KUBERNETES:-}" ]; then
            need_guest
            need containerd:containerd runc:runc
            (KUBERNETES='' need_kubernetes kubelet)
            { (oldest_kubelet) > "$DIR/oldest.log" 2>&1 || failed oldest_kubelet; } &
        fi
        kubelet
        wait
        cat "$DIR/oldest.log" 2> /dev/null || true
        [ -z "$WITH_PLANE" ] || plane
        ;;
    lint) lint ;;
    unit) host unit --lib --bins "$@" ;;
    cli)
        need promtool:prometheus
        host cli --test cli "$@"
        ;;
    fuzz) fuzz "$@" ;;
    guest)
        build
        guest "$@"
        ;;
    shared)
        build
        shared "$@"
        ;;
    kubelet)
        build
        kubelet "$@"
        ;;
    plane)
        build
        plane "$@"
        ;;
    *)
        UNDER_WAY=
        sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
verdict
