//! Commands and packages for people.

mod export;
mod handover;
mod operator;
mod packages;
mod shell;
mod status;
mod terminal;
