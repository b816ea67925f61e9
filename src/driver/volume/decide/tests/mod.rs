//! Each rule of `decide`, all of its cases, and all of its messages.

mod cipher;
mod listed;
mod messages;
mod proof;
mod sample;
mod table;
mod values;
