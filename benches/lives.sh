#!/usr/bin/env bash
# In the guest of benches/run.sh: how long whole lives of volumes take, and many pods that start at
# once. `lives.sh DRIVER [SCRIPT]`; LIVES is how often, CROWD how many.
set -euo pipefail

DRIVER=$1 SCRIPT=${2:-}
# The same, with `attach = false`.
ALONE=$(mktemp -d -p /run)/lvm
cp "$DRIVER" "$ALONE"
echo 'attach = false' > "${ALONE%/*}/config.toml"
# The same again, with a key for encrypted volumes.
SEALED=$(mktemp -d -p /run)/lvm
cp "$DRIVER" "$SEALED"
KEY=${SEALED%/*}/key
(umask 077; head -c 32 /dev/urandom > "$KEY")
printf 'attach = false\n[encryption]\nkey_file = "%s"\n' "$KEY" > "${SEALED%/*}/config.toml"
TOP=/var/lib/kubelet
HOST=$(hostname)
cd "$(mktemp -d -p /run)"
touch repeated
export LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1

# Each command of a volume LV has these.
of() {
    lv=$1 fs=$2 device=/dev/mapper/bench-$1
    json="{\"kubernetes.io/fsType\":\"$fs\",\"kubernetes.io/pvOrVolumeName\":\"$lv\",\"volumegroup\":\"bench\",\"volumeID\":\"$lv\"${3:+,\"encryption\":\"$3\"}}"
    global=$TOP/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/$lv
    pod=$TOP/pods/1/volumes/kubernetes.io~lvm/$lv
    if [ ! -d "$global" ] || [ ! -d "$pod" ]; then mkdir -p "$global" "$pod"; fi
}

# insist CALL…: repeats a call until it succeeds, as kubelet does.
insist() {
    until "$@" > "said-$BASHPID"; do
        cat "said-$BASHPID" >> repeated
        sleep 0.5
    done
}

# up EXECUTABLE LV FS. The script answers mount with "Not supported", and then kubelet itself binds.
up() {
    of "$2" "$3"
    insist "$1" attach "$json" "$HOST"
    insist "$1" waitforattach "$device" "$json"
    insist "$1" mountdevice "$global" "$device" "$json"
    "$1" mount "$pod" "$json" > /dev/null || true
    [ "$1" != "$SCRIPT" ] || mount --bind "$global" "$pod"
}

down() {
    of "$2" "$3"
    "$1" unmount "$pod" > /dev/null || true
    [ "$1" != "$SCRIPT" ] || umount "$pod"
    insist "$1" unmountdevice "$global"
    insist "$1" detach "$lv" "$HOST"
}

live() {
    up "$@"
    down "$@"
}

# The same with `attach = false`; and with an encrypted volume, if a fourth word says luks2.
mount_only() {
    of "$2" "$3" "${4:-}"
    insist "$1" mount "$pod" "$json"
    insist "$1" unmount "$pod"
}

# As the driver does it.
make() {
    case $fs in
        ext4) mkfs.ext4 -q -m 0 -O metadata_csum -E nodiscard,lazy_itable_init=1,lazy_journal_init=1 "$device" ;;
        *) "mkfs.$fs" -q -K "$device" ;;
    esac
}

# What no driver can leave out.
needed() {
    of "$2" "$3"
    lvs "bench/$lv" > /dev/null
    lvchange -qq --addtag x "bench/$lv"
    make > /dev/null
    lvchange -qq --deltag x "bench/$lv"
    mount -t "$fs" "$device" "$global"
    umount "$global"
}

# The same for a volume with a filesystem.
needed_later() {
    of "$2" "$3"
    lvs "bench/$lv" > /dev/null
    [ "$3" != ext4 ] || e2fsck -p "$device" > /dev/null
    mount -t "$fs" "$device" "$global"
    umount "$global"
}

# The same two for an encrypted volume.
needed_sealed() {
    of "$2" "$3"
    lvs "bench/$lv" > /dev/null
    lvchange -qq --addtag x "bench/$lv"
    cryptsetup luksFormat --batch-mode --pbkdf-memory 65536 --key-file "$KEY" "$device"
    open_sealed
    make > /dev/null
    lvchange -qq --deltag x "bench/$lv"
    close_sealed
}

needed_sealed_later() {
    of "$2" "$3"
    lvs "bench/$lv" > /dev/null
    open_sealed
    e2fsck -p "$device" > /dev/null
    close_sealed
}

open_sealed() {
    cryptsetup open --disable-keyring --key-file "$KEY" "$device" bench-open
    device=/dev/mapper/bench-open
}

close_sealed() {
    mount -t "$fs" "$device" "$global"
    umount "$global"
    cryptsetup close bench-open
}

# As it was when it was new.
blank() {
    local tag
    of "$1" "$2"
    blkdiscard "$device" 2> /dev/null
    for tag in $(lvs --noheadings -o lv_tags "bench/$lv" | tr , ' '); do
        lvchange -qq --deltag "$tag" "bench/$lv"
    done
}

# took COMMAND…: how many milliseconds, with what it leaves to udev.
took() {
    local from=${EPOCHREALTIME/./}
    "$@"
    udevadm settle
    echo $(((${EPOCHREALTIME/./} - from) / 1000))
}

median() { sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }

# compare ONE TWO: lives that were taken in turn.
compare() {
    printf '%s: %s %s ms, %s %s ms, %.2f times\n' "$fs" "$1" "$(median < "$fs-$1")" "$2" \
        "$(median < "$fs-$2")" "$(paste "$fs-$1" "$fs-$2" | awk '{ print $1 / $2 }' | median)"
}


# All take part in turn: the driver in both modes, and with volumes that have a filesystem already (again);
# the first round fills caches and does not count.
lives() {
    local fs=$1 size=$2 round who all=(driver alone needed again later ${SCRIPT:+script})
    for who in "${all[@]}"; do
        lvcreate -qq -y -W y -n "$fs$who" -L "$size" bench
    done
    for ((round = 0; round <= ${LIVES:-3}; round++)); do
        for who in "${all[@]}"; do
            lv=$fs$who
            case $who in
                # A first mount has made these.
                again | later) [ "$round" != 0 ] || mount_only "$ALONE" "$lv" "$fs" ;;
                *) blank "$lv" "$fs" ;;
            esac
            udevadm settle
            case $who in
                driver) took live "$DRIVER" "$lv" "$fs" ;;
                alone | again) took mount_only "$ALONE" "$lv" "$fs" ;;
                needed) took needed - "$lv" "$fs" ;;
                later) took needed_later - "$lv" "$fs" ;;
                script) took live "$SCRIPT" "$lv" "$fs" ;;
            esac > milliseconds
            [ "$round" = 0 ] || cat milliseconds >> "$fs-$who"
        done
    done
    compare driver needed
    compare alone needed
    compare again later
    ${SCRIPT:+compare driver script}
}

# Encrypted volumes with ext4, made and mounted later; the first round does not count, either. cryptsetup tries how
# often it hashes a passphrase in two seconds.
sealed() {
    local fs=sealed-ext4 round who lv
    for who in driver needed again later; do lvcreate -qq -y -W y -n "sealed$who" -L 96m bench; done
    for ((round = 0; round <= ${LIVES:-3}; round++)); do
        for who in driver needed again later; do
            lv=sealed$who
            case $who in
                driver | needed) blank "$lv" ext4 ;;
                again) [ "$round" != 0 ] || mount_only "$SEALED" "$lv" ext4 luks2 ;;
                later) [ "$round" != 0 ] || needed_sealed - "$lv" ext4 ;;
            esac
            udevadm settle
            case $who in
                driver | again) took mount_only "$SEALED" "$lv" ext4 luks2 ;;
                needed) took needed_sealed - "$lv" ext4 ;;
                later) took needed_sealed_later - "$lv" ext4 ;;
            esac > milliseconds
            [ "$round" = 0 ] || cat milliseconds >> "sealed-ext4-$who"
        done
    done
    fs=sealed-ext4
    compare driver needed
    compare again later
    of sealedneeded ext4
    open_sealed
    printf 'written past the cache, encrypted: %s, ' "$(throughput)"
    cryptsetup close bench-open
    of sealedneeded ext4
    printf 'plain: %s\n' "$(throughput)"
}

throughput() { dd if=/dev/zero of="$device" bs=1M count=64 oflag=direct 2>&1 | sed -n 's/.*, //p'; }

# each COMMAND…: with each volume of the crowd, at once.
each() {
    local number
    for ((number = 1; number <= CROWD; number++)); do
        "$@" "crowd$number" ext4 &
    done
    wait
}

one_by_one() {
    local number
    for ((number = 1; number <= CROWD; number++)); do
        of "crowd$number" ext4
        "$@"
    done
}

two_changes() {
    lvchange -qq --addtag x "bench/$lv"
    lvchange -qq --deltag x "bench/$lv"
}

crowd() {
    local exe lv
    for exe in "$DRIVER" ${SCRIPT:+"$SCRIPT"}; do
        : > repeated
        udevadm settle
        printf '%s pods at once, %s: %s ms, ' "$CROWD" "$exe" "$(took each up "$exe")"
        printf '%s calls repeated\n' "$(wc -l < repeated)"
        each down "$exe"
        one_by_one blank_again
    done
    printf 'mkfs of all, one by one: %s ms\n' "$(took one_by_one make | tail -n 1)"
    printf 'two lvchange for each, one by one: %s ms\n' "$(took one_by_one two_changes)"
}

blank_again() { blank "$lv" ext4; }

truncate -s 20G disk
vgcreate -q bench "$(losetup --find --show disk)" > /dev/null
lives ext4 64m
lives xfs 320m
lives btrfs 128m
if command -v cryptsetup > /dev/null; then sealed; fi
for ((number = 1; number <= ${CROWD:=100}; number++)); do
    lvcreate -qq -y -n "crowd$number" -L 64m bench
done
crowd
vgchange -qq -an bench
losetup --detach-all
