#!/usr/bin/env bash
# Shows a real logical volume going through its whole life under kubelet's call-outs.
#
#   examples/quickstart.sh          in a guest kernel that boots on this machine's own files, which
#                                   it reads as root; nothing here is changed but that packages are
#                                   installed. SUITE=bullseye|bookworm|trixie|sid: on that Debian's
#                                   files and kernel, made with debootstrap
#   examples/quickstart.sh --here   on this machine itself, with a loop device; needs root and
#                                   device-mapper, and cleans up
#
# What is missing is installed with apt on Debian and Ubuntu; elsewhere it is named. Who is not root needs sudo.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tests/boot.sh
. tests/boot.sh

case ${1:-} in
    '' | --here) ;;
    *) usage examples/quickstart.sh "$1" ;;
esac

need_rust
if [ "${1:-}" = --here ]; then
    need "${RUST_TOOLS[@]}" dmsetup:dmsetup lvs:lvm2 mkfs.ext4:e2fsprogs cryptsetup:cryptsetup-bin findmnt:mount losetup:mount
    need_root "to use a loop device of this machine"
    as_root dmsetup version > /dev/null 2>&1 ||
        die "this machine's kernel has no device-mapper; run it without --here"
    ! as_root vgs demo > /dev/null 2>&1 || die "there is a volume group called demo here already"
else
    need_guest "${GUEST_TOOLS[@]}"
fi
DIR=$(mktemp -d --suffix=.flexvolume-lvm)
trap 'rm -rf "$DIR" 2> /dev/null || as_root rm -rf "$DIR"' EXIT
[ -z "${SUITE:-}" ] || need_suites

say "building the driver, which takes a minute the first time"
# As the tests have it: the release is smaller, and takes longer to build.
cargo build --bin lvm
driver=$(cargo build --quiet --bin lvm --message-format=json |
    sed -n 's/.*"executable":"\([^"]*\)".*/\1/p' | tail -n 1)

if [ "${1:-}" = --here ]; then
    as_root bash examples/life-of-a-volume.sh "$driver" "$DIR"
    exit
fi

# play FILES: boots a guest in which a volume lives.
play() {
    # The volume's disk is in the guest's memory: a loop device cannot be on a shared directory.
    boot "$DIR" 1800 "echo \"# Linux \$(uname -r), \$(lvm version | sed -n 's/^ *LVM version: */LVM /p'), on $1\"
        mkdir -p /run/demo; bash $DIR/life-of-a-volume.sh $DIR/lvm /run/demo" | tee "$DIR/played" && return
    kernel_said "$DIR" | tail -n 20 >&2
    [ -e "$DIR/up" ] || die "the guest cannot start: $(why_not "$DIR")"
    die "this failed in the guest: $(sed -n 's/^\$ //p' "$DIR/played" | tail -n 1)"
}

cp "$driver" "$DIR/lvm"
cp examples/life-of-a-volume.sh "$DIR"
say "booting a guest, which takes up to a minute"
if [ -z "${SUITE:-}" ]; then
    play "this machine's files"
else
    for suite in "${SUITES[@]}"; do
        files_of "$suite"
        play "the files of Debian $suite"
    done
fi
