//! Judges a volume group: what is wrong with it, and which command helps.

use super::finding::{Finding, OK};
use super::inventory::Inventory;
use crate::output::counted;
use driver::host::own_name;
use driver::lvm::{self, Disk, Fault, Group, KeptAway};
use driver::names::Shown;

/// A group, with the facts by which it is judged.
pub struct GroupHealth {
    pub group: Group,
    /// How many groups have this group's name. The group itself counts.
    pub twins: usize,
    /// Whether the driver has volumes in the group, or the config names the group.
    pub is_ours: bool,
    /// Why this node does not use the group. `None`: the node uses it.
    pub kept: Option<KeptAway>,
    /// The group's disks that have a fault.
    pub disks: Vec<Disk>,
}

impl GroupHealth {
    pub fn of(
        inventory: &Inventory,
        group: &Group,
        disks: Vec<Disk>,
        kept: Option<KeptAway>,
    ) -> Self {
        let vg = &group.name;
        let twins = inventory.groups.iter().filter(|other| other.name == *vg);
        let volumes = inventory.volumes.iter();
        let mut its = volumes.filter(|one| one.id.vg().as_str() == vg);
        Self {
            twins: twins.count(),
            is_ours: inventory.is_named(vg) || its.any(|volume| inventory.is_ours(volume)),
            kept,
            disks,
            group: group.clone(),
        }
    }

    pub fn findings(&self) -> Vec<Finding> {
        let mut all = Vec::new();
        all.extend(self.twins());
        all.extend(self.kept_away());
        all.extend(self.duplicate_disks());
        all.extend(self.returned());
        all.extend(self.missing());
        all.extend(self.short());
        all.extend(self.metadata());
        all.into_iter()
            .map(|one: Finding| one.on(&self.group.name))
            .collect()
    }

    /// The worst fault in one word, or `ok`.
    pub fn word(&self) -> String {
        let mut all = self.findings().into_iter().filter(Finding::is_unwell);
        all.next().map_or_else(|| OK.to_owned(), |worst| worst.word)
    }

    fn twins(&self) -> Option<Finding> {
        let vg = &self.group.name;
        (self.twins > 1).then(|| {
            Finding::failed("duplicate-groups", lvm::twins(vg, self.twins))
                .word(format!("{} of this name", self.twins))
                .run(format!("vgrename UUID {vg}-2"))
        })
    }

    fn kept_away(&self) -> Option<Finding> {
        let vg = &self.group.name;
        if self.group.exported {
            let finding = Finding::warning("groups", lvm::exported(vg))
                .word("exported")
                .run(format!("vgimport {vg}"));
            // An exported group may be meant for another host. So it is a fault only if pods of this host are to use
            // the group.
            return Some(finding.noted_unless(self.is_ours));
        }
        let kept = self.kept.as_ref()?;
        Some(Finding::failed("groups", &kept.why).word(&kept.owner))
    }

    fn duplicate_disks(&self) -> impl Iterator<Item = Finding> {
        self.with(Fault::Duplicate).map(|disk| {
            let (vg, path) = (&self.group.name, disk.path.shown());
            let text = format!("{path} says that it is a disk of this group, and so does another");
            // Not even LVM knows which of the two is the copy.
            let why = format!(
                "until that is mended, LVM neither activates nor changes a volume of the group. For the disk that is the \
                 copy, run `vgimportclone --basevgname {vg}-2 DISK`; of two paths to one disk, leave one out by `filter` \
                 in lvm.conf"
            );
            Finding::failed("duplicate-disks", text)
                .word("duplicate disk")
                .why(why)
                .run("lsblk -o NAME,SIZE,SERIAL,WWN")
        })
    }

    fn returned(&self) -> impl Iterator<Item = Finding> {
        self.with(Fault::Returned).map(|disk| {
            let (vg, path) = (&self.group.name, disk.path.shown());
            let text = format!("{path} is back, and LVM still takes it for missing");
            let command = format!("vgextend --restoremissing {vg} {}", disk.path.quoted());
            Finding::failed("missing-disks", text)
                .word("1 disk missing")
                .why("the group was changed without it")
                .run(command)
        })
    }

    fn missing(&self) -> Option<Finding> {
        let vg = &self.group.name;
        let returned = u64::try_from(self.with(Fault::Returned).count()).unwrap_or_default();
        // LVM lists all missing disks as one, so the group's own count is used.
        let seen = u64::try_from(self.with(Fault::Missing).count()).unwrap_or_default();
        let number = self.group.missing.saturating_sub(returned).max(seen);
        let text = match number {
            0 => return None,
            1 => "a disk is missing".to_owned(),
            more => format!("{more} disks are missing"),
        };
        let disks = counted(usize::try_from(number).unwrap_or(usize::MAX), "disk");
        let why = format!(
            "volumes on it cannot be activated, unless they are RAID or mirrored. Let LVM look at it if a filter of \
             lvm.conf or lvmdevices hides it, or bring it back. If it is lost, run `lvconvert --repair` for each RAID \
             volume, and for the RAID below a pool instead of the pool (POOL_tdata, POOL_tmeta); for each other volume \
             do what `{} check {vg}` says, and `lvremove` what is to be restored from a backup; and then run \
             `vgreduce --removemissing {vg}`",
            own_name()
        );
        let command = format!(
            "pvs -o pv_name,vg_name,pv_uuid,pv_missing; lsblk -o NAME,FSTYPE,UUID; lvs -a -o +devices {vg}; dmesg"
        );
        let finding = Finding::failed("missing-disks", text).word(format!("{disks} missing"));
        Some(finding.why(why).run(command))
    }

    /// A finding for each disk that is smaller than LVM's metadata says.
    fn short(&self) -> impl Iterator<Item = Finding> {
        let short = self.group.disks.iter().filter(|disk| disk.is_short());
        short.map(|disk| {
            let (path, size, end) = (disk.path.shown(), disk.size.rounded(), disk.end().rounded());
            let text = format!("{path} has {size}, and LVM's metadata counts with {end} of it");
            let why = "its free space counts nothing, and no volume on it grows; LVM refuses the command if a volume \
                       has extents that are not there";
            Finding::failed("missing-disks", text)
                .word("1 disk too small")
                .why(why)
                .run(format!("pvresize {path}"))
        })
    }

    /// The fault that LVM's area for metadata is nearly full: soon there is no room for another record, volume or
    /// snapshot.
    fn metadata(&self) -> Option<Finding> {
        let (vg, free) = (&self.group.name, self.group.metadata_free.rounded());
        let finding = Finding::warning("room", format!("LVM has {free} left for its metadata"))
            .word(format!("{free} for metadata"))
            .why("without room no volume is formatted, created or grown")
            .run(format!("vgs -o +vg_mda_size,vg_mda_free {vg}"));
        // LVM keeps two versions of the metadata in the area, so each has half of it. Less than a tenth of that half is
        // left.
        let is_filling = self.group.metadata_free.get() < self.group.metadata_size.get() / 20;
        is_filling.then(|| finding.noted_unless(self.is_ours))
    }

    fn with(&self, fault: Fault) -> impl Iterator<Item = &Disk> {
        self.disks.iter().filter(move |disk| disk.fault == fault)
    }
}
