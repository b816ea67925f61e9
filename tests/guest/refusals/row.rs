//! What all refusals have in common: `mount`, `mountdevice` and `check` give the same reason, and docs/on-call.md has
//! it. Nothing is changed. When the reason has gone, the volume is mounted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use super::commands::{commands_in, only_looks};
use crate::prelude::*;

const ROWS: &str = include_str!("mod.rs");
const PAGE: &str = include_str!("../../../docs/on-call.md");

/// How a volume comes to be refused.
pub struct Row {
    /// The word of the refusal, if it is not the row's name.
    pub word: &'static str,
    /// Lines of a shell that make it so. There is `data`, a blank volume of 32 MiB with the device
    /// `$dev`, in the group `$vg`, which has the word for a name, on the disk `$disk`, which is on
    /// the loop device `$below`. kubelet's directories for it are `$pod` and `$global`, and `$other`
    /// is that of another pod. `$dir` is an empty directory, and `$lvm` the driver. `$bad` makes the
    /// volume's first 32 MiB fail, and `$well` ends that. `lasting` runs what stays until the end.
    pub prepare: &'static str,
    /// Further lines of the node's config.
    pub config: &'static str,
    /// Options of the pod beside the default, a writable ext4.
    pub asks: &'static [(&'static str, &'static str)],
    /// Words of the message beside those on the page, and the volume's or the group's name.
    pub says: &'static str,
    /// The word of `check`, if it differs from the mount's: `check` knows neither a directory of kubelet nor a size.
    pub check: Option<&'static str>,
    /// Whether the node's config says `attach`.
    pub mode: Mode,
    /// The calls that are refused: kubelet's two mounts of a volume, one of them, or `expandfs` to 64 MiB.
    pub calls: &'static [&'static str],
    /// The operator's remedy. After it, the volume is mounted. `told lvchange` runs the command of the messages
    /// that begins so, as it is printed and on a terminal, where `$answer` is typed. `told vgextend DISK=$disk`
    /// also says what a placeholder stands for.
    pub undo: &'static str,
    /// Other remedies that the messages name. The volume is refused anew for each.
    pub or: &'static [&'static str],
}

/// A row with the defaults, which breaks nothing.
pub const ROW: Row = Row {
    word: "",
    prepare: "",
    config: "",
    asks: &[],
    says: "",
    check: None,
    mode: Mode::MountOnly,
    calls: &["mount", "mountdevice"],
    undo: "",
    or: &[],
};

/// Shell functions that every script has.
const LASTING: &str = r#"lasting() { "$@" > /dev/null 2>&1 & echo $! >> $dir/pids; }
told() {
    local begins= known= word line
    for word; do [[ $word == [A-Z]*=* ]] || begins+="$word "; done
    while read -r line; do
        known="${line/#"$lvm"/lvm} "
        [[ $known != "${begins% }"* ]] || break
        line=
    done <<< "$commands"
    [ -n "$line" ] || { echo "no message prints $begins" >&2; return 1; }
    for word; do [[ $word != [A-Z]*=* ]] || line=${line/"${word%%=*}"/"${word#*=}"}; done
    # A person's terminal outlives the command, and with it what LVM goes on with in the background, as a merge.
    line="trap '' HUP; $line"
    # A passphrase is read once it is asked for, and what was typed before is thrown away.
    { [ -z "${answer-}" ] || sleep 1; yes "${answer-yes}" | head -n 99; } | script -qec "$line" /dev/null >&2
}
"#;
const END: &str = "[ ! -e $dir/pids ] || kill $(cat $dir/pids)\nrm -f $dir/pids\n";

/// The disk, the group and the words of one row.
struct Scene {
    undo: &'static str,
    words: BTreeMap<&'static str, String>,
    is_over: bool,
    // Each needs the next.
    group: Group,
    disk: Disk,
}

impl Scene {
    /// Runs a script, for ten minutes at most. An error has the commands that ran last.
    fn sh(&self, script: &str) -> Result<(), String> {
        let mut bash = Command::new("timeout");
        bash.args(["--kill-after=5", "600", "bash", "-euxc"]);
        bash.arg(format!("{LASTING}{script}")).envs(&self.words);
        let output = bash.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let from = said.rmatch_indices('\n').nth(20).map_or(0, |(at, _)| at);
        let failed = || format!("{script}: {}: {}", output.status, &said[from..]);
        output.status.success().then_some(()).ok_or_else(failed)
    }
}

impl Drop for Scene {
    /// Removes everything, so that a failed row does not disturb the next one.
    fn drop(&mut self) {
        if !self.is_over {
            println!("{:?}", self.sh(&format!("{END}set +e; {}", self.undo)));
        }
        // A disk that an undo brought back shows LVM the group for as long as it is there.
        let lost =
            "losetup --noheadings --output NAME --associated $dir/lost | xargs -r losetup --detach";
        println!("{:?}", self.sh(lost));
    }
}

