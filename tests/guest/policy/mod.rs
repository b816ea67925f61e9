//! Limits that the config sets for pods: options, sizes, space; and what must stay secret.

mod config;
mod full;
mod reserve;
mod secrets;
