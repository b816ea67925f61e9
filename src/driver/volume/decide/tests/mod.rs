//! Each rule of `decide`, all of its cases, and all of its messages; and what comes of it when calls meet.

mod cipher;
mod messages;
mod model;
mod proof;
mod sample;
mod table;
mod values;
