#!/usr/bin/env bash
# In the guest of benches/run.sh: how long the commands for people take beside many volumes, and `lvs` beside them.
# `many.sh DRIVER KIND…`: MANY volumes of 32 MiB, all blank, all with an ext4 that the driver has recorded, or all of
# these mounted for pods.
set -euo pipefail

DRIVER=$1
MANY=${MANY:-1000}
TOP=/var/lib/kubelet
cd "$(mktemp -d -p /run)"
export LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1

uuid() { printf '0b1c0000-0000-4000-8000-%012d' "$1"; }

# One change of LVM's metadata adds all of them. They go by the driver's record as what KIND says.
add_volumes() {
    local kind=$1 number
    vgcfgbackup -qq -f metadata bench
    {
        sed '/^\t}$/q' metadata # to the end of physical_volumes
        echo 'logical_volumes {'
        for ((number = 0; number < MANY; number++)); do
            printf 'v%d { id = "aaaaaa-aaaa-aaaa-aaaa-aaaa-aaaa-aa%04d"\n' "$number" "$number"
            printf 'status = ["READ", "WRITE", "VISIBLE"]\n'
            [ "$kind" = blank ] || printf 'tags = ["flexvolume.fs=ext4:%s"]\n' "$(uuid "$number")"
            printf 'segment_count = 1\nsegment1 { start_extent = 0\nextent_count = 8\ntype = "striped"\n'
            printf 'stripe_count = 1\nstripes = ["pv0", %d] } }\n' $((number * 8))
        done
        printf '}\n}\n'
        sed '1,/^}$/d' metadata
    } > "more"
    vgcfgrestore -qq -y -f more bench
    vgchange -qq -ay bench
}

make() {
    local number
    for ((number = 0; number < MANY; number++)); do
        mkfs.ext4 -q -E nodiscard,lazy_itable_init=1 -O ^has_journal -U "$(uuid "$number")" "/dev/mapper/bench-v$number"
    done
}

mount_all() {
    local number dir
    for ((number = 0; number < MANY; number++)); do
        dir=$TOP/pods/$number/volumes/kubernetes.io~lvm/v$number
        mkdir -p "$dir"
        mount "/dev/mapper/bench-v$number" "$dir"
    done
}

# took COMMAND…: how many milliseconds; the second of two times.
took() {
    local from
    for _ in 1 2; do
        from=${EPOCHREALTIME/./}
        "$@" > said 2>&1 || true
    done
    echo $(((${EPOCHREALTIME/./} - from) / 1000))
}

commands() {
    local of=$1 command lvs
    lvs=$(took lvs -a)
    printf '%s: lvs %s ms' "$of" "$lvs"
    for command in status 'status -x' metrics doctor; do
        # shellcheck disable=SC2086
        took "$DRIVER" $command > milliseconds
        awk -v lvs="$lvs" -v name="$command" '{ printf ", %s %d (%.1f)", name, $1, $1 / lvs }' milliseconds
    done
    echo
}

for kind in blank ext4 mounted; do
    truncate -s $(((MANY + 1) * 32))M disk
    vgcreate -q bench "$(losetup --find --show disk)" > /dev/null
    add_volumes "$kind"
    [ "$kind" = blank ] || make
    [ "$kind" != mounted ] || mount_all
    commands "$MANY volumes, $kind"
    [ "$kind" != mounted ] || umount /dev/mapper/bench-v*
    vgchange -qq -an bench
    losetup --detach-all
    rm disk
done
