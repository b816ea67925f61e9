//! The commands for people, each in a file or folder. They print text, or JSON with `--json`.

pub mod check;
pub mod doctor;
pub mod explain;
pub mod log;
pub mod metrics;
pub mod status;
pub mod survey;
pub mod vouch;
