#!/usr/bin/env bash
# Shows a real logical volume going through its whole life under kubelet's call-outs.
#
#   examples/quickstart.sh          in a guest kernel that boots on this machine's own files;
#                                   nothing here is changed, and no root is needed once the
#                                   packages are there. SUITE=bullseye|bookworm|trixie|sid: on that
#                                   Debian's files and kernel, which takes root and debootstrap
#   examples/quickstart.sh --here   on this machine itself, with a loop device; needs root and
#                                   device-mapper, and cleans up
#
# What is missing is installed with apt on Debian and Ubuntu; elsewhere it is named.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh

case ${1:-} in
    '' | --here) ;;
    *) usage examples/quickstart.sh "$1" ;;
esac

if [ "${1:-}" = --here ]; then
    [ "$(id -u)" = 0 ] || sudo true || die "--here needs root or sudo"
    need dmsetup:dmsetup lvs:lvm2 mkfs.ext4:e2fsprogs cryptsetup:cryptsetup-bin findmnt:mount losetup:mount
    as_root dmsetup version > /dev/null 2>&1 ||
        die "this machine's kernel has no device-mapper; run it without --here"
    ! as_root vgs demo > /dev/null 2>&1 || die "there is a volume group called demo here already"
fi
need_rust
say "building the driver, which takes some minutes the first time"
cargo build --release --bin lvm
driver=$(cargo build --quiet --release --bin lvm --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

DIR=$(mktemp -d --suffix=.flexvolume-lvm)
trap 'rm -rf "$DIR" 2> /dev/null || as_root rm -rf "$DIR"' EXIT

if [ "${1:-}" = --here ]; then
    as_root bash examples/life-of-a-volume.sh "$driver" "$DIR"
    exit
fi

need_guest
cp "$driver" "$DIR/lvm"
cp examples/life-of-a-volume.sh "$DIR"
# The volume's disk is in the guest's memory: a loop device cannot be on a shared directory.
play="mkdir -p /run/demo; bash $DIR/life-of-a-volume.sh $DIR/lvm /run/demo"
say "booting a guest, which takes up to a minute"
[ -n "${SUITE:-}" ] || SUITES=("")
for suite in "${SUITES[@]}"; do
    [ -z "$suite" ] || files_of "$suite"
    if ! boot "$DIR" 1800 "$play"; then
        say "the guest's console"
        cat "$DIR/console"
        die "the guest ended with an error"
    fi
done
