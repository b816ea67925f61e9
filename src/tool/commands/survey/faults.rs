//! The faults of a volume, a pool or a snapshot: a function for each, with what is wrong and which command helps.

use std::fmt::Write;

use super::finding::Finding;
use super::health::Health;
use super::snapshot::nearly_lost;
use driver::host::{Lack, own_name};
use driver::names::{Bytes, Shown};
use driver::volume::{
    Help, May, Reason, State, extend_pool, first_command, require_lease, require_well, what_helps,
};

impl Health {
    /// The volume's faults, the worst first. A refusal of the next mount is not among them.
    pub(super) fn faults(&self) -> Vec<Finding> {
        let all = [
            // LVM calls the state of such a volume unknown.
            self.outgrown(),
            self.lvm(),
            self.suspended(),
            self.filesystem_failed(),
            self.node(),
            self.lock(),
            self.header(),
            self.full(),
            self.in_full_pool(),
            self.without_space(),
            self.snapshot_full(),
            self.errors(),
            self.may_be_formatted(),
            self.mkfs_unfinished(),
            self.kept_from_others(),
            self.two_globals(),
            self.unused_global(),
        ];
        all.into_iter().flatten().collect()
    }

    /// What LVM says of the volume. It is a finding beside the refusal of the next mount, since a pod that has the
    /// volume mounted goes on writing to it.
    fn lvm(&self) -> Option<Finding> {
        let (volume, state) = (&self.volume, State::of(&self.volume));
        if state.may == May::Make {
            return None;
        }
        if state.help == Help::Room && volume.runs_out_at(self.limit) {
            // `full` says how full it is, and how to extend it.
            return None;
        }
        let refusal = require_well(volume, false).err();
        let text = match refusal.filter(|_| !volume.is_pool()) {
            Some(reason) => reason.message(&volume.id),
            None => format!("LVM says {:?}. {}", state.says, what_helps(&state)),
        };
        let finding = Finding::warning("volume-health", text).word(&state.says);
        let finding = match state.may {
            May::Make | May::Write => finding.why("it may lose data, or cannot be activated"),
            May::Read | May::Nothing if volume.is_pool() => {
                finding.why("the driver does not write to its volumes")
            }
            May::Read | May::Nothing => finding,
        };
        Some(finding.run(first_command(&state)))
    }

    fn suspended(&self) -> Option<Finding> {
        let reason = Reason::Suspended(self.suspended.clone()?);
        let finding =
            Finding::warning("suspended", reason.message(&self.volume.id)).word("suspended");
        Some(finding.why("whoever reads or writes it waits"))
    }

    /// The fault that the volume's device is larger than LVM's metadata says. It is a finding beside the refusal of the
    /// next mount, since a pod that has the volume mounted goes on writing to it.
    fn outgrown(&self) -> Option<Finding> {
        let reason = Reason::LargerDevice {
            device: self.outgrown?,
            volume: self.volume.device_size(),
        };
        let finding = Finding::failed("larger-device", reason.message(&self.volume.id));
        let command = format!("vgcfgrestore --list {}", self.volume.id.vg());
        Some(finding.word("larger than LVM says").run(command))
    }

    fn filesystem_failed(&self) -> Option<Finding> {
        let text = self.failed_filesystem.as_ref()?.message(&self.volume.id);
        let finding = Finding::failed("filesystem-errors", text).word("filesystem errors");
        let why = "pods cannot rely on what they write there";
        Some(finding.why(why).run("dmesg"))
    }

    fn errors(&self) -> Option<Finding> {
        let text = "the kernel met errors in its filesystem";
        let finding = Finding::warning("filesystem-errors", text).word("filesystem errors");
        let why = "the next mount checks it, and fails if that needs a decision";
        let command = format!("{} check {}; dmesg", own_name(), self.volume.id);
        (self.has_errors && self.failed_filesystem.is_none()).then(|| finding.why(why).run(command))
    }

    fn node(&self) -> Option<Finding> {
        let id = &self.volume.id;
        let text = format!("active, but {} is missing", id.device().shown());
        let finding = Finding::failed("device-node", text)
            .word("no device node")
            .why("it cannot be mounted");
        self.lacks_node
            .then(|| finding.run(format!("vgmknodes {}", id.vg())))
    }

    fn lock(&self) -> Option<Finding> {
        let id = &self.volume.id;
        let reason = require_lease(self.lock.as_ref()?, id.vg(), true).err()?;
        let finding = format!("mounted, but {}", reason.message(id));
        Some(Finding::failed("volume-lock", finding).word("lock lost"))
    }

