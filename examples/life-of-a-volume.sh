#!/usr/bin/env bash
# The life of a logical volume, call by call, as kubelet makes the calls with attach = false, and what the commands
# for people say of it. Every command is printed before it runs, and every reply as it came.
#
#   life-of-a-volume.sh DRIVER DIRECTORY
#
# needs root and device-mapper. It makes the volume group "demo" on a loop device over a file in
# DIRECTORY, which must be empty, and plays kubelet there. At the end the group is removed again.
# examples/quickstart.sh runs this.
set -euo pipefail
driver=$1 top=$2
export LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1

say() { printf '\n# %s\n' "$*"; }

# show COMMAND: prints it, runs it, and prints what it printed.
show() {
    printf '$ %s\n' "$1"
    eval "$1"
}

# call COMMAND: a call of the driver, which must succeed.
call() {
    local reply
    printf '$ %s\n' "$1"
    reply=$(eval "$1") || true
    printf '%s\n' "$reply"
    case $reply in
        '{"status":"Success"'*) ;;
        *)
            echo "that should have succeeded" >&2
            exit 1
            ;;
    esac
}

# refuse COMMAND: a call of the driver, which must fail.
refuse() {
    local reply
    printf '$ %s\n' "$1"
    if reply=$(eval "$1"); then
        echo "that should have failed: $reply" >&2
        exit 1
    fi
    printf '%s\n' "$reply"
}

clean_up() {
    set +e
    cd /
    for one in "$pod" "$other"; do "$driver" unmount "$one" > /dev/null; done
    vgremove -qq --force --yes demo
    losetup --detach "$disk"
}

say "A node: a volume group with one logical volume, and the driver where kubelet looks for it"
modprobe -a loop dm-mod 2> /dev/null || true
truncate -s 2G "$top/disk"
disk=$(losetup --find --show "$top/disk")
kubelet=$top/kubelet
pod=$kubelet/pods/5ca1ab1e/volumes/kubernetes.io~lvm/data
other=$kubelet/pods/0ddba11/volumes/kubernetes.io~lvm/secret
trap clean_up EXIT
show "vgcreate --quiet demo $disk"
show "lvcreate --quiet --yes --name data-1 --size 64m demo"
mkdir -p "$top/exec/kubernetes.io~lvm" "$pod" "$other"
cp "$driver" "$top/exec/kubernetes.io~lvm/lvm"
driver=$top/exec/kubernetes.io~lvm/lvm
cd "$top/exec/kubernetes.io~lvm"
printf 'attach = false\nkubelet_dirs = ["%s"]\nlog = "%s"\n' "$kubelet" "$top/log" > config.toml
# Where a package is installed, the command is called so.
flexvolume-lvm() { ./lvm "$@"; }
call "./lvm init"

say "Before there is a pod: what would its first mount do?"
show "flexvolume-lvm check demo/data-1"

say "What a pod's manifest says of its volume, and where kubelet wants it"
options='{"volumegroup":"demo","volumeID":"data-1","kubernetes.io/fsType":"ext4","kubernetes.io/readwrite":"rw"}'
printf "$ options='%s'\n$ pod=%s\n" "$options" "$pod"

say "The pod starts: kubelet makes one call, which formats the volume, since it is blank, and mounts it"
call "./lvm mount \$pod \"\$options\""
show "findmnt --noheadings --output SOURCE,FSTYPE,OPTIONS \$pod"
show "echo 'written by the first pod' > \$pod/page"

say "A tag on the volume says which filesystem it holds, so that it is never formatted again"
show "flexvolume-lvm status demo/data-1"

say "The claim grows: logical volume and filesystem follow while the pod writes"
show "df -h --output=size,used,source \$pod"
call "./lvm expandfs \"\$options\" '' \$pod $((256 << 20)) $((64 << 20))"
show "df -h --output=size,used,source \$pod"

say "The pod ends"
call "./lvm unmount \$pod"

say "A pod that asks for the wrong filesystem does not get the volume, and nothing is lost"
refuse "./lvm mount \$pod \"\${options/ext4/xfs}\""

say "Somebody overwrites the first megabyte. blkid finds nothing: the script would format the volume"
show "dd if=/dev/demo/data-1 of=\$top/megabyte bs=1M count=1 status=none   # a backup, for later"
show "dd if=/dev/zero of=/dev/demo/data-1 bs=1M count=1 conv=fsync status=none"
show "blkid --probe /dev/demo/data-1 || echo nothing found"

say "The driver refuses, since the volume held data. The word in brackets is a row of docs/on-call.md"
refuse "./lvm mount \$pod \"\$options\""
show "flexvolume-lvm log --failed demo/data-1"

say "With the first megabyte back, the next pod finds the data"
show "dd if=\$top/megabyte of=/dev/demo/data-1 conv=fsync status=none"
call "./lvm mount \$pod \"\$options\""
show "grep 'written by the first pod' \$pod/page"

say "An encrypted volume, whose passphrase is in a file of the node"
show "(umask 077; head -c 32 /dev/urandom > \$top/key)"
show "printf '[encryption]\nkey_file = \"%s\"\npbkdf_iterations = 4\n' \$top/key >> config.toml"
show "lvcreate --quiet --yes --name secret-1 --size 64m demo"
call "./lvm mount $other '${options/data-1\"/secret-1\",\"encryption\":\"luks2\"}'"
show "flexvolume-lvm status demo"

say "A fault: a snapshot, as for a backup, which the pod's writes fill. Once it is full, its content is lost"
# The kernel may still write the inode tables of a new ext4: some 16 MiB here, which count, too.
show "lvcreate --quiet --yes --snapshot --size 120m --name data-1-now demo/data-1"
show "dd if=/dev/urandom of=\$pod/new bs=1M count=100 conv=fsync status=none"
# 1 is a fault, 3 a warning. This machine may have others, such as a missing tool for xfs.
show "flexvolume-lvm doctor --quiet || true"
helps=$(./lvm doctor --quiet | sed -n 's/^ *run: .\(lvextend .*\).$/\1/p' || true)

say "The command that doctor prints helps"
show "${helps:?doctor names no command}"
show "flexvolume-lvm doctor --quiet || true"
call "./lvm unmount \$pod"

say "You saw a blank volume formatted, grown and encrypted, one with data refused and kept, and a fault with its remedy"
echo "Go on with docs/start.md, which puts the driver on a node, and docs/safety.md, which has all promises."
