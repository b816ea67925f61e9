//! The message of each [`Reason`]: what is wrong, then what to do.

use super::decision::NoKey;
use super::doubt::Doubt;
use super::encrypted::WHOLE_LUKS2;
use super::facts::{Elsewhere, Occupied, Place};
use super::reason::Reason;
use crate::crypt::{CIPHER, HEADER_SIZE};
use crate::fs::Family;
use crate::host::holders::name_them;
use crate::host::own_name;
use crate::lvm::{Holder, Lost, with_its_table};
use crate::mount::without_data;
use crate::names::{Bytes, LvId, Shown, folded};
use crate::volume::device::Failure;

impl Reason {
    /// The message, on one line whatever text it quotes.
    pub fn of(&self, id: &LvId) -> String {
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
                        "Name another directory, or if nobody needs that one, run `umount {}`",
                        dir.shown()
                    ),
                }
            ),
            Self::NameTaken(Occupied { dir, by, name }) => format!(
                "the node-wide mount {} holds {by}, not {id}. {}",
                dir.shown(),
                same_name_advice(name.as_deref())
            ),
            Self::Swap => {
                format!(
                    "{id} is swap space of this host (`swapon --show`), so no pod can have it. If the host does \
                     not need that, run `swapoff {device}`"
                )
            }
            Self::Below(holders) => format!(
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
            Self::HostMount(at) => format!(
                "{id} is mounted by the host itself at {at}, so no pod can have it. If somebody made that \
                 mount by hand, run `umount {at}`. If the directory is kubelet's, add kubelet's root \
                 directory to `kubelet_dirs` in config.toml",
                at = at.shown()
            ),
            Self::WrongType { found, wanted } => format!(
                "{id} holds {found}, not {wanted}; it is left as it is. Set fsType to {found}, or name \
                 another volume"
            ),
            Self::ThereReadOnly(dir) => format!(
                "{} holds {id} read-only, but the pod wants to write. {READ_ONLY}",
                dir.shown()
            ),
            Self::MountedReadOnly(at) => format!(
                "{id} is mounted read-only at {}, so it cannot be written here. {READ_ONLY}",
                at.shown()
            ),
            Self::FilesystemFailed(place, failure) => {
                let what = match failure {
                    Failure::Errors => {
                        "the kernel met errors in its filesystem (`dmesg`), so no other pod may \
                         write to it"
                    }
                    Failure::ShutDown => {
                        "the kernel has shut its filesystem down because of an error (`dmesg`), so nothing \
                         in it can be read or written"
                    }
                };
                let (mounted, users) = match place {
                    Place::Here(at) => (
                        format!("at {}", at.shown()),
                        format!("all pods that use it (`{me} status {id}` lists them)"),
                    ),
                    Place::Elsewhere(by) if by.is_empty() => (
                        "where no mount table shows it".to_owned(),
                        format!("the processes that have files open there (`fuser -vm {device}`)"),
                    ),
                    Place::Elsewhere(by) => (
                        format!("in another mount namespace ({})", Elsewhere::list(by)),
                        "each process that has it".to_owned(),
                    ),
                };
                format!(
                    "{id} is mounted {mounted}, but has failed: {what}. When the disk works again, end \
                     {users}. The next mount after that works; it checks an ext filesystem first"
                )
            }
            Self::Unknown => format!(
                "{device} is active, but LVM does not know {id}: its disks are gone or hidden from \
                 LVM (`pvs`, `filter` in lvm.conf)"
            ),
            Self::NoGroup => format!(
                "this node has no volume group {vg}: check the option `volumegroup`, and whether the pod \
                 runs on the node with the group's disks. If the disks are here, LVM must see them (`pvs \
                 -a`, `filter` and `use_devicesfile` in lvm.conf)"
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
            Self::MetadataFull { free } => format!(
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
            Self::TooLarge { size, largest } => {
                let [size, largest] = size.compared(*largest);
                format!(
                    "{id} needs {size} in whole extents, but the node's config allows at most {largest} for a \
                     volume in {vg}: ask for less, or raise `max_size`"
                )
            }
            Self::Reserve {
                more,
                free,
                reserve,
            } => {
                let ([more, free], reserve) = (more.compared(*free), reserve.rounded());
                format!(
                    "{id} needs {more} more, but {vg} has {free} free, of which the node's config keeps \
                     {reserve}: ask for less, add a disk (`vgextend {vg} DISK`), or lower `reserve`"
                )
            }
            // kubelet starts no pod of a claim whose growth fails: an operator has to know the way
            // back.
            Self::NoRoom {
                size,
                more,
                free,
                has,
                sector,
            } => {
                let all = size.rounded();
                let [more, free] = more.compared(*free);
                if has.get() == 0 {
                    return format!(
                        "{id} needs {more}, but {vg} has only {free} free: ask for a smaller `size`, or \
                         add a disk (`vgextend {vg} DISK`)"
                    );
                }
                let (only, such, mixed) = sector.map_or_else(Default::default, |sector| {
                    let only = format!(
                        " on disks with sectors of at most {} bytes, and its filesystem can live on no others",
                        sector.get()
                    );
                    (only, "such ", MIXED)
                });
                format!(
                    "{id} needs {more} more to be {all} large, but {vg} has only {free} free{only}: add {such}a disk \
                     (`vgextend {mixed}{vg} DISK`), or set the claim's request back to {has} (Kubernetes 1.32 \
                     and later)"
                )
            }
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
            Self::Partial(Lost::Data) => format!(
                "{id} is partial: one of its disks is missing (`pvs`, `lvs -a -o +devices {id}`). Bring \
                 the disk back, or restore the volume from a backup"
            ),
            Self::Partial(Lost::Cache {
                cached,
                is_ahead,
                is_pool,
            }) => {
                let what = if *is_ahead {
                    "Only what was not yet written back from the cache is lost with it"
                } else {
                    "All data is on the other disks"
                };
                // LVM flushes such a cache at any rate.
                let first = if *is_ahead && *is_pool {
                    format!(
                        "put a new disk in its place with `pvcreate --uuid UUID --restorefile /etc/lvm/backup/{vg} \
                         DISK` (`pvs -o +pv_uuid` has the UUID), "
                    )
                } else {
                    String::new()
                };
                format!(
                    "{id} is partial: the disk of its cache is missing (`pvs`, `lvs -a -o +devices {vg}`). {what}. \
                     Bring the disk back. If you cannot, end the pods of the volume, {first}and run `lvchange -an {id} \
                     && lvconvert --uncache --force {vg}/{cached}`"
                )
            }
            Self::SnapshotFull => format!(
                "{id} is a snapshot that has run full, so its content is lost. The original volume is not \
                 affected. Remove the snapshot (`lvremove {id}`), and make a larger one"
            ),
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
                     on it, run `dmsetup resume {name}`"
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
                    "LVM does not show {pool}, the thin pool of {id}. Look for it with `lvs -a {vg}`. If \
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
                "the {what} of the thin pool {pool} is {percent:.1} percent full (the limit is {limit}). \
                 None of its volumes is mounted for writing, formatted or extended. Extend the pool \
                 (`{}`), free space in it, or raise `thin_pool_limit` in config.toml",
                extend_pool(pool, *size, what)
            ),
            Self::PoolUnwell { pool, health } => format!(
                "the thin pool {pool} has a fault ({health}), so the driver does not write to {id}. See \
                 `lvs -a -o +lv_health_status {pool}`; lvmthin(7) describes the repair"
            ),
            Self::Unreadable { at, error } => format!(
                "{id} cannot be read at byte {at} ({error}), so nobody can tell whether it is blank; \
                 nothing was written. Repair or replace its disk (`dmesg`, `pvs`, `lvs -a -o +devices \
                 {id}`)"
            ),
            Self::InUse(by) if by.is_empty() => format!(
                "{device} is in use by something else on this host. Find the user with `lsblk {device}` or \
                 `dmsetup ls --tree`, and close the device there"
            ),
            Self::InUse(by) => format!(
                "{device} is in use, since it is mounted in another mount namespace ({}). End that process",
                Elsewhere::list(by)
            ),
            Self::StillMounted => format!(
                "{id} is still mounted, but no mount table shows where. That happens after `umount --lazy` \
                 while a file is open. End the processes that have files open there (`fuser -vm {device}`)"
            ),
            Self::Several => format!(
                "{id} holds several signatures at once; it is left as it is. List them with `wipefs \
                 {device}`, and remove the wrong one with `wipefs --offset OFFSET {device}`"
            ),
            Self::Other { what, wanted } => {
                let wanted = wanted.map(|fs| fs.to_string());
                let wanted = wanted.unwrap_or_else(|| "a filesystem of this driver".to_owned());
                let what = what.to_string();
                let keep = if what == "crypto_LUKS" {
                    format!(
                        " It is LUKS1, which the driver does not open: `cryptsetup convert --type luks2 {device}` \
                         makes it LUKS2."
                    )
                } else if what.starts_with(WHOLE_LUKS2) {
                    format!(
                        " To give pods what is inside, open it (`cryptsetup open {device} NAME`) and run `{me} \
                         adopt {id}`."
                    )
                } else {
                    String::new()
                };
                format!(
                    "{id} holds {what}, which is not {wanted}; it is left as it is.{keep} If that data may be \
                     destroyed, run `wipefs --all {device} && {me} allow-format {id}`"
                )
            }
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
                "{id} holds {what}, but it is new and the driver has not formatted it. Either lvcreate was \
                 killed before it wiped the data of a removed volume, or somebody wrote to it. To keep a \
                 filesystem, run `{me} adopt {id}`. If the data may be destroyed, run `lvremove {id}`: the \
                 next call creates it again. If the new volume holds the same data, run `blkdiscard \
                 --force --zeroout {device}`"
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
            Self::NoKey(NoKey::Attach) => format!(
                "{id} is encrypted, or is to be, and no passphrase comes: with attach = true kubelet gives a \
                 Secret to no call that could use it. Name a `key_file` in config.toml, or set attach = false"
            ),
            Self::NoKey(NoKey::Secret) => format!(
                "{id} is encrypted, or is to be, and no passphrase came: name a Secret with the key `passphrase` \
                 in the volume's `secretRef`, or a `key_file` in config.toml"
            ),
            Self::Cipher(what) => format!(
                "{id} is LUKS2 with {what}. The driver opens only what {CIPHER} encrypts: anybody who can write to \
                 the disk can write a LUKS2 header, and one with another cipher may keep no secret. Nothing was \
                 written. If somebody changed the header, restore it from its backup (`cryptsetup luksHeaderRestore \
                 --header-backup-file FILE {device}`). If you made it so, copy the data to a new volume"
            ),
            Self::TooSmall(size) => format!(
                "{id} is to be encrypted with {size}, and the LUKS2 header takes {HEADER_SIZE} of that: no room is \
                 left for a filesystem. Ask for a larger `size`, or if the volume is there, run `lvextend --size 320m \
                 {id}`"
            ),
            Self::Header { recorded, found } => format!(
                "{id} should have the LUKS2 header {recorded} according to its tag, but there is {found}. Nothing \
                 was written. Without its header nobody can read it. Restore the header from its backup \
                 (`cryptsetup luksHeaderRestore --header-backup-file FILE {device}`), or the volume. If the data \
                 may go, run `lvremove {id}` and make the volume anew"
            ),
            Self::Inside { recorded, found } => format!(
                "{id} was opened, and should have {recorded} inside according to its tag, but there is {found}. \
                 Nothing was written. Open it (`cryptsetup open --readonly {device} NAME`) to see what can be \
                 saved, or restore it. If the data may go, run `lvremove {id}` and make the volume anew"
            ),
            Self::Swapped { recorded, found } => format!(
                "{id} should hold {recorded} according to its tag, but holds {found}: somebody replaced, \
                 restored or swapped its content. If this is the right content, run `{me} adopt {id}`"
            ),
            Self::Reduced { fs, has, covers } => {
                let [has, all] = has.compared(*covers);
                format!(
                    "{id} has {has}, but the {fs} on it covers {all}: the volume was reduced, or an image \
                     was not copied whole. Nothing was written. Extend it again (`lvextend --size {}b \
                     {id}`). Do not repair it first: a repair deletes the files in the missing part",
                    covers.get()
                )
            }
            Self::LargerSectors(sectors) => {
                let (made, on) = (sectors.filesystem.get(), sectors.device.get());
                let (place, helps) = match sectors.larger.first() {
                    Some(disk) => (
                        format!("partly on /dev/{disk}, whose sectors have {on} bytes"),
                        format!(
                            "Move the volume off that disk (`pvmove /dev/{disk}`); if no other disk of {vg} has room, \
                             add one with sectors of at most {made} bytes first (`vgextend {MIXED}{vg} DISK`)"
                        ),
                    ),
                    // md keeps the sectors that it has while it is active.
                    None => (
                        format!(
                            "active with sectors of {on} bytes, which none of its disks has any more"
                        ),
                        format!("Run `lvchange --activate n {id} && lvchange --activate y {id}`"),
                    ),
                };
                format!(
                    "{id} is {place}. Its filesystem was made for sectors of {made} bytes, and cannot live there. \
                     Nothing was written. {helps}"
                )
            }
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
            Self::MixedUp { fs, with } => {
                let same = match with.iter().take(4).cloned().collect::<Vec<_>>() {
                    none if none.is_empty() => String::new(),
                    some => format!(" The same UUIDs are on {}.", some.join(", ")),
                };
                if fs.is_ext() {
                    format!(
                        "{id} holds {fs} with its journal on another device, and is a snapshot or has \
                         copies. A mount could use the journal of the wrong one. Nothing was \
                         written.{same} Remove the copies, or mount the original. To read a snapshot, run \
                         `mount -o ro,noload {device} DIR`"
                    )
                } else {
                    format!(
                        "{id} is one of several disks of a {fs}, and there are copies of them: the kernel \
                         could take a copy for a disk. Nothing was written.{same} Remove or deactivate the \
                         copies (`lvremove`, `lvchange -an`), and run `btrfs device scan --forget && btrfs \
                         device scan`"
                    )
                }
            }
            Self::ReadOnlyVolume { overridden } => format!(
                "{id} is {}. Set readOnly in the pod, or {}. Even to be read, a snapshot of a volume in use has to \
                 be writable first: the log of its filesystem must be played back",
                read_only(*overridden),
                writable_again(id, *overridden)
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
            Self::BlankReadOnlyVolume { fs, overridden } => format!(
                "{id} holds no filesystem and is {}. To let the driver make {fs} on it, {}",
                read_only(*overridden),
                writable_again(id, *overridden)
            ),
            Self::Doubts(doubts) => Doubt::message(id, doubts, &me),
        }
    }
}

