#!/usr/bin/env bash
# In the guest of benches/run.sh: how long whole lives of volumes take, and a node that comes up.
# `lives.sh DRIVER [SCRIPT]`; LIVES is how often, SCENES which, VOLUMES how many come up at once.
set -euo pipefail

DRIVER=$1
# The same, with `attach = false`.
ALONE=$(mktemp -d -p /run)/lvm
cp "$DRIVER" "$ALONE"
KEY=${ALONE%/*}/key
(umask 077 && printf passphrase > "$KEY")
printf 'attach = false\n[encryption]\nkey_file = "%s"\n' "$KEY" > "${ALONE%/*}/config.toml"
SCRIPT=${2:-}
TOP=/var/lib/kubelet
HOST=$(hostname)
cd "$(mktemp -d -p /run)"
export LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1

# Each command of a volume LV has these.
of() {
    lv=$1 fs=$2 device=/dev/mapper/bench-$1
    json="{\"kubernetes.io/fsType\":\"$fs\",\"kubernetes.io/pvOrVolumeName\":\"$lv\",\"volumegroup\":\"bench\",\"volumeID\":\"$lv\"}"
    [ "$scene" != encrypted ] || json=${json/%\}/,\"encryption\":\"luks2\"\}}
    global=$TOP/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/$lv
    pod=$TOP/pods/1/volumes/kubernetes.io~lvm/$lv
    if [ ! -d "$global" ] || [ ! -d "$pod" ]; then mkdir -p "$global" "$pod"; fi
}

# insist CALL…: repeats a call until it succeeds, as kubelet does.
insist() {
    until "$@" > "said-$BASHPID"; do
        cat "said-$BASHPID" >&2
        sleep 0.5
    done
}

# up EXECUTABLE LV FS
up() {
    of "$2" "$3"
    insist "$1" attach "$json" "$HOST"
    insist "$1" waitforattach "$device" "$json"
    insist "$1" mountdevice "$global" "$device" "$json"
    insist "$1" mount "$pod" "$json"
}

down() {
    of "$2" "$3"
    insist "$1" unmount "$pod"
    insist "$1" unmountdevice "$global"
    insist "$1" detach "$lv" "$HOST"
}

live() {
    up "$@"
    down "$@"
}

# The same with `attach = false`.
mount_only() {
    of "$2" "$3"
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
    local fs=$1 size=$2 round who all=(driver alone needed again later)
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
            esac > milliseconds
            [ "$round" = 0 ] || cat milliseconds >> "$fs-$who"
        done
    done
    compare driver needed
    compare alone needed
    compare again later
}

# each COMMAND…: with each volume of the scene, at once.
each() {
    local number
    for ((number = 1; number <= count; number++)); do "$@" "$prefix$number" ext4 & done
    wait
}

mounted() {
    of "$@"
    insist "$ALONE" mount "$pod" "$json"
}

bare() {
    of "$@"
    [ "$scene" != inactive ] || lvchange -qq -ay "bench/$lv"
    if [ "$scene" = encrypted ]; then
        cryptsetup open --key-file "$KEY" "$device" "$lv"
        device=/dev/mapper/$lv
    fi
    e2fsck -p "$device" > /dev/null
    mount "$device" "$pod"
}

# The bash script has no `mount`: kubelet binds the mount to the pod's directory itself.
script() {
    of "$@"
    insist "$SCRIPT" attach "$json"
    insist "$SCRIPT" waitforattach "$device" "$json"
    insist "$SCRIPT" mountdevice "$global" "$device" "$json"
}

# All is as it was before the node came up.
goes_down() {
    local name
    awk -v top="$TOP" 'index($2, top) == 1 { print $2 }' /proc/mounts | xargs --no-run-if-empty umount
    for name in /dev/mapper/{flexvolume.,encrypted}*; do [ ! -e "$name" ] || cryptsetup close "$name"; done
    vgchange -qq -an bench
    [ "$scene" = inactive ] || vgchange -qq -ay bench
    udevadm settle
}

# comes_up SCENE COUNT PREFIX WHO…: kubelet calls `mount` for all pods at once.
comes_up() {
    local scene=$1 count=$2 prefix=$3 number round who
    shift 3
    for ((number = 1; number <= count; number++)); do
        lvs "bench/$prefix$number" > /dev/null 2>&1 || lvcreate -qq -y -n "$prefix$number" -L 64m bench
        mounted "$prefix$number" ext4
    done
    for ((round = 1; round <= ${LIVES:-3}; round++)); do
        for who in mounted "$@"; do
            goes_down
            took each "$who" >> "$scene-$who"
            [ "$(grep -c "$TOP" /proc/mounts)" = "$count" ] || { echo "$scene, $who: not all came up"; exit 1; }
        done
    done
    goes_down
    for who in "$@"; do fs=$scene compare mounted "$who"; done
}

truncate -s 20G disk
vgcreate -q bench "$(losetup --find --show disk)" > /dev/null
for scene in ${SCENES:-ext4 xfs btrfs active inactive encrypted}; do
    case $scene in
        ext4) lives ext4 64m ;;
        xfs) lives xfs 320m ;;
        btrfs) lives btrfs 128m ;;
        active) comes_up active "${VOLUMES:-40}" up bare ${SCRIPT:+script} ;;
        inactive) comes_up inactive "${VOLUMES:-40}" up bare ;;
        encrypted) comes_up encrypted "${VOLUMES:-10}" encrypted bare ;;
        *) echo "no scene is called $scene"; exit 2 ;;
    esac
done
vgchange -qq -an bench
losetup --detach-all