    fn header(&self) -> Option<Finding> {
        let finding = Finding::failed("luks-header", self.header.as_ref()?).word("header lost");
        Some(finding.why("it cannot be opened again once it is closed"))
    }

    fn full(&self) -> Option<Finding> {
        let (volume, id, size) = (&self.volume, &self.volume.id, self.volume.takes());
        if !volume.runs_out_at(self.limit) {
            return None;
        }
        let (mut findings, mut commands) = (Vec::new(), Vec::new());
        for (what, percent) in volume.short_of(self.limit, Bytes::default()) {
            let full = Reason::PoolFull {
                pool: id.clone(),
                size,
                what,
                percent,
                limit: self.limit,
            };
            findings.push(full.message(id));
            commands.push(extend_pool(id, size, what));
        }
        let first = if volume.group.free.get() == 0 {
            format!("vgextend {} DISK && ", id.vg())
        } else {
            String::new()
        };
        let finding = Finding::warning("pool-full", findings.join(". "))
            .word("full")
            .why("its volumes run full with it");
        Some(finding.run(format!("{first}{}", commands.join(" && "))))
    }

    fn in_full_pool(&self) -> Option<Finding> {
        let pool = self.pool.as_ref()?;
        let text = format!("its thin pool {} is nearly full", pool.id);
        let finding = Finding::warning("pool-full", text).word("pool full");
        pool.runs_out_at(self.limit).then_some(finding)
    }

    fn without_space(&self) -> Option<Finding> {
        let (text, word) = match self.ran_out_of? {
            Lack::Space => ("its filesystem is full", "filesystem full"),
            Lack::Inodes => ("no inode is left in its filesystem", "no inodes"),
        };
        let finding = Finding::warning("filesystem-full", text)
            .word(word)
            .why("pods cannot create files in it: delete files, or grow it");
        // An ext gets more inodes when it grows: mke2fs(8), -i.
        let id = &self.volume.id;
        Some(finding.run(match &self.btrfs_at {
            // LVM's fsadm knows no btrfs.
            Some(at) => format!(
                "lvextend --extents +20%LV {id} && btrfs filesystem resize max {}",
                at.quoted()
            ),
            None => format!("lvextend --resizefs --extents +20%LV {id}"),
        }))
    }

    /// The fault that a snapshot is nearly full. If it is full already, its next mount is refused, and that message
    /// says what helps.
    fn snapshot_full(&self) -> Option<Finding> {
        let percent = nearly_lost(&self.volume)?;
        let text = format!("the snapshot is {percent:.0} % full");
        let finding = Finding::warning("snapshot-full", text)
            .word("nearly full")
            .why("a snapshot that is full is lost");
        Some(finding.run(format!("lvextend --extents +20%ORIGIN {}", self.volume.id)))
    }

    fn kept_from_others(&self) -> Option<Finding> {
        let text = "active here, and nothing uses it";
        let finding = Finding::warning("kept-from-others", text).word("kept from others");
        let why = "no other node can have it; only a pod that is just starting needs it so";
        let command = format!("lvchange -an {}", self.volume.id);
        self.is_kept_idle.then(|| finding.why(why).run(command))
    }

    /// The fault that a volume has several global mounts. An older driver made one for each of two `PersistentVolume`s.
    fn two_globals(&self) -> Option<Finding> {
        let (first, more) = self.globals.split_first()?;
        let text = "kubelet has it mounted for all pods under two names";
        let finding = Finding::warning("two-global-mounts", text)
            .word("two global mounts")
            .why("kubelet unmounts neither, and does not detach it");
        let me = own_name();
        let mut command = format!("{me} unmountdevice {}", first.quoted());
        for at in more {
            let _ = write!(command, " && {me} unmountdevice {}", at.quoted());
        }
        Some(finding.run(command))
    }

    /// The fault that a global mount serves no pod. If kubelet restarts between the ends of the pods of two
    /// `PersistentVolume`s of one volume, it forgets the global mount of the first.
    fn unused_global(&self) -> Option<Finding> {
        let at = self.unused_global.as_ref()?;
        let text = "mounted for all pods of this node, and no pod has it";
        let finding = Finding::warning("unused-global-mount", text).word("unused mount");
        let why = "kubelet may have forgotten this mount; only a pod that is just starting or ending needs it";
        let command = format!("{} unmountdevice {}", own_name(), at.quoted());
        Some(finding.why(why).run(command))
    }
}