/// The command that gives a thin pool of this size more room: a fifth of what it has, or as much
/// metadata as is enough for most pools. No percentage: a message for kubelet has no percent sign.
pub fn extend_pool(pool: &LvId, size: Bytes, what: &str) -> String {
    const MIB: u64 = 1 << 20;
    match what {
        "data" => {
            let more = size.get().div_ceil(5).div_ceil(MIB);
            format!("lvextend --size +{more}M {pool}")
        }
        _ => format!("lvextend --poolmetadatasize +64M {pool}"),
    }
}

/// LVM adds a disk with other sectors than the disks of a group only so.
const MIXED: &str = "--config devices/allow_mixed_block_sizes=1 ";

/// Advice for two volumes of one name on a node.
pub fn same_name_advice(name: Option<&str>) -> String {
    let called = name.map_or_else(
        || "have the same one".to_owned(),
        |name| format!("are called {name:?}"),
    );
    format!(
        "With attach = true kubelet keeps one mount for each volume name, and two different logical \
         volumes {called} on this node. Either give the volumes of the two pods different names, or use \
         PersistentVolumes, or set attach = false on the node"
    )
}

fn read_only(overridden: bool) -> &'static str {
    if overridden {
        "read-only here"
    } else {
        "a read-only logical volume"
    }
}

