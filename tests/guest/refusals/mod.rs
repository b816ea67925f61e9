//! Every reason to refuse a volume, on real LVM. Each word of docs/on-call.md has a row, which says how the state comes
//! about. A row is a test of that name: `tests/run.sh guest refusals::swap`.

pub mod agreed;
pub mod commands;
mod row;

use crate::prelude::*;
use row::{ROW, Row};

macro_rules! refusals {
    ($($word:ident { $($field:ident: $value:expr,)* })*) => {
        $(#[test]
        fn $word() {
            static IT: Row = Row { $($field: $value,)* ..ROW };
            IT.is_refused(&stringify!($word).trim_start_matches("r#").replace('_', "-"));
        })*
    };
}

/// The volume is encrypted by the driver, and then these lines run.
macro_rules! encrypted {
    ($more:expr) => {
        concat!(
            "printf key > /run/refusals.key; chmod 600 /run/refusals.key
            options='\"volumegroup\":\"'$vg'\",\"volumeID\":\"data\",\"kubernetes.io/fsType\":\"ext4\"'
            $lvm mount $other \"{$options,\\\"encryption\\\":\\\"luks2\\\"}\" | grep Success > /dev/null
            $lvm unmount $other | grep Success > /dev/null; ",
            $more
        )
    };
}

const KEY: &str =
    "[encryption]\nkey_file = '/run/refusals.key'\npbkdf_memory = '32k'\npbkdf_iterations = 4";
const LUKS2: (&str, &str) = ("encryption", "luks2");
/// A new volume takes the place of an encrypted one.
const NEW: &str =
    "lvremove -qq -y $vg/data; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -z $dev";

const RO: (&str, &str) = ("kubernetes.io/readwrite", "ro");

