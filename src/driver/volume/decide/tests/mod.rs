//! Tests each rule of `decide`, all cases, and all messages.

mod cipher;
mod encrypted;
mod listed;
mod messages;
mod proof;
mod sample;
mod states;
mod table;
mod values;
