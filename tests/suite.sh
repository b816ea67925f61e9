# shellcheck shell=bash
# Sourced by tests/run.sh: the files and the kernel of a Debian that SUITE names, for guests that
# are Linux as a process.

FILES= # the top directory of that Debian; empty: this machine's own files

# need_suite: sets FILES, which is made once. To have newer packages, remove it.
need_suite() {
    need debootstrap:debootstrap
    FILES=$CACHE/debian-$SUITE
    mkdir -p "$CACHE"
    # Another run may be making it.
    (flock 9 && { [ -e "$FILES" ] || make_suite; }) 9> "$FILES.lock"
}

make_suite() {
    local mirror='' packages="btrfs-progs busybox-static cryptsetup-bin dosfstools e2fsprogs fdisk hostname"
    packages+=" iproute2 kmod lvm2 mdadm mount procps strace thin-provisioning-tools udev"
    packages+=" user-mode-linux util-linux xfsprogs"
    say "making the files of Debian $SUITE in $FILES, which takes some minutes"
    # Elsewhere than on Debian itself, debootstrap knows a mirror.
    # shellcheck source=/dev/null
    [ "$(. /etc/os-release && echo "$ID")" != debian ] ||
        mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/debian.* 2> /dev/null |
            sed -nE 's/^(URIs:|deb( \[.*\])?) *(http[^ ]*).*/\3/p' | head -n 1)
    as_root rm -rf "$FILES.new"
    # What it mounts goes with its namespace, however it ends.
    as_root unshare --mount debootstrap --variant=minbase --include="${packages// /,}" \
        "$SUITE" "$FILES.new" ${mirror:+"$mirror"} > "$FILES.log" 2>&1 || {
        tail -n 20 "$FILES.log" "$FILES.new/debootstrap/debootstrap.log"
        die "debootstrap made no Debian $SUITE"
    }
    as_root mkdir -p "$FILES.new/lib/modules"
    as_root rm -rf "$FILES.new"/var/cache/apt "$FILES.new"/var/lib/apt/lists
    as_root mv "$FILES.new" "$FILES"
}

# on_suite SHARE COMMAND…: runs it as root on the files of SUITE, if that is set, where it sees
# SHARE too. The mounts go with the namespace.
on_suite() {
    local share=$1
    shift
    [ -n "$FILES" ] || {
        as_root "$@"
        return
    }
    # shellcheck disable=SC2016
    as_root unshare --mount bash -euc 'files=$0 share=$1
        mount -t tmpfs tmpfs "$files/tmp"
        mkdir -p "$files$share"
        for dir in /proc /dev "$share"; do mount --rbind "$dir" "$files$dir"; done
        shift; exec chroot "$files" "$@"' "$FILES" "$share" "$@"
}
