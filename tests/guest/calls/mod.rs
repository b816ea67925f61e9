//! The call-outs: their replies, the processes that they start, their order, and how they end.

mod each;
mod ended;
mod failed_growth;
mod growth;
mod hangs;
mod hung_server;
mod idle_tools;
pub mod lives;
mod parallel;
mod processes;
mod scale;
mod seldom;
mod slow;
mod waiting;
