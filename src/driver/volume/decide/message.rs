//! The message of each [`Reason`]: what is wrong, then what to do.

use super::advice::{
    extend_pool, filesystem_failed, held_elsewhere, larger_device, no_room, opened_by_hand,
    other_parts, read_only, same_name_advice, short_disk, wider, writable_again,
};
use super::other_content::{another_header, another_inside, other, restore_header, signs_of_data};
use super::reason::Reason;
use super::repair::{anew, degraded, old_disk, partly_active, readable_again, unwell};
use super::uses::Occupied;
use crate::crypt::{CIPHER, HEADER_SIZE};
use crate::fs::Family;
use crate::host::holders::name_them;
use crate::host::own_name;
use crate::lvm::with_its_table;
use crate::mount::without_data;
use crate::names::{LvId, Shown, folded};

impl Reason {
    /// The message. It is one line, even if a text that it quotes has several.
    pub fn message(&self, id: &LvId) -> String {
        folded(&self.words(id))
    }

    #[allow(clippy::too_many_lines)] // a table
    fn words(&self, id: &LvId) -> String {
        let device = id.device();
        let device = device.shown();
        let (vg, lv, me) = (id.vg(), id.lv(), own_name());
        match self {
            Self::NotAllowed(why)
            | Self::NotItsDevice(why)
            | Self::LvmSilent(why)
            | Self::NoLocks(why) => why.clone(),
            Self::Failed(why) => format!("looking at what is on {id}: {why}"),
            Self::AnotherIsThere(Occupied { dir, by, name }) => format!(
                "{} already holds {by}, not {id}. {}",
                dir.shown(),
                match name {
                    Some(_) => same_name_advice(name.as_deref()),
                    None => format!(
                        "Name another directory. If `fuser -vm {0}` shows that nobody needs that one, run `umount {0}`",
                        dir.quoted()
                    ),
                }
            ),
            Self::Swap => format!(
                "{id} is swap space of this host (`swapon --show`), so no pod can have it. If the host does not need \
                 that, run `swapoff {device}`"
            ),
            Self::PartOfDevice {
                unlocked: Some(unlocked),
                ..
            } => opened_by_hand(id, unlocked),
            Self::PartOfDevice {
                holders,
                unlocked: None,
            } => format!(
                "{id} is part of another device of this host ({}), so no pod can have it. Remove the \
                 device on top of it (`lsblk {device}`), or name another volume",
                holders.join(", ")
            ),
            Self::Loop(loops) => format!(
                "{id} is used through a loop device of this host ({}), so no pod can have it. If nobody \
                 needs the loop device, run `losetup --detach /dev/{}`",
                loops.join(", "),
                loops.first().map_or("", String::as_str)
            ),
            Self::Open(processes) => format!(
                "{id} is open in {}, so no pod can have it: two writers at once destroy the data. End that \
                 process, or name another volume",
                name_them(processes)
            ),
            Self::OpenUnseen => format!(
                "{id} is open (`dmsetup info {device}`), but no process is found that has it open, so no \
                 pod can have it. Look for a storage target (`targetcli ls`), a loop device (`losetup \
                 --list`), or a process in another PID namespace or with very many open files (`fuser -v \
                 {device}`), and close the device there"
            ),
            // This mount may be a pod's, so the message does not advise to unmount it: that may take a pod's data away.
            Self::HostMount { at, pods: true } => format!(
                "{id} is mounted by the host itself at {at}, and pods may have it there or elsewhere. If a container \
                 runtime made that mount for a virtual machine, add the runtime's directory to `runtime_dirs` in \
                 config.toml. If the directory is kubelet's, add kubelet's root directory to `kubelet_dirs`. Else end \
                 the pods of the volume first (`{me} status {id}` names them)",
                at = at.shown()
            ),
            Self::HostMount { at, pods: false } => format!(
                "{id} is mounted by the host itself at {at}, so no pod can have it. If somebody made that \
                 mount by hand, run `umount {}`. If the directory is kubelet's, add kubelet's root \
                 directory to `kubelet_dirs` in config.toml",
                at.quoted(),
                at = at.shown()
            ),
            Self::WrongType { found, wanted } => format!(
                "{id} holds {found}, not {wanted}; it is left as it is. Set fsType to {found}, or name \
                 another volume"
            ),
            Self::MountedReadOnly(at) => format!(
                "{id} is mounted read-only at {}, so it cannot be written here. {READ_ONLY}",
                at.shown()
            ),
            Self::FilesystemFailed(place, failure) => filesystem_failed(id, place, *failure),
            Self::Unknown => format!(
                "{device} is active, but LVM does not know {id}: its disks are gone, hidden from \
                 LVM (`pvs`, `filter` in lvm.conf), or overwritten at their beginning"
            ),
            Self::NoGroup => format!(
                "this node has no volume group {vg}: check the option `volumegroup`, and whether the pod \
                 runs on the node with the group's disks. If the disks are here, LVM must see them (`pvs \
                 -a`, `filter` and `use_devicesfile` in lvm.conf). If `vgs` warns of a disk's metadata, `{me} explain \
                 no-group` says how to repair it. If `vgs` skips it as clustered, and no cluster uses it \
                 any more, run `vgchange --config global/use_lvmlockd=1 --lock-type none --lock-opt force {vg}`"
            ),
            Self::NoVolume(size) => format!(
                "there is no logical volume {id}: check `volumeID` (`lvs {vg}`), or create it with \
                 `lvcreate --name {lv} --size {} {vg}`. With `create = true` in the group's table of \
                 config.toml the driver creates such volumes",
                size.map_or_else(|| "10g".to_owned(), |size| format!("{}b", size.get()))
            ),
            Self::Hidden => format!(
                "LVM has {id}, but hides it (`lvs -a {vg}`). It is a snapshot being merged, or part of \
                 another volume: name that other volume"
            ),
            Self::NoSize => format!(
                "there is no logical volume {id}, and none is made without the option `size`. Add `size` \
                 to the volume's options, or create the volume by hand"
            ),
            Self::CreateReadOnly => format!(
                "there is no logical volume {id}, and none is made for a read-only mount: it would stay \
                 blank. Mount it for writing once, or name another volume"
            ),
            Self::MetadataFull(free) => format!(
                "LVM has no room left for its metadata of {vg}: {} bytes are free (`vgs -o +vg_mda_free {vg}`), too few \
                 for a change of {id}. Nothing was written. Remove volumes, snapshots or tags that nobody needs. Or \
                 add a disk with more room for metadata (`pvcreate --metadatasize 16m DISK && vgextend {vg} DISK`), \
                 and have LVM keep none on each older disk (`pvchange --metadataignore y OLDDISK`)",
                free.get()
            ),
            Self::AnotherPool { pool, asked } => format!(
                "there is no logical volume {id}, and none is made in the thin pool {asked}: the \
                 node's config says {pool} for {vg} (`thin_pool`). Leave the option `thinpool` out, \
                 or name {pool}"
            ),
            Self::TooLarge { size, largest } => format!(
                "{id} needs {size} in whole extents, but the node's config allows at most {largest} for a \
                 volume in {vg}: ask for less, or raise `max_size`"
            ),
            Self::Reserve {
                more,
                free,
                reserve,
            } => format!(
                "{id} needs {more} more, but {vg} has {free} free, of which the node's config keeps \
                 {reserve}: ask for less, add a disk (`vgextend {vg} DISK`), or lower `reserve`"
            ),
            Self::NoRoom(needed) => no_room(id, needed),
            Self::ShortDisk(disk) => short_disk(id, disk),
            Self::FilesystemLimit(largest) => format!(
                "the filesystem on {id} cannot use more than {}: its blocks, without the feature `64bit`, or its inodes \
                 have numbers of 32 bits. Nothing was extended. Ask for less, or lower the claim's request to \
                 just above its `status.capacity` (Kubernetes 1.32 and later). {}",
                largest.rounded(),
                wider(id)
            ),
            Self::SnapshotSize { origin, size } => format!(
                "{id} is a snapshot of {vg}/{origin}, and stays as large as that was then: {size}. Nothing was \
                 extended. Ask for at most so much, or lower the claim's request to just above its `status.capacity` \
                 (Kubernetes 1.32 and later). To have more room, copy the data to a new volume"
            ),
            Self::Pool => format!(
                "{id} is a pool that holds other volumes, not a volume for a filesystem. Name a volume in \
                 the pool"
            ),
            Self::HeldElsewhere(holder) => held_elsewhere(id, holder.as_ref()),
            Self::ActiveShared => format!(
                "{id} is active here in shared mode (`lvchange -asy`), so another node may write to it at \
                 the same time. Run `lvchange -an {id}` on each node that has it active"
            ),
            Self::ActiveWithoutLock => format!(
                "{id} is active here, but lvmlockd on this node does not have its lock, as after a crash \
                 of lvmlockd: another node may have it too. The driver mounts nothing new from it. End \
                 the pods and processes that use it here, then run `lvchange -an {id}`. If that or the next mount \
                 fails, restart this node"
            ),
            Self::Partial => format!(
                "{id} is partial: LVM misses one of its disks (`pvs -a -o +pv_uuid,pv_missing`). If `lsblk -o \
                 NAME,FSTYPE,UUID` shows that UUID, `filter` in lvm.conf or `lvmdevices` hides it, or it was away \
                 and needs `vgextend --restoremissing {vg} DISK`. Else bring it back. If it is lost and had an image of a \
                 RAID, run `lvconvert --repair VG/RAID`; if it had only a snapshot, `lvremove` that; if only a cache, end \
                 the pods, and run `lvchange -an {id} && lvconvert --uncache --force {id}` (for a thin volume, \
                 both on its pool): what was written back stays. After a pvmove: docs/on-call.md. Else restore a \
                 backup"
            ),
            Self::Degraded(flaw) => degraded(id, flaw),
            Self::PartlyActive { stand_in, pool } => partly_active(id, stand_in, pool.as_ref()),
            Self::SnapshotFull => format!(
                "{id} is a snapshot that has run full, so its content is lost. The original volume is not \
                 affected. Remove the snapshot (`lvremove {id}`), and make a larger one"
            ),
            Self::MergeWaits => format!(
                "LVM puts {id} back to one of its snapshots when {id} is next activated (lvconvert --merge, `lvs -a -o \
                 +lv_merging {vg}`). Then all that was written to it since that snapshot is gone, so no pod gets it to \
                 write. To have LVM do that now, end what uses it, and run `{}`. A pod with readOnly still reads what \
                 it holds: first copy the data that must stay",
                anew(id, None)
            ),
            Self::Unwell(state) => unwell(id, state),
            Self::AnotherDevice => format!(
                "the active device {device} is not the logical volume that LVM now calls {id}. Run \
                 `dmsetup remove {} && lvchange -ay {id}`",
                id.dm_name()
            ),
            Self::Suspended(name) => {
                let which = if *name == id.dm_name() {
                    device.to_string()
                } else {
                    format!("{device} is on /dev/mapper/{name}, which")
                };
                format!(
                    "{which} is suspended, so every access to it would wait. If no LVM command is working \
                     on it, run `dmsetup resume {}`",
                    name.quoted()
                )
            }
            Self::SuspendedInside(name) => format!(
                "{id} is encrypted and open, and /dev/mapper/{name} is suspended, so every access to it would \
                 wait, and each LVM command, too. If no LVM command was at work before, run `{}`, and then \
                 `lvchange --refresh {id}`",
                with_its_table(name)
            ),
            Self::NoPool(pool) => {
                format!(
                    "LVM shows no thin pool {pool} for {id}. Look for it with `lvs -a {vg}`. If \
                     it should be there, check LVM's metadata with `vgck {vg}`"
                )
            }
            Self::PoolFull {
                pool,
                size,
                what,
                percent,
                limit,
            } => format!(
                "the {what} of the thin pool {pool} is {percent:.1} percent full (the limit is {limit}){}. \
                 None of its volumes is mounted for writing, formatted or extended. Extend the pool \
                 (`{}`), free space in it, or raise `thin_pool_limit` in config.toml",
                match *what {
                    "data" => ", and its volumes and snapshots could need more than it has",
                    _ => "",
                },
                extend_pool(pool, *size, what)
            ),
            Self::Unreadable { at, error, says } => format!(
                "{id} cannot be read at byte {at} ({error}), so nobody can tell whether it is blank; \
                 nothing was written. {}",
                readable_again(id, says.as_ref())
            ),
            Self::LargerDevice { device, volume } => larger_device(id, *device, *volume),
            Self::OldDisk { disk, pool, inside } => {
                old_disk(id, disk, pool.as_ref(), inside.as_deref())
            }
            Self::InUse(by) if by.is_empty() => format!(
                "{device} is in use by something else on this host. Find the user with `lsblk {device}` or \
                 `dmsetup ls --tree`, and close the device there"
            ),
            Self::InUse(by) => format!(
                "{device} is in use, since it is mounted in another mount namespace ({}). End that process",
                name_them(by)
            ),
            Self::StillMounted => format!(
                "{id} is still mounted, but no mount table shows where. That happens after `umount --lazy` \
                 while a file is open: end the processes that have files open there (`fuser -vm {device}`). If there is \
                 none, the filesystem was frozen (fsfreeze) when it was unmounted: run `mount {device} DIR && fsfreeze \
                 --unfreeze DIR && umount DIR`"
            ),
            Self::Several => format!(
                "{id} holds several signatures at once; it is left as it is. List them with `wipefs \
                 {device}`, try the right one with `mount -o ro -t TYPE {device} DIR`, and remove the wrong one with \
                 `wipefs --backup --offset OFFSET {device}`, which keeps its bytes in your home directory"
            ),
            Self::Other {
                what,
                wanted,
                recorded,
            } => other(id, &what.to_string(), *wanted, recorded.as_ref()),
            Self::Damaged(fs) => {
                let check = match Family::of(*fs) {
                    Family::Ext => "e2fsck -n",
                    Family::Xfs => "xfs_repair -n",
                    Family::Btrfs => "btrfs check",
                };
                format!(
                    "blkid finds {fs} on {id}, but no valid superblock is there; it is left as it is. \
                     Check it (`{check} {device}`), then repair it or restore a backup"
                )
            }
            Self::NewNotBlank(what) => format!(
                "{id} holds {what}, but it is new and the driver has not formatted it. Either the call that \
                 created it was killed before it had cleaned it of a removed volume's data, or somebody wrote to it, \
                 perhaps before a vgcfgrestore. To keep a filesystem, run `{me} adopt {id}`. If the data may be \
                 destroyed, run `lvremove {id}`: the next call creates it again"
            ),
            Self::Encrypted => format!(
                "{id} is encrypted, and the pod does not ask for that: set the option `encryption: luks2`, or \
                 name another volume"
            ),
            Self::NotEncrypted => format!(
                "{id} holds a filesystem that is not encrypted, and is to be encrypted. The driver encrypts only \
                 a blank volume: copy the data to a new one; or, if the data may go, run `lvremove {id}` and make \
                 the volume anew; or leave `encryption` out of the volume's options and of the group's table in \
                 config.toml"
            ),
            Self::NoKey => format!(
                "{id} is encrypted, or is to be, and no passphrase came: name a `key_file` in config.toml, or with \
                 attach = false a Secret with the key `passphrase` in the volume's `secretRef`. With attach = true \
                 kubelet gives a Secret to no call that could use it"
            ),
            Self::Cipher(what) => format!(
                "{id} is LUKS2 with {what}. The driver opens only what {CIPHER} encrypts: anybody who can write to \
                 the disk can write a LUKS2 header, and one with another cipher may keep no secret. Nothing was \
                 written. If you made it so, copy the data to a new volume. If somebody changed the header, {}",
                restore_header(id)
            ),
            Self::Reencryption => format!(
                "{id} is being encrypted anew, and `cryptsetup reencrypt` has not ended: a part of it has the new key, \
                 the rest the old one. Nothing was written. If no cryptsetup works on it any more, run `cryptsetup \
                 reencrypt --resume-only {device}`, which ends it. Restore no older backup of the header: that lacks \
                 the new key, and what has it would be lost. If nobody began this, somebody has changed the header: \
                 copy the volume first"
            ),
            Self::TooSmall(size) => format!(
                "{id} is to be encrypted with {size}, and the LUKS2 header takes {HEADER_SIZE} of that: no room is \
                 left for a filesystem. Ask for a larger `size`, or if the volume is there, run `lvextend --size 320m \
                 {id}`"
            ),
            Self::Header { recorded, found } => another_header(id, recorded, found),
            Self::Inside {
                recorded,
                found,
                ext,
            } => another_inside(id, recorded, found, ext.as_ref()),
            Self::Swapped { recorded, found } => format!(
                "{id} should hold {recorded} according to its tag, but holds {found}: somebody replaced, \
                 restored or swapped its content. If this is the right content, run `{me} adopt {id}`. Else restore the \
                 volume"
            ),
            Self::Reduced { what, has, covers } => format!(
                "{id} has {has}, but the {what} on it covers {covers}: the volume was reduced, or an image \
                 was not copied whole. Nothing was written. Extend it again (`lvextend --size {}b \
                 {id}`). Do not repair it first: a repair deletes the files in the missing part",
                covers.get()
            ),
            Self::LargeBlocks {
                fs,
                block,
                largest,
                encrypted,
            } => format!(
                "{id} holds {fs} with blocks of {block}, and this node's kernel mounts it with at most {largest}. \
                 Nothing was written. Mount it on a node with larger pages of memory or a newer kernel. {}",
                without_data(*fs, id, *encrypted)
            ),
            Self::SeveralDevices(fs) => format!(
                "{id} holds a part of a filesystem ({fs}) that is on several devices, and the driver mounts none: a \
                 snapshot or a copy could be taken for another part. Nothing was written. Copy the data to a new \
                 volume: without copies of any part on this node, `mount -o ro{} {device} DIR` mounts the filesystem",
                other_parts(*fs)
            ),
            Self::ReadOnlyVolume(by) => format!(
                "{id} is {}. To write to it, {}. To read what it holds, set readOnly in the pod. Even to be read, a \
                 snapshot of a volume in use has to be writable first: the log of its filesystem must be played back",
                read_only(*by),
                writable_again(id, *by)
            ),
            Self::ReadOnlyDisk(disk) => format!(
                "{id} is on the disk /dev/{disk}, which is read-only (`lsblk -o NAME,RO`). Set readOnly in \
                 the pod. Or look in `dmesg` for the cause, and if the disk may be written, run `blockdev \
                 --setrw /dev/{disk}`"
            ),
            Self::BlankReadOnly => format!(
                "{id} holds no filesystem, and is not formatted for a read-only mount. Mount it for \
                 writing once, or name another volume"
            ),
            Self::BeingRead(processes) => format!(
                "{id} holds no filesystem, and is open in {}. The driver formats it when these processes \
                 have closed it",
                name_them(processes)
            ),
            Self::Doubts(doubts) => signs_of_data(id, doubts),
        }
    }
}

const READ_ONLY: &str = "If another pod mounted it read-only, end that pod. If the kernel made it \
    read-only because of an error (`dmesg`), stop the pods that use it and check the filesystem";
