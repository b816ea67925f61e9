//! Around each call-out: its one line in the log, and an answer whatever happens on the way to it.

use std::cell::Cell;
use std::ffi::OsString;
use std::panic::{AssertUnwindSafe, catch_unwind};

use anyhow::{Result, anyhow};

use super::log_fields::log_fields;
use super::named;
use crate::config::{Loaded, LogTarget};
use crate::host::{Host, Log};
use crate::options::holds_secret;
use crate::reply::{Reply, Status};

/// Answers one call-out of kubelet: `args` is argv without the executable's name.
pub fn run(args: &[OsString], host: &Host, config: &Loaded) -> Reply {
    for (key, value) in log_fields(args) {
        host.log.about(key, &value);
    }
    let answer = guarded(|| super::answer(args, host, config));
    logged(args, answer, &host.log, &config.or_default().log)
}

pub fn logged(args: &[OsString], answer: Result<Reply>, log: &Log, target: &LogTarget) -> Reply {
    let reply = answer.unwrap_or_else(|error| Reply::failure(&error));
    // Only words that are call-outs: anything else may be a secret in the wrong place.
    let known = args.first().and_then(named);
    let name = known.map_or("other", |(name, _)| name);
    let message = reply.message.as_deref().unwrap_or_default();
    log.write(target, name, reply.status, message);
    reply
}

thread_local! {
    static PANICKED_AT: Cell<Option<String>> = const { Cell::new(None) };
}

/// Has a panic leave its place for [`guarded`]. The default hook would write to standard error,
/// which kubelet reads as part of the reply.
pub fn note_panics() {
    std::panic::set_hook(Box::new(|panic| {
        PANICKED_AT.set(panic.location().map(ToString::to_string));
    }));
}

/// The answer, whatever happens on the way to it: a panic is an error that says where it was. What
/// the panic itself says is left out, because it may quote a secret.
pub fn guarded<T>(answer: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        let place = PANICKED_AT.take();
        Err(anyhow!(
            "flexvolume-lvm {} stopped at {} because of a bug; please report this message",
            env!("CARGO_PKG_VERSION"),
            place.as_deref().unwrap_or("an unknown place")
        ))
    })
}

/// The exit code that goes with a reply.
///
/// kubelet writes the whole argv of a call that exits other than 0 into its log, secrets included;
/// it takes the failure from the document all the same. Source: kubelet's
/// `pkg/volume/flexvolume/driver-call.go`, `Run`.
pub fn exit_code(reply: &Reply, args: &[OsString]) -> u8 {
    let failed = reply.status == Status::Failure;
    u8::from(failed && !args.iter().any(holds_secret))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_leaves_its_place_in_the_message_and_in_the_log() {
        note_panics();
        let answer = guarded(|| panic!("not for kubelet"));
        let _ = std::panic::take_hook();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let args = ["mount".into(), "/x".into()];
        let target = LogTarget::File(file.clone());
        let reply = logged(&args, answer, &Log::default(), &target);
        assert_eq!(reply.status, Status::Failure);
        let log = std::fs::read_to_string(file).unwrap();
        assert!(
            log.contains(" call=mount ") && log.lines().count() == 1,
            "{log}"
        );
        for text in [reply.message.unwrap_or_default(), log] {
            assert!(
                text.contains(" stopped at src/driver/calls/guard.rs:"),
                "{text}"
            );
            assert!(!text.contains("not for kubelet"), "{text}");
        }
    }
}
