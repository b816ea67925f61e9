//! What the next mount does, in one word: the verdicts of `check`, and NEXT MOUNT of `status`.

/// The words are stable, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumIter, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub enum NextMount {
    Bind,
    Mount,
    Create,
    Format,
    Resume,
    Open,
    Activate,
    NotRead,
    Busy,
    Repair,
    Refuse,
}

impl NextMount {
    /// What the word means: one paragraph in Markdown, a row of the table in docs/on-call.md.
    pub fn text(self) -> &'static str {
        match self {
            Self::Bind => {
                "The volume is mounted on this node: the next mount gives its pod the same filesystem."
            }
            Self::Mount => "The next mount mounts the filesystem that is on the volume.",
            Self::Create => "The next mount creates the volume and its filesystem.",
            Self::Format => {
                "The next mount makes the filesystem: the volume is blank, or its first mkfs was killed, or `allow-format` allowed it."
            }
            Self::Resume => "The next mount resumes what a killed LVM command left suspended.",
            Self::Open => {
                "The next mount opens the encrypted volume. `status` and `check` use no passphrase, so they cannot say \
                 what is inside."
            }
            Self::Activate => {
                "The volume is not active: its content is not known before the next mount activates it."
            }
            Self::NotRead => {
                "The volume was not read in time: its content is not known before the next mount."
            }
            Self::Busy => {
                "A call works on the volume just now. The message of `check` names its processes."
            }
            Self::Repair => {
                "The ext has errors: the next mount succeeds if `e2fsck -p` can repair them. Only `check` says so."
            }
            Self::Refuse => {
                "The next mount is refused. `reason` says why; `NEXT MOUNT` shows that word instead."
            }
        }
    }
}
