//! Objections to the decided mount: what this node lacks for it, and errors that e2fsck finds without writing to the
//! volume.

use anyhow::Error;

use super::look::Request;
use super::verdict::Outcome;
use crate::commands::explain::Topic;
use driver::crypt::{require_dm_crypt, require_key_file};
use driver::failed_step::{FailedStep, has_own_words};
use driver::fs::{self, Condition, Faults, IF_E2FSCK_IS_OLD};
use driver::host::Host;
use driver::names::Shown;
use driver::options::Options;
use driver::volume::{Content, Decision, Facts, Making, Subject, Word};

/// The objection to the decided mount: what the node lacks, or else, if the request says so, the errors that e2fsck
/// finds.
pub fn objection(
    subject: Subject,
    request: Request,
    facts: &Facts,
    decision: &Decision,
) -> Option<Outcome> {
    let tried = || tried(subject.host, facts, decision);
    let missing = missing(subject, request.options, decision);
    missing.or_else(|| request.tries.then(tried).flatten())
}

/// The tool or the passphrase that the decided mount needs and this node does not have.
fn missing(subject: Subject, options: Option<&Options>, decision: &Decision) -> Option<Outcome> {
    let Subject { host, config, id } = subject;
    let (is_encrypted, mkfs) = match decision {
        Decision::Open { .. } => (true, None),
        Decision::Make { permit, how } => {
            let is_encrypted = matches!(how, Making::InLuks { .. });
            (is_encrypted, Some(format!("mkfs.{}", permit.fs())))
        }
        Decision::Look(_)
        | Decision::Ready
        | Decision::Extend(_)
        | Decision::Create(_)
        | Decision::Activate
        | Decision::Resume
        | Decision::Restrict { .. }
        | Decision::Bind(_)
        | Decision::Mount(_)
        | Decision::Refuse(_) => (false, None),
    };
    let tools = is_encrypted.then(|| "cryptsetup".to_owned());
    for tool in tools.into_iter().chain(mkfs) {
        if let Some(why) = host.tools.lacks(&tool) {
            let words = format!("{id} cannot be mounted: {why}");
            return Some(Outcome::WouldFail(Topic::Step(FailedStep::NoTool), words));
        }
    }
    if let (true, Err(problem)) = (is_encrypted, require_dm_crypt(host)) {
        let words = format!("{id} cannot be mounted: {problem}");
        return Some(Outcome::WouldFail(Topic::Step(FailedStep::NoTool), words));
    }
    let has_secret = options.is_some_and(|options| options.passphrase.is_some());
    let file = config
        .key_file(id.vg())
        .filter(|_| is_encrypted && !has_secret)?;
    let problem = require_key_file(file).err()?;
    let shown = file.shown();
    let words = format!("{id} cannot be mounted: reading the key_file {shown}: {problem}");
    Some(Outcome::WouldFail(Topic::Refusal(Word::NoKey), words))
}

/// The objection of e2fsck, if the mount runs e2fsck: the filesystem has errors, or e2fsck cannot check it.
fn tried(host: &Host, facts: &Facts, decision: &Decision) -> Option<Outcome> {
    if !matches!(decision, Decision::Mount(mount) if mount.check) {
        return None;
    }
    // If an encrypted volume is open, this is the device inside.
    let device = facts.top()?;
    match fs::faults(host, &device.node(host.kernel)) {
        Ok(Faults::None) => None,
        Ok(Faults::BeforeLog) if is_left_by_a_crash(facts) => None,
        Ok(Faults::BeforeLog | Faults::BeforeAll) => Some(Outcome::Repair(format!(
            "e2fsck finds errors on {}, and the mount succeeds if `e2fsck -p` can repair them; `e2fsck -n {}` lists them",
            device.id,
            device.path.shown()
        ))),
        Err(error) => {
            let (id, path, error) = (&device.id, device.path.shown(), Error::new(error));
            let path = path.to_string();
            let by_hand = |command: &str| format!("`{}`", command.replace("DEVICE", &path));
            let advice = if let Some(advice) = fs::if_e2fsck_was_killed(&error, by_hand) {
                format!("; {advice}")
            } else if has_own_words(&error) {
                format!(
                    "; {IF_E2FSCK_IS_OLD}; if the filesystem has errors, `e2fsck -n {path}` lists them"
                )
            } else {
                String::new()
            };
            let doing = format!("checking the filesystem of {id}{advice}");
            let words = format!("{:#}", FailedStep::Fsck.of(host, error, doing));
            Some(Outcome::WouldFail(Topic::Step(FailedStep::Fsck), words))
        }
    }
}

/// Whether a crash left a log that must be replayed. `e2fsck -n` does not replay it, and would report errors that the
/// log repairs.
fn is_left_by_a_crash(facts: &Facts) -> bool {
    let content = facts.top_content();
    matches!(content, Some(Content::Filesystem(found)) if found.condition == Condition::LogToReplay)
}
