//! Around each call-out: its one line in the log, and an answer also if the driver has a bug.

use std::ffi::OsString;

use anyhow::{Result, anyhow};

use super::log_fields::log_fields;
use super::named;
use crate::config::{Loaded, LogTarget};
use crate::host::{Host, Log, on_panic};
use crate::options::holds_secret;
use crate::reply::{Printed, Reply, Status};

/// Answers one call-out of kubelet: `args` is argv without the executable's name.
pub fn run(args: &[OsString], host: &Host, config: &Loaded) -> Reply {
    let fields = log_fields(args);
    for (key, value) in &fields {
        host.log.about(key, value);
    }
    let target = &config.config.log;
    answer_panics(args, fields, target);
    logged(args, super::answer(args, host, config), &host.log, target)
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

/// Has a panic end the process with a logged answer that says where the panic was. What the panic itself says is
/// left out, because it may quote a secret.
pub fn answer_panics(args: &[OsString], fields: Vec<(&'static str, String)>, target: &LogTarget) {
    // Of the words, which may hold a secret, only the first is kept.
    let call: Vec<OsString> = args.first().cloned().into_iter().collect();
    let has_secret = args.iter().any(holds_secret);
    let target = target.clone();
    on_panic(move |place| {
        let log = Log::default();
        for (key, value) in &fields {
            log.about(key, value);
        }
        let bug = anyhow!(
            "flexvolume-lvm {} stopped at {place} because of a bug; please report this message",
            env!("CARGO_PKG_VERSION"),
        );
        let reply = logged(&call, Err(bug), &log, &target);
        printed(&reply, has_secret)
    });
}

/// The reply as kubelet reads it. kubelet takes a failure from the document, and logs the whole argv of a call that
/// exits other than 0, secrets included. Source: kubelet's `pkg/volume/flexvolume/driver-call.go`, `Run`.
pub fn printed(reply: &Reply, has_secret: bool) -> Printed {
    let failed = reply.status == Status::Failure;
    Printed {
        code: u8::from(failed && !has_secret),
        ..Printed::text(format!("{}\n", reply.to_json()))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// In the environment of a process of this test's own, which panics: the file of its log.
    const LOG: &str = "PANICS_WITH_LOG";

    #[test]
    fn a_panic_leaves_its_place_in_the_message_and_in_the_log() {
        if let Some(file) = std::env::var_os(LOG) {
            let target = LogTarget::File(file.into());
            answer_panics(
                &["mount".into(), "/x".into()],
                vec![("volume", "vg/lv".into())],
                &target,
            );
            panic!("not for kubelet");
        }
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let name = "calls::guard::tests::a_panic_leaves_its_place_in_the_message_and_in_the_log";
        let mut panics = Command::new(std::env::current_exe().unwrap());
        let ended = panics
            .args(["--exact", name])
            .env(LOG, &file)
            .output()
            .unwrap();
        assert_eq!(ended.status.code(), Some(1));
        let reply = String::from_utf8(ended.stdout).unwrap();
        assert!(
            reply.contains(r#"{"status":"Failure","#) && reply.ends_with("}\n"),
            "{reply}"
        );
        let log = std::fs::read_to_string(file).unwrap();
        assert!(
            log.contains(r#""call":"mount","volume":"vg/lv""#) && log.lines().count() == 1,
            "{log}"
        );
        assert!(ended.stderr.is_empty());
        for text in [reply, log] {
            assert!(
                text.contains(" stopped at src/driver/calls/guard.rs:"),
                "{text}"
            );
            assert!(!text.contains("not for kubelet"), "{text}");
        }
    }
}
