#!/usr/bin/env bash
# Measures the driver, as whole processes, in one interleaved run:
#
#   benches/run.sh                    everything: on this machine, then on real LVM in a guest
#   benches/run.sh host               what needs no LVM
#   benches/run.sh parts              what a volume's whole life runs, bare, on this machine: root,
#                                     loop devices and LVM without device-mapper
#   benches/run.sh guest [PART…]      lvm lives crowd making, or some of these
#
# PEER=FILE is the bash script that the driver takes the place of; without it its columns are left
# out. ROUNDS (201), LIVES (3), CROWD (100) and CPUS (2) set how much is done. The results are
# printed, and kept as JSON in target/benches/.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh

export CARGO_TERM_COLOR=never
unset CARGO_BUILD_TARGET
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
trap 'as_root rm -rf "$DIR"' EXIT
RESULTS=$PWD/target/benches
GUEST_LIMIT=${GUEST_LIMIT:-3600}

# artifact KIND NAME: builds it, and prints its path.
artifact() {
    cargo build --release --quiet --message-format=json-render-diagnostics "--$1" "$2" |
        sed -n "/\"kind\":\[\"$1\"\],.*\"name\":\"$2\"/"'s/.*"executable":"\([^"]*\)".*/\1/p'
}

build() {
    install "$(artifact bin lvm)" "$DIR/lvm"
    install "$(artifact bench floor)" "$DIR/floor"
    install "$(artifact bench calls)" "$DIR/calls"
    ARGUMENTS=(--driver "$DIR/lvm" --floor "$DIR/floor" --rounds "${ROUNDS:-201}"
        --lives "${LIVES:-3}" --crowd "${CROWD:-100}")
    if [ -n "${PEER:-}" ]; then
        need jq:jq
        install "$PEER" "$DIR/script"
        ARGUMENTS+=(--peer "$DIR/script")
    fi
    mkdir -p "$RESULTS"
}

# The most memory that a call had at once: looked at when it is about to exit, since a parent's
# own memory is counted in what wait4(2) says of a child.
peak() {
    local pid
    strace -o /dev/null --inject=exit_group:delay_enter=500000 "$@" > /dev/null &
    sleep 0.25
    pid=$(pgrep -P $!)
    sed -n 's/^VmHWM:[^0-9]*//p' "/proc/$pid/status"
    wait $!
}

small() {
    need strace:strace readelf:binutils valgrind:valgrind
    say "the executable, and the floor's"
    local file
    for file in "$DIR/lvm" "$DIR/floor"; do
        printf '%-6s %8d bytes, %5d relocations, init: %3d system calls, %s at most, %s instructions\n' \
            "${file##*/}" "$(stat -c %s "$file")" "$(readelf -rW "$file" | grep -c R_X86_64)" \
            "$(strace "$file" init 2>&1 > /dev/null | grep -c ' = ')" \
            "$(peak "$file" init)" "$(instructions "$file" init)"
    done
    say "instructions of each call (user space)"
    local json='{"kubernetes.io/fsType":"ext4","volumegroup":"nosuch","volumeID":"data"}'
    while read -r -a call; do
        printf '%-28s %9s\n' "${call[0]}" \
            "$(instructions "$DIR/lvm" "${call[@]//JSON/$json}")"
    done <<< "init
isattached JSON another-node
attach JSON another-node
detach data another-node
unmountdevice /run/no-such-directory"
}

instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 > /dev/null |
        sed -n 's/.*Collected : //p'
}

host() {
    say "calls that need no LVM, on this machine ($(nproc) processors, $(uname -r))"
    "$DIR/calls" "${ARGUMENTS[@]}" --json "$RESULTS/host.json" calls
}

parts() {
    need lvs:lvm2 mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs mkfs.btrfs:btrfs-progs
    say "what a whole life of a volume runs, on this machine"
    as_root env TMPDIR="$DIR" "$DIR/calls" "${ARGUMENTS[@]}" --json "$DIR/parts.json" parts
    install -m 644 "$DIR/parts.json" "$RESULTS/parts.json"
}

guest() {
    local VNG_OPTIONS=(--cpus "${CPUS:-2}")
    MACHINE=${MACHINE:-vng} need_guest
    say "on real LVM in a guest (${CPUS:-2} processors, ${MACHINE:-vng})"
    boot "$DIR" "$GUEST_LIMIT" \
        "modprobe -a loop dm-mod; mount -o remount,size=85% /run; cd /run; mkdir driver; cp $DIR/lvm driver/
        $DIR/calls$(printf ' %q' "${ARGUMENTS[@]}") --driver /run/driver/lvm \
            --json $DIR/guest.json $*" || { cat "$DIR/console"; return 1; }
    install -m 644 "$DIR/guest.json" "$RESULTS/guest.json"
}

need_rust
what=${1:-all}
[ $# = 0 ] || shift
case $what in
    all)
        build
        small
        host
        parts
        guest lvm lives crowd making
        ;;
    host)
        build
        small
        host
        ;;
    parts)
        build
        parts
        ;;
    guest)
        build
        guest "${@:-lvm lives crowd making}"
        ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' "$0"
        exit 2
        ;;
esac