/// A check that other commands report the refusal, too.
type Told = fn(&Node, &Group, &str);

impl Row {
    /// Brings the state about, checks that the volume is refused for this reason, and ends the state.
    #[track_caller]
    pub fn is_refused(&'static self, word: &str) {
        let name = format!(
            "    {} {{",
            word.replace('-', "_").replace("loop", "r#loop")
        );
        let line = ROWS.lines().position(|line| line.starts_with(&name));
        println!("the row: tests/guest/refusals/mod.rs:{}", line.unwrap() + 1);
        // The core has the refusal itself. All that is said of it, and each remedy, is in the rest.
        if std::env::var_os("FLEXVOLUME_LVM_CORE").is_some() {
            return self.is_refused_until(self.undo, word, |_, _, _| ());
        }
        self.is_refused_until(self.undo, word, is_told_by_all);
        for undo in self.or {
            self.is_refused_until(undo, word, |_, _, _| ());
        }
    }

    #[track_caller]
    fn is_refused_until(&'static self, undo: &'static str, name: &str, told: Told) {
        let word = if self.word.is_empty() {
            name
        } else {
            self.word
        };
        let disk = Disk::new(&format!("disk-of-{name}"), 640 * MIB);
        let group = Group::on(name, &[&disk.path()]);
        let blank = group.linear("data", "32m");
        let node = Node::with_config(self.mode, self.config);
        let asks = self.asks.iter();
        let volume = asks.fold(blank.clone(), |volume, (key, value)| {
            volume.with(key, value)
        });
        let [pod, other] = ["refused", "other"].map(|pod| precreated(node.pod_dir(pod, &volume)));
        let global = precreated(node.global_dir(&volume));
        let dir = precreated(PathBuf::from(format!("/run/dir-of-{name}")));
        let words = [
            ("vg", name.to_owned()),
            ("dev", volume.device()),
            ("disk", disk.path()),
            ("below", disk.below.clone()),
            ("pod", text(&pod).to_owned()),
            ("other", text(&other).to_owned()),
            ("global", text(&global).to_owned()),
            ("dir", text(&dir).to_owned()),
            ("lvm", text(&node.exe()).to_owned()),
            ("bad", disk.failing(Some(0..32 * MIB))),
            ("well", disk.failing(None)),
            ("commands", String::new()),
        ];
        let mut scene = Scene {
            undo,
            words: words.into(),
            is_over: false,
            group,
            disk,
        };
        run("udevadm", &["settle"]);
        scene.sh(self.prepare).unwrap();
        run("sync", &[]);

        let kubelet = node.kubelet_dir().to_owned();
        let seen = || (Snapshot::take(&kubelet), scene.disk.fingerprint());
        let before = seen();
        let (json, device) = (volume.json_for("refused"), volume.device());
        let mut messages = Vec::new();
        for call in self.calls {
            let reply = match *call {
                "mount" => node.call(&["mount", text(&pod), &json]),
                "expandfs" => {
                    let grown = (64 * MIB).to_string();
                    node.call(&["expandfs", &json, &device, text(&pod), &grown, "0"])
                }
                call => node.call(&[call, text(&global), &device, &json]),
            };
            reply.is_failure(&[self.says]);
            messages.push(reply.message);
        }
        let checked = self.check.unwrap_or(word);
        let (reason, message) = self.checked(&node, &scene.group);
        assert_eq!(reason, checked, "{message}");
        let message = if checked == word {
            message
        } else {
            String::new()
        };
        if checked == word {
            messages.push(message.clone());
        }
        told(&node, &scene.group, &message);
        for message in &messages {
            println!("{message}");
            let names = [name, &name.replace('-', "--")].map(|name| message.contains(name));
            let says = message.contains(self.says) && names.contains(&true);
            assert!(says && PAGE.contains(&format!("\n### {word}\n")), "{word}");
        }
        assert_eq!(seen(), before, "{messages:#?}");

        let commands = messages.iter().flat_map(|message| commands_in(message));
        let (looks, others): (Vec<_>, Vec<_>) = commands.partition(only_looks);
        for command in BTreeSet::from_iter(looks) {
            // e2fsck exits with 8 if it finds damage, and fuser with 1 if it finds nobody.
            let fails = ["e2fsck", "fuser -v /"]
                .iter()
                .any(|begins| command.starts_with(begins));
            let or = if fails { " || [ $? -lt 16 ]" } else { "" };
            // The files of another Debian lack some of the tools.
            let tool = command.split(' ').next().unwrap();
            scene
                .sh(&format!("! command -v {tool} > /dev/null || {command}{or}"))
                .unwrap();
        }
        scene.sh(END).unwrap();
        scene.words.insert("commands", others.join("\n"));
        if !undo.is_empty() {
            scene.sh(undo).unwrap();
            // As kubelet does, the call is repeated. What the pod asks for may have been the fault.
            let calls = std::iter::repeat_n([&volume, &blank], 20).flatten();
            let mut mounts = calls.map(|asked| node.mount("again", asked));
            let last = mounts.find(|mount| mount.status == "Success");
            assert!(last.is_some(), "{undo}: {:?}", node.mount("again", &volume));
        }
        scene.is_over = true;
    }

