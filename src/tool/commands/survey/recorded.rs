//! Findings from a volume's record that ask something of a person: an open permission, or a mkfs that was cut short.

use super::finding::Finding;
use super::health::Health;
use super::verdict::Outcome;
use driver::host::own_name;
use driver::lvm::Unfinished;
use driver::volume::Decision;

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
        let why = match self.verdict.as_ref().map(|one| &one.outcome) {
            Some(Outcome::Decided(Decision::Refuse(_))) => "the next mount is refused",
            Some(Outcome::Decided(Decision::Mount(_))) => "the next mount records it",
            Some(
                Outcome::Decided(
                    Decision::Look(_)
                    | Decision::Ready
                    | Decision::Extend(_)
                    | Decision::Create(_)
                    | Decision::Activate
                    | Decision::Resume
                    | Decision::Restrict { .. }
                    | Decision::Bind(_)
                    | Decision::Open { .. }
                    | Decision::Make { .. },
                )
                | Outcome::Repair(_)
                | Outcome::WouldFail(..)
                | Outcome::Busy(_)
                | Outcome::Unknown(_),
            )
            | None => "the next mount makes it again",
        };
        let command = format!("{} check {id}", own_name());
        Some(finding.why(why).run(command))
    }
}
