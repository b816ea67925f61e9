//! Limits that the config sets for pods: options, sizes, space.

mod config;
mod full;
mod reserve;
