//! Commands and packages for people.

mod day_two;
mod export;
mod handover;
mod only_looks;
mod operator;
mod packages;
mod shell;
mod status;
mod terminal;