refusals! {
    not_allowed { config: "[volume_group.others]", }
    not_its_device {
        prepare: "lvcreate -qq -y -n other -L 4m $vg; ln -sfn $(realpath ${dev%data}other) $dev",
        says: "`vgmknodes not-its-device`",
        undo: "told vgmknodes || true", // 2.03.16 makes it, and exits with 5
    }
    not_its_device_but_a_persons {
        word: "not-its-device",
        prepare: "lvchange -qq -an $vg/data; dmsetup create $(basename $dev) --table \"0 65536 zero\"",
        says: "another device has the volume's name",
        undo: "told dmsetup remove",
    }
    another_is_there {
        prepare: "lvcreate -qq -y -n other -L 32m $vg; mkfs.ext4 -q ${dev%data}other
            mount -o ro ${dev%data}other $pod; mount -o ro ${dev%data}other $global",
        says: "already holds another-is-there/other, not another-is-there/data",
        check: Some(""),
        undo: "told umount $pod; told umount $global",
    }
    swap { prepare: "mkswap $dev; swapon $dev", undo: "told swapoff; blkdiscard -f $dev", }
    part_of_device { says: "another device of this host (ontop), ", prepare: "dmsetup create ontop --table \"0 65536 linear $dev 0\"", undo: "dmsetup remove --retry ontop", }
    r#loop {
        prepare: "losetup --find --show --offset 1M $dev > $dir/loop",
        undo: "told losetup --detach",
    }
    open { prepare: "lasting sleep 1000 9<> $dev", says: "open/data is open in sleep (pid ", undo: ":", }
    open_unseen {
        prepare: "mknod $dir/node b $(dmsetup info -c --noheadings --separator ' ' -o major,minor $dev)
            losetup --find --show $dir/node > $dir/loop; rm $dir/node",
        undo: "losetup --detach $(cat $dir/loop)",
    }
    host_mount { prepare: "mkfs.ext4 -q $dev; mount -o noinit_itable $dev $dir", undo: "told umount", }
    wrong_type { prepare: "mkfs.ext2 -q $dev", says: "Set fsType to ext2", }
    mounted_read_only { prepare: "mkfs.ext4 -q $dev; mount -o ro $dev $pod", undo: "umount $pod", }
    filesystem_failed {
        prepare: "mkfs.ext4 -q $dev; mount -o noinit_itable $dev $other
            echo 1 > /sys/fs/ext4/$(basename $(realpath $dev))/trigger_fs_error",
        undo: "umount $other",
    }
    lvm_silent {
        prepare: "vgchange -qq -an $vg; truncate -s 64M $dir/twin; twin=$(losetup --find --show $dir/twin); echo $twin > $dir/loop
            vgcreate -qq --config \"devices { filter = [ 'a|$twin|', 'r|.*|' ] }\" $vg $twin",
        undo: "told vgrename UUID=$(pvs --noheadings -o vg_uuid $(cat $dir/loop) | tr -d ' ')
            vgremove -qq lvm-silent-2; losetup --detach $(cat $dir/loop)",
    }
    unknown {
        prepare: "echo 'devices { filter = [ \"r|.*|\" ] }' > $dir/lvm.conf
            mount --bind $dir/lvm.conf /etc/lvm/lvm.conf",
        undo: "umount /etc/lvm/lvm.conf",
    }
    no_group { prepare: "vgrename -qq $vg renamed-group", undo: "vgrename -qq renamed-group $vg", }
    no_volume { prepare: "lvremove -qq -y $vg/data", asks: &[("size", "32m")], undo: "told lvcreate", }
    hidden {
        prepare: "lvrename -qq $vg data origin; mkfs.ext4 -q ${dev%data}origin
            mount -o ro ${dev%data}origin $dir; lvcreate -qq -y -s -n data -L 32m $vg/origin
            lvconvert -qq --merge $vg/data",
        undo: "umount $dir; lvchange -qq -an $vg/origin; lvchange -qq -ay $vg/origin
            while lvs $vg/data 2> /dev/null; do sleep 0.1; done; lvrename -qq $vg origin data",
    }
    no_size {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.no-size]\ncreate = true",
        asks: &[("size", ""), ("thinpool", "")],
    }
    create_read_only {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.create-read-only]\ncreate = true",
        asks: &[RO],
        check: Some("no-size"),
    }
    metadata_full {
        // A smaller area for the metadata is full sooner.
        prepare: "vgremove -qq -f $vg; pvcreate -qq -ff -y --metadatasize 60k --dataalignment 64k $disk
            vgcreate -qq $vg $disk; lvcreate -qq -y -W y -n data -L 32m $vg
            free() { vgs --noheadings --nosuffix --units b -o vg_mda_free $vg; }
            # LVM notes each command, too.
            tag() { vgchange -qq $(seq -f \"--addtag %0$1g\" $2) $vg; }
            n=1000; while [ $(free) -gt 5000 ]; do tag $n $(($(free) / 3000)); n=$((n - 1)); done
            n=50; while [ $(free) -gt 2000 ]; do tag $n 4; n=$((n + 1)); done",
        says: "`vgs -o +vg_mda_free metadata-full`",
        undo: "truncate -s 64M $dir/lost; disk2=$(losetup --find --show $dir/lost)
            told pvcreate DISK=$disk2 DISK=$disk2
            told pvchange OLDDISK=$disk",
    }
    another_pool {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.another-pool]\ncreate = true\nthin_pool = 'pool'",
        asks: &[("thinpool", "other")],
        check: Some("no-size"),
    }
    too_large {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.too-large]\ncreate = true\nmax_size = '32m'",
        says: "the node's config allows at most 32 MiB",
        check: Some("no-size"),
    }
    reserve {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.reserve]\ncreate = true\nreserve = '1g'",
        says: "the node's config keeps 1 GiB",
        check: Some("no-size"),
        undo: "truncate -s 2G $dir/lost; told vgextend DISK=$(losetup --find --show $dir/lost)",
    }
    no_room {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.no-room]\ncreate = true",
        asks: &[("size", "1g")],
        check: Some("no-size"),
        undo: "truncate -s 2G $dir/lost; told vgextend DISK=$(losetup --find --show $dir/lost)",
    }
    short_disk {
        prepare: "end=$(blockdev --getsz $disk); echo $end > $dir/end
            dmsetup table ${disk##*/} > $dir/table; sed \"s/^0 $end /0 163840 /\" $dir/table | dmsetup load ${disk##*/}
            dmsetup resume ${disk##*/}",
        calls: &["expandfs"],
        check: Some(""),
        undo: "told pvresize",
        or: &["dmsetup load ${disk##*/} $dir/table; dmsetup resume ${disk##*/}"],
    }
    snapshot_size {
        prepare: "lvrename -qq $vg data origin; mkfs.ext4 -q ${dev%data}origin
            lvcreate -qq -y -s -n data -L 16m $vg/origin",
        calls: &["expandfs"],
        check: Some(""),
        says: "is a snapshot of snapshot-size/origin",
    }
    pool {
        // Active and unused, its device has the UUID of a part of a pool: `not-its-device`.
        prepare: "lvremove -qq -y $vg/data; lvcreate -qq -y --type thin-pool -Z n -n data -L 32m $vg
            lvchange -qq -an $vg/data",
    }
    partial {
        prepare: "truncate -s 64M $dir/lost; lost=$(losetup --find --show $dir/lost)
            vgextend -qq $vg $lost; pvmove -qq -i 1 -n data $disk $lost; lvchange -qq -an $vg/data
            losetup --detach $lost",
        undo: "losetup --find $dir/lost",
    }
    degraded {
        prepare: "truncate -s 64M $dir/lost; lost=$(losetup --find --show $dir/lost)
            vgextend -qq $vg $lost; lvconvert -qq -y --type raid1 -m1 $vg/data
            until lvs --noheadings -o sync_percent $vg/data | grep 100.00 > /dev/null; do sleep 0.1; done
            lvchange -qq -an $vg/data; losetup --detach $lost; lvchange -qq -ay $vg/data",
        says: "the volume group of degraded/data lacks 1 of its disks",
        undo: "losetup --find $dir/lost; told lvchange --refresh
            until lvs --noheadings -o sync_percent $vg/data | grep 100.00 > /dev/null; do sleep 0.1; done",
    }
    partly_active {
        // With such a setting, a part that is away reads as zeroes.
        prepare: "truncate -s 64M $dir/lost; lost=$(losetup --find --show $dir/lost)
            vgextend -qq $vg $lost; lvextend -qq -L 40m $vg/data $lost; lvchange -qq -an $vg/data
            losetup --detach $lost
            lvchange -qq -ay --activationmode partial --config 'activation/missing_stripe_filler=\"zero\"' $vg/data
            losetup --find $dir/lost; pvscan -qq --cache; lvs --noheadings -o lv_health_status $vg/data | grep -v partial",
        says: "/dev/mapper/partly--active-data-missing_1_0 still stands in for that disk",
        undo: "told lvchange -an",
    }
    snapshot_full {
        prepare: "lvrename -qq $vg data origin; lvcreate -qq -y -s -n data -L 4m $vg/origin
            dd if=/dev/urandom of=${dev%data}origin bs=1M count=8 conv=fsync status=none",
        undo: "told lvremove; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -z $dev",
    }
    merge_waits {
        prepare: "mkfs.ext4 -q $dev; mount -o noinit_itable $dev $dir; lvcreate -qq -y -s -n earlier -L 8m $vg/data
            lvconvert -qq --merge $vg/earlier; umount $dir",
        undo: "told lvchange -an",
    }
    unwell_merge {
        word: "unwell",
        // A merge begins with the blocks that the snapshot got last, and cannot read these: its chunks 3900 to 3999 of
        // 4 KiB, from sector 2048 of the disk. Its tables of chunks are before and behind, at 3856 and 4113.
        prepare: "mkfs.ext4 -q $dev; truncate -s 65M $dir/lost; lost=$(losetup --find --show $dir/lost)
            shows() { dmsetup load of-snapshot; dmsetup resume of-snapshot; }
            dmsetup create of-snapshot --table \"0 131072 linear $lost 2048\"; vgextend -qq $vg /dev/mapper/of-snapshot
            lvcreate -qq -y -s -n earlier -L 32m $vg/data /dev/mapper/of-snapshot
            dd if=/dev/urandom of=$dev bs=1M seek=8 count=16 conv=notrunc,fsync status=none
            exec 9< $dev; lvconvert -qq --merge $vg/earlier; exec 9<&-; lvchange -qq -an $vg/data
            printf '0 33248 linear %s 2048\n33248 800 error\n34048 97024 linear %s 36096\n' $lost $lost | shows
            lvchange -ay $vg/data > /dev/null 2>&1
            until dmsetup status $dev | grep 'Merge failed' > /dev/null; do sleep 0.1; done
            echo \"0 131072 linear $lost 2048\" | shows; pvscan -qq --cache",
        undo: "told lvchange -an; while dmsetup table $dev | grep snapshot-merge > /dev/null; do sleep 0.1; done
            # What is on that disk goes with it.
            vgreduce -qq $vg /dev/mapper/of-snapshot; dmsetup remove --retry of-snapshot",
    }
    unwell_cache {
        word: "unwell",
        // What is cached cannot be written back.
        prepare: "mkfs.ext4 -q -b 4096 $dev; lvchange -qq -an $vg/data; lvcreate -qq -y -an -Z n -L 8m -n fast $vg
            lvconvert -qq -y --type writecache --cachesettings block_size=4096 --cachevol fast $vg/data
            lvchange -qq -ay $vg/data; dd if=$dev of=$dir/head bs=4096 count=16 status=none
            dd if=$dir/head of=$dev conv=notrunc,fsync status=none; rm $dir/head
            eval \"$bad\"; ! dmsetup message $dev 0 flush
            until lvs --noheadings -o lv_health_status $vg/data | grep error > /dev/null; do sleep 0.1; done",
        says: "LVM says \"error\" of unwell-cache/data",
        undo: "eval \"$well\"; told lvchange -an",
    }
    another_device {
        prepare: "lvcreate -qq -y -n other -L 32m $vg
            uuid=$(dmsetup info -c --noheadings -o uuid ${dev%data}other)
            table=$(dmsetup table ${dev%data}other); lvchange -qq -an $vg
            dmsetup create $(basename $dev) --uuid $uuid --table \"$table\"",
        undo: "told dmsetup remove",
    }
    larger_device {
        // As a person does who wants back what was there before the volume grew.
        prepare: "mkfs.ext4 -q $dev; vgcfgbackup -qq -f $dir/before $vg; lvextend -qq -L 64m $vg/data
            vgcfgbackup -qq -f $dir/after $vg; vgcfgrestore -qq -y -f $dir/before $vg",
        says: "has 64 MiB, and by LVM's metadata larger-device/data has 32 MiB",
        undo: "told vgcfgrestore --file FILE=$dir/after",
        or: &["told lvchange --refresh"],
    }
    suspended {
        prepare: "dmsetup suspend $dev",
        undo: "told dmsetup resume",
    }
    no_pool {
        prepare: "lvremove -qq -y $vg/data",
        config: "[volume_group.no-pool]\ncreate = true",
        asks: &[("size", "32m"), ("thinpool", "pond")],
        says: "LVM shows no thin pool no-pool/pond for no-pool/data. ",
        check: Some("no-size"),
    }
    pool_full {
        prepare: "lvremove -qq -y $vg/data
            lvcreate -qq -y --type thin-pool -Z n -n pool -L 100m --poolmetadatasize 16m $vg
            lvcreate -qq -y -n data -V 32m --thinpool $vg/pool; lvcreate -qq -y -n other -V 96m --thinpool $vg/pool
            dd if=/dev/urandom of=${dev%data}other bs=1M count=16 conv=fsync status=none",
        config: "thin_pool_limit = 15",
        undo: "for time in 1 2; do told lvextend --size; done",
    }
    unwell {
        prepare: "lvremove -qq -y $vg/data
            lvcreate -qq -y --type thin-pool -Z n -n pool -L 100m $vg
            lvcreate -qq -y -n data -V 32m --thinpool $vg/pool
            # As the kernel does it when it cannot write the pool's metadata any more.
            pool=${dev%data}pool-tpool; table=$(dmsetup table $pool | cut -d ' ' -f 1-7)
            dmsetup load $pool --table \"$table 2 skip_block_zeroing read_only\"
            dmsetup suspend --noflush $pool; dmsetup resume $pool",
        says: "LVM says \"metadata_read_only\" of unwell/pool, the thin pool of unwell/data",
        // The metadata is good, so no command repairs it: a repair would leave the old metadata as pool_meta0.
        undo: "told lvchange -an -S; ! lvs $vg/pool_meta0 2> /dev/null",
        or: &["lvchange -qq --refresh $vg/pool"],
    }
    failed {
        prepare: "mkfs.ext4 -q $dev; printf '#!/bin/sh\nexit 9' > $dir/blkid; chmod +x $dir/blkid",
        config: "tool_dirs = ['/run/dir-of-failed', '/usr/sbin', '/usr/bin']",
        says: "`blkid --probe ",
        undo: "rm $dir/blkid",
    }
    unreadable { prepare: "eval \"$bad\"", undo: "eval \"$well\"", }
    unreadable_table {
        word: "unreadable",
        // As after `dmsetup remove --force`.
        prepare: "mkfs.ext4 -q $dev; dmsetup load $dev --table \"0 65536 error\"; dmsetup resume $dev",
        says: "LVM says \"unknown\" of unreadable-table/data",
        undo: "told lvchange --refresh",
    }
    old_disk {
        prepare: "sectors=$(blockdev --getsz $disk); dmsetup load $(basename $disk) --table \"0 $sectors error\"
            dmsetup resume $(basename $disk); pvscan -qq --cache
            dmsetup create came-back --table \"0 $sectors linear $below 2048\"; pvscan -qq --cache",
        says: "since it is on dm-",
        undo: "told lvchange -an; dd if=$dev of=/dev/null bs=4k count=1 iflag=direct status=none
            # The disk as it was, for what follows.
            lvchange -qq -an $vg/data; dmsetup remove --retry came-back; eval \"$well\"; pvscan -qq --cache; lvchange -qq -ay $vg/data",
    }
    in_use {
        prepare: "mkfs.ext4 -q $dev; echo \"mount -o noinit_itable $dev /mnt && : > $dir/up && exec sleep 1000\" > $dir/sh
            lasting unshare --mount sh $dir/sh; while [ ! -e $dir/up ]; do sleep 0.1; done",
        says: "mounted in another mount namespace (sleep (pid ",
        undo: ":",
    }
    still_mounted {
        prepare: "mkfs.ext4 -q $dev; mount -o noinit_itable $dev /mnt
            lasting sleep 1000 9< /mnt/lost+found; umount --lazy /mnt",
        undo: ":",
    }
    several {
        prepare: "lvextend -qq -L 128m $vg/data; mkfs.btrfs -q $dev; # and the marks of swap
            printf '\\1\\0\\0\\0\\377\\0\\0\\0' | dd of=$dev bs=1 seek=1024 conv=notrunc status=none
            printf SWAPSPACE2 | dd of=$dev bs=1 seek=4086 conv=notrunc status=none",
        undo: "told mount TYPE=btrfs DIR=/mnt; umount /mnt
            export HOME=$dir; told wipefs --backup OFFSET=0xff6; mkfs.ext4 -qF $dev",
    }
    other {
        prepare: "mkswap $dev",
        says: "other/data holds swap, ",
        undo: "export HOME=$dir; told wipefs --backup OFFSET=0xff6; mkswap $dev; told wipefs --all",
    }
    damaged {
        // Nothing of an ext superblock is right but its magic number.
        prepare: "printf '\\123\\357' | dd of=$dev bs=1 seek=1080 conv=notrunc status=none",
        undo: "blkdiscard -f $dev",
    }
    new_not_blank {
        prepare: "lvchange -qq --addtag flexvolume.new $vg/data; mkfs.ext4 -q $dev",
        undo: "told lvm adopt",
        or: &["told lvremove; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -fz $dev"],
    }
    encrypted {
        prepare: encrypted!(""),
        config: KEY,
        says: "set the option `encryption: luks2`",
        check: Some(""),
        undo: NEW,
    }
    not_encrypted {
        prepare: "mkfs.ext4 -q $dev; printf key > /run/refusals.key; chmod 600 /run/refusals.key",
        config: "[volume_group.not-encrypted]\nencryption = 'luks2'\n[encryption]\nkey_file = '/run/refusals.key'
            pbkdf_memory = '32k'\npbkdf_iterations = 4",
        undo: "told lvremove; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -z $dev",
    }
    no_key {
        config: "[volume_group.no-key]\nencryption = 'luks2'",
        says: "name a `key_file` in config.toml, or with attach = false a Secret",
        mode: Mode::Attach,
    }
    cipher {
        prepare: encrypted!("cryptsetup luksHeaderBackup --header-backup-file $dir/header $dev
            cryptsetup luksFormat -q --uuid $(cryptsetup luksUUID $dev) --cipher aes-cbc-essiv:sha256 \
            --key-size 256 --pbkdf-memory 32 --pbkdf-force-iterations 4 --key-file /run/refusals.key $dev"),
        config: KEY,
        asks: &[LUKS2],
        says: "keyslots.0.area.encryption",
        undo: "told dd COPY=$dir/copy; answer=YES; told cryptsetup luksHeaderRestore FILE=$dir/header",
    }
    reencryption {
        prepare: encrypted!("cryptsetup reencrypt -q --init-only --pbkdf-memory 32 --pbkdf-force-iterations 4 \
            --key-file /run/refusals.key $dev"),
        config: KEY,
        asks: &[LUKS2],
        undo: "answer=key; told cryptsetup reencrypt --resume-only",
    }
    too_small {
        prepare: "printf key > /run/refusals.key; chmod 600 /run/refusals.key; lvreduce -qq -f -L 16m $vg/data",
        config: "[encryption]\nkey_file = '/run/refusals.key'\npbkdf_memory = '32k'\npbkdf_iterations = 4
            [volume_group.too-small]\nencryption = 'luks2'",
        undo: "told lvextend",
    }
    luks_header {
        prepare: encrypted!("rm -f $dir/header; cryptsetup luksHeaderBackup --header-backup-file $dir/header $dev
            dd if=/dev/zero of=$dev bs=1M count=4 conv=fsync status=none"),
        config: KEY,
        asks: &[LUKS2],
        undo: "told dd COPY=$dir/copy; answer=YES; told cryptsetup luksHeaderRestore FILE=$dir/header",
        or: &["told lvremove; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -z $dev"],
    }
    inside {
        prepare: encrypted!("cryptsetup open --key-file /run/refusals.key $dev refusals
            mkfs.ext4 -qF /dev/mapper/refusals; cryptsetup close refusals"),
        config: KEY,
        asks: &[LUKS2],
        check: Some(""),
        undo: "answer=key; told cryptsetup open NAME=look; unset answer; told lvm adopt; cryptsetup close look",
        or: &["told lvremove; lvcreate -qq -y -W y -n data -L 32m $vg; blkdiscard -z $dev"],
    }
    swapped {
        prepare: "lvchange -qq --addtag flexvolume.fs=ext4:of-another $vg/data; mkfs.ext4 -q $dev",
        says: "swapped/data should hold ext4 of-another ",
        undo: "told lvm adopt",
    }
    reduced {
        // LVM 2.03.31 looks after the filesystem unless it is told not to, and 2.03.16 cannot be.
        prepare: "lvextend -qq -L 64m $vg/data; mkfs.ext4 -q $dev
            ignore=; ! lvreduce --help | grep -- '--fs ' > /dev/null || ignore='--fs ignore'
            lvreduce -qq $ignore -f -L 32m $vg/data",
        undo: "told lvextend",
    }
    large_blocks {
        // Linux 6.19 mounts an ext of such blocks.
        prepare: "mkfs.ext4 -qF -b 65536 -O ^has_journal $dev",
        says: "`wipefs --all /dev/mapper/large--blocks-data && ",
        undo: "told wipefs --all",
    }
    several_devices {
        prepare: "lvcreate -qq -y -n log -L 4m $vg; mke2fs -q -O journal_dev -b 1024 ${dev%data}log
            mke2fs -q -t ext4 -b 1024 -J device=${dev%data}log $dev",
        undo: "told mount -o ro DIR=/mnt; umount /mnt; blkdiscard -z $dev; lvremove -qq -y $vg/log",
    }
    several_devices_of_xfs {
        word: "several-devices",
        prepare: "lvcreate -qq -y -n log -L 80m $vg; lvextend -qq -L 320m $vg/data
            mkfs.xfs -q -l logdev=${dev%data}log,size=70m $dev",
        asks: &[("kubernetes.io/fsType", "xfs")],
        says: "`mount -o ro,logdev=LOG,rtdev=REALTIME /dev/",
        check: Some("wrong-type"),
        undo: "mount -o ro,logdev=${dev%data}log $dev /mnt; umount /mnt; blkdiscard -z $dev; lvremove -qq -y $vg/log",
    }
    read_only_volume {
        prepare: "mkfs.ext4 -q $dev; lvchange -qq --permission r $vg/data",
        undo: "told lvchange --permission rw",
    }
    read_only_disk { prepare: "mkfs.ext4 -q $dev; sync; blockdev --setro $below", undo: "told blockdev --setrw", }
    blank_read_only { asks: &[RO], undo: ":", }
    being_read {
        prepare: "lasting sleep 1000 9< $dev",
        says: "being-read/data holds no filesystem, and is open in sleep (pid ",
        undo: ":",
    }
    signs_of_data {
        prepare: "printf raw | dd of=$dev conv=notrunc,fsync status=none",
        says: "signs-of-data/data is not blank: there is data at byte 0, ",
        undo: "told lvm allow-format",
    }
}