    /// The word and the message of `check`.
    fn checked(&self, node: &Node, group: &Group) -> (String, String) {
        let (id, asks) = (group.path("data"), |asked| self.asks.contains(&asked));
        let mut args = vec!["check", &id, "--fs", "ext4"];
        if asks(("kubernetes.io/readwrite", "ro")) {
            args.push("--ro");
        }
        let (report, code) = node.json(&args);
        let field = |name| report["volumes"][0][name].as_str().unwrap_or_default();
        let reason = field("reason");
        assert_eq!(code, i32::from(!reason.is_empty()), "{report}");
        (reason.to_owned(), field("message").to_owned())
    }
}

/// `status` and `doctor` judge the volume as `check` does without the pod's options. `message`: that of a mount for
/// writing; empty if the row asks for another. `status -x` and the metrics are made of the lines of `status`, whatever
/// the reason: `agreed` has them.
#[track_caller]
pub fn is_told_by_all(node: &Node, group: &Group, message: &str) {
    at_last(|| told_by_all(node, group, message), Result::is_ok).unwrap();
}

/// The rows in which LVM does not answer, or does not know the group: there is no list.
const NO_LIST: [&str; 3] = ["lvm-silent", "no-group", "unknown"];

/// Whether the lists must have a verdict on the volume `data` of this group: `lvs` shows the volume, and it is no pool.
fn is_listed(group: &Group) -> bool {
    let args = ["--noheadings", "-o", "lv_name", &group.name];
    let output = assert_cmd::Command::new("lvs").args(args).output().unwrap();
    let names = String::from_utf8_lossy(&output.stdout);
    // The group of a row has its word for a name.
    group.name != "pool" && names.split_whitespace().any(|name| name == "data")
}

fn told_by_all(node: &Node, group: &Group, message: &str) -> anyhow::Result<()> {
    let id = group.path("data");
    let (listed, _) = node.says(&["check", &group.name, "--json"]);
    let Ok(listed) = serde_json::from_str::<Value>(&listed) else {
        let (said, code) = node.says(&["status", &group.name]);
        let both = [&listed, &said].map(|said| said.contains("is not on this node"));
        anyhow::ensure!(both == [true, true] && code == 1, "{listed} {said}");
        anyhow::ensure!(NO_LIST.contains(&&*group.name), "no list: {listed} {said}");
        return Ok(());
    };
    let its = listed["volumes"].as_array().into_iter().flatten();
    let Some(checked) = its.into_iter().find(|one| one["volume"] == *id) else {
        anyhow::ensure!(!is_listed(group), "check lacks {id}: {listed}");
        return Ok(());
    };
    let (all, _) = node.json(&["status"]);
    let volumes = all["volumes"].as_array().unwrap();
    let Some(line) = volumes.iter().find(|line| line["volume"] == *id) else {
        anyhow::ensure!(!is_listed(group), "status lacks {id}: {all}");
        return Ok(());
    };
    let next = &line["next_mount"];
    if next["verdict"].is_null() {
        anyhow::ensure!(!is_listed(group), "no verdict: {line}");
        return Ok(());
    }
    let is_same = |field| next[field] == checked[field];
    let agree = is_same("verdict") && is_same("reason");
    anyhow::ensure!(agree, "status and check: {line} {checked}");
    if checked["reason"].is_null() {
        return Ok(());
    }
    let is_unwell = line["unwell"] == true;
    let (doctor, _) = node.json(&["doctor"]);
    let findings = doctor.as_array().unwrap();
    let about = |one: &&Value| one["about"] == *id && one["severity"] == "failed";
    let failed: Vec<&Value> = findings.iter().filter(about).collect();
    anyhow::ensure!(failed.is_empty() != is_unwell, "{id}: {doctor}");
    let says = |one: &&Value| one["finding"].as_str().unwrap().contains(message);
    let is_told = !is_unwell || failed.iter().any(says);
    anyhow::ensure!(is_told, "{message}: {failed:?}");
    Ok(())
}
