#!/usr/bin/env bash
# Measures what docs/developers/performance.md says:
#
#   benches/run.sh host    size, memory, system calls, instructions; times beside the floor
#   benches/run.sh guest   whole lives of volumes, and a node that comes up, on real LVM in a guest
#
# ROUNDS (201) and LIVES (3) set how much is done, SCENES ("ext4 xfs btrfs active inactive encrypted") what of
# it in the guest, VOLUMES how many come up. PEER=FILE is the bash script that the driver takes the place of.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh

export CARGO_TERM_COLOR=never
unset CARGO_BUILD_TARGET
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
trap 'as_root rm -rf "$DIR"' EXIT
JSON='{"kubernetes.io/fsType":"ext4","volumegroup":"nosuch","volumeID":"data"}'

CALLS='init
isattached JSON another-node
attach JSON another-node
detach data another-node
unmountdevice /run/no-such-directory'

# artifact KIND NAME: builds it, and prints its path.
artifact() {
    cargo build --release --quiet --message-format=json-render-diagnostics "--$1" "$2" |
        sed -n "/\"kind\":\[\"$1\"\],.*\"name\":\"$2\"/"'s/.*"executable":"\([^"]*\)".*/\1/p'
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

# Variables cost instructions too, and RUST_BACKTRACE very many.
instructions() {
    env -i PATH="$PATH" valgrind --tool=callgrind --callgrind-out-file=/dev/null "$@" 2>&1 > /dev/null |
        sed -n 's/.*Collected : //p'
}

host() {
    local file call
    need strace:strace readelf:binutils valgrind:valgrind hyperfine:hyperfine
    for file in "$DIR/lvm" "$DIR/floor"; do
        printf '%-6s %8d bytes, %5d relocations, init: %3d system calls, %s at most\n' \
            "${file##*/}" "$(stat -c %s "$file")" "$(readelf -rW "$file" | grep -c R_X86_64)" \
            "$(strace "$file" init 2>&1 > /dev/null | grep -c ' = ')" "$(peak "$file" init)"
    done
    printf '%-44s %9s instructions\n' floor "$(instructions "$DIR/floor")"
    while read -r -a call; do
        call=("${call[@]//JSON/$JSON}")
        printf '%-44s %9s instructions\n' "${call[0]}" "$(instructions "$DIR/lvm" "${call[@]}")"
        hyperfine --shell none --style basic --warmup 10 --runs "${ROUNDS:-201}" \
            --export-csv "$DIR/times" "$DIR/floor" "$DIR/lvm $(printf '%q ' "${call[@]}")" \
            > /dev/null 2>&1
        # The fifth column from the end is the median, in seconds: `median,user,system,min,max`.
        awk -F, 'NR > 1 { printf "%44.3f ms (%s)\n", $(NF - 4) * 1000, NR == 2 ? "floor" : "driver" }' "$DIR/times"
    done <<< "$CALLS"
}

guest() {
    # shellcheck disable=SC2119
    need_tests_guest
    install benches/lives.sh "$DIR/lives"
    [ -z "${PEER:-}" ] || install "$PEER" "$DIR/script"
    boot "$DIR" "${GUEST_LIMIT:-3600}" "modprobe -qa loop dm-mod; mount -o remount,size=85% /run
        mkdir /run/driver && cp $DIR/lvm /run/driver/
        LIVES=${LIVES:-3} VOLUMES=${VOLUMES:-} SCENES='${SCENES:-}' $DIR/lives /run/driver/lvm ${PEER:+$DIR/script}" ||
        { cat "$DIR/console"; return 1; }
}

need_rust
install "$(artifact bin lvm)" "$DIR/lvm"
case ${1:-} in
    host)
        install "$(artifact bench floor)" "$DIR/floor"
        host
        ;;
    guest) guest ;;
    *) usage benches/run.sh "${1:-}" ;;
esac
