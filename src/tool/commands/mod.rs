//! The commands for people, a file or a room each. They print text, or JSON with `--json`.

pub mod check;
pub mod config;
pub mod doctor;
pub mod idle;
pub mod log;
pub mod metrics;
pub mod operator;
pub mod status;
pub mod survey;