/// The command that makes a read-only volume writable. By LVM's metadata an `overridden` one may be written.
pub fn writable_again(id: &LvId, overridden: bool) -> String {
    if !overridden {
        return format!("run `lvchange --permission rw {id}`");
    }
    format!(
        "take the volume out of `read_only_volume_list` in lvm.conf (`lvmconfig activation`) and run `lvchange \
         --refresh {id}`. If no list has it, run `blockdev --setrw {}`",
        id.device().shown()
    )
}

fn held_elsewhere(id: &LvId, holder: Option<&Holder>) -> String {
    let free = format!(
        "It is free when its pods there have ended. If it has no pods there, run `lvchange -an {id}` on \
         that node"
    );
    let Some(holder) = holder else {
        return format!("{id} is active on another node, and only one can have it. {free}");
    };
    let (host, name) = (holder.host, &holder.name);
    let held =
        format!("{id} is held by another node, host {host} ({name}), and only one can have it");
    let (silent, dead_after) = (holder.silent, holder.dead_after);
    if silent <= holder.every.saturating_mul(2) {
        return format!("{held}. {free}");
    }
    format!(
        "{held}. That node gave its last sign of life {silent} s ago. Wait: in {} s sanlock takes it for \
         dead, and this node can have the volume. Nobody can safely have it earlier",
        dead_after.saturating_sub(silent)
    )
}

const READ_ONLY: &str = "If another pod mounted it read-only, end that pod. If the kernel made it \
    read-only because of an error (`dmesg`), stop the pods that use it and check the filesystem";
