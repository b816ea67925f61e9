//! Findings from a volume's record that ask something of a person: an open permission, or a mkfs that was cut short.

use super::finding::Finding;
use super::health::Health;
use super::next_mount::NextMount;
use super::verdict::Verdict;
use driver::host::own_name;
use driver::lvm::Unfinished;

impl Health {
    pub(super) fn may_be_formatted(&self) -> Option<Finding> {
        let text = "the next mount may format it, as an operator allowed";
        let finding = Finding::warning("may-be-formatted", text)
            .word("may be formatted")
            .why("the permission is good for a day");
        let command = format!("{} check {}", own_name(), self.volume.id);
        let is_allowed = self.volume.record.permission.is_some();
        is_allowed.then(|| finding.run(command))
    }

    pub(super) fn mkfs_unfinished(&self) -> Option<Finding> {
        let (id, record) = (&self.volume.id, &self.volume.record);
        let Unfinished { fs, luks, .. } = record.making.as_ref()?;
        let text = match luks {
            Some(_) => format!("luksFormat, or mkfs.{fs} inside, was not seen to end"),
            None => format!("mkfs.{fs} was not seen to end"),
        };
        let finding = Finding::warning("mkfs-unfinished", text).word("mkfs unfinished");
        let why = match self.verdict.as_ref().map(Verdict::next_mount) {
            Some(NextMount::Refuse) => "the next mount is refused",
            Some(NextMount::Mount) => "the next mount records it",
            Some(
                NextMount::Bind
                | NextMount::Create
                | NextMount::Format
                | NextMount::Resume
                | NextMount::Open
                | NextMount::Activate
                | NextMount::NotRead
                | NextMount::Busy
                | NextMount::Repair,
            )
            | None => "the next mount makes it again",
        };
        let command = format!("{} check {id}", own_name());
        Some(finding.why(why).run(command))
    }
}
