//! The faults that `doctor` names.

mod faults;
mod nodes;
