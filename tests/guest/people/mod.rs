//! Commands and packages for people.

mod day_two;
mod idle;
mod judged;
mod moving;
mod only_looks;
mod operator;
mod packages;
mod readme;
mod shell;
mod status;
mod terminal;
