//! Tests each rule of `decide`, all cases, and all messages.

mod before_activation;
mod cipher;
mod encrypted;
mod messages;
mod proof;
mod sample;
mod states;
mod table;
mod values;
