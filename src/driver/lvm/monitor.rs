//! Whether thin pools and snapshots are extended before they are full: dmeventd(8) watches them, and
//! lvm.conf(5) and its profiles say from when on.

use std::collections::BTreeMap;

use super::report::{Report, ask_with, id, read, text};
use crate::host::{Command, Host, ToolError};
use crate::names::LvId;

/// A volume that dmeventd could watch.
pub struct Monitor {
    pub id: LvId,
    /// Whether it does. None: the volume is not active, or nothing in it fills up.
    pub is_watched: Option<bool>,
    pub settings: Settings,
}

/// The settings of lvm.conf that apply to a volume.
#[derive(Clone)]
pub struct Settings {
    /// False (`monitoring = 0`): LVM does not ask dmeventd to watch.
    pub is_off: bool,
    pub executable: String,
    /// The percentage at which a thin pool is extended. 100: never.
    pub pool: u64,
    /// The percentage at which a snapshot is extended. 100: never.
    pub snapshot: u64,
}

/// All volumes, and what watches them.
pub fn monitors(host: &Host) -> Result<Vec<Monitor>, ToolError> {
    // To ask starts dmeventd where it does not run; and with monitoring = 0 LVM up to 2.03.16 tells
    // nothing, and later ones "not enabled".
    const ASK: &str = r#" activation/monitoring=1 dmeventd/executable="/nonexistent""#;
    let fields = "vg_name,lv_name,seg_monitor,lv_profile,vg_profile";
    let command = ask_with("lvs", fields, host.limits.query, ASK);
    let parse = |report: Report| {
        let mut rows = Vec::new();
        for row in report.rows("lv")? {
            let Some(id) = id(&row)? else { continue };
            let is_watched = match text(&row, "seg_monitor")? {
                "monitored" => Some(true),
                "not monitored" => Some(false),
                _ => None,
            };
            let profiles = [text(&row, "lv_profile")?, text(&row, "vg_profile")?];
            let its = profiles.into_iter().find(|name| !name.is_empty());
            rows.push((id, is_watched, its.unwrap_or_default().to_owned()));
        }
        Ok(rows)
    };
    let mut known = BTreeMap::new();
    let mut found = Vec::new();
    for (id, is_watched, profile) in read(host, &command, parse)? {
        let settings = match known.get(&profile) {
            Some(settings) => Settings::clone(settings),
            None => settings(host, &profile)?,
        };
        known.insert(profile, settings.clone());
        found.push(Monitor {
            id,
            is_watched,
            settings,
        });
    }
    Ok(found)
}

fn settings(host: &Host, profile: &str) -> Result<Settings, ToolError> {
    const KEYS: [&str; 4] = [
        "activation/monitoring",
        "dmeventd/executable",
        "activation/thin_pool_autoextend_threshold",
        "activation/snapshot_autoextend_threshold",
    ];
    let mut command = Command::reads("lvmconfig", host.limits.query).args(["--typeconfig", "full"]);
    if !profile.is_empty() {
        command = command.args(["--metadataprofile", profile]);
    }
    let output = host.run(&command.args(KEYS))?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let is = |key| {
        let mut lines = said.lines().filter_map(|line| line.trim().split_once('='));
        lines.find(|(name, _)| *name == key).map(|(_, is)| is)
    };
    let percent = |key| is(key).and_then(|is| is.parse().ok()).unwrap_or(100);
    Ok(Settings {
        is_off: is("monitoring") == Some("0"),
        executable: is("executable").unwrap_or_default().replace('"', ""),
        pool: percent("thin_pool_autoextend_threshold"),
        snapshot: percent("snapshot_autoextend_threshold"),
    })
}
