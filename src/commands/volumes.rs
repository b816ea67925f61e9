//! What `lvm doctor` says of groups and volumes: of every volume that the driver knows, what the next
//! mount would do.

use std::time::Duration;

use super::doctor::{Checks, Verdict as Level};
use super::verdict::{Ask, Verdict};
use super::walk::Walk;
use crate::config::{Config, Loaded};
use crate::host::{Host, own_name};
use crate::lvm::Volume;
use crate::volume::Device;

/// How long volumes are looked at.
const LONGEST: Duration = Duration::from_secs(10);

pub(super) fn look_at_lvm(checks: &mut Checks, host: &Host, config: &Loaded) {
    let settings = config.or_default();
    let walk = match Walk::begin(host, config) {
        Ok(walk) => walk,
        Err(error) => {
            checks.add("lvm", Level::Failed, format!("{error:#}"));
            return;
        }
    };
    let number = format!("{} logical volumes", walk.volumes.len());
    checks.add("lvm", Level::Ok, number);
    look_at_tables(checks, &walk);
    let mut left_out = Vec::new();
    for volume in &walk.volumes {
        look_at_volume(checks, host, settings, volume);
        let record = &volume.record;
        let is_ours = record.made.is_some() || record.making.is_some() || record.new;
        if !is_ours || volume.is_pool() {
            continue;
        }
        let id = &volume.id;
        if config.problem.is_some() {
            continue; // said already
        }
        let seen = walk.see(id, Ask::default(), LONGEST);
        match seen.map(|seen| Verdict::of(&seen)) {
            Ok(verdict) if verdict.is_unread() => left_out.push(id.to_string()),
            Ok(verdict) if verdict.is_hosts() => {
                checks.add(id.to_string(), Level::Warning, verdict.line());
            }
            // Nothing is wrong with a volume that another node uses.
            Ok(verdict) if verdict.reason == Some("held-elsewhere") => {}
            Ok(verdict) if verdict.message.is_some() => {
                let finding = format!("the next mount is refused: {}", verdict.line());
                checks.add(id.to_string(), Level::Failed, finding);
            }
            Ok(_) => {}
            Err(error) => checks.add(id.to_string(), Level::Warning, format!("{error:#}")),
        }
    }
    if !left_out.is_empty() {
        let finding = format!(
            "not looked at within {} s: {}; `{} check` looks at all",
            LONGEST.as_secs(),
            left_out.join(", "),
            own_name()
        );
        checks.add("volumes", Level::Warning, finding);
    }
}

/// Tables of config.toml for what is not here.
fn look_at_tables(checks: &mut Checks, walk: &Walk) {
    let config = walk.config;
    for (vg, policy) in &config.volume_groups {
        if !walk.has_group(vg.as_str()) {
            let finding = format!(
                "[volume_group.{vg}] in {}: this node has no such group",
                config.file
            );
            checks.add("config", Level::Warning, finding);
            continue;
        }
        let Some(name) = &policy.thin_pool else {
            continue;
        };
        let is_it = |volume: &&Volume| volume.id.vg() == vg && volume.id.lv() == name;
        if !walk.volumes.iter().find(is_it).is_some_and(Volume::is_pool) {
            let finding = format!(
                "thin_pool = {:?} in {}: {vg} has no such pool",
                name.as_str(),
                config.file
            );
            checks.add("config", Level::Warning, finding);
        }
    }
}

fn look_at_volume(checks: &mut Checks, host: &Host, config: &Config, volume: &Volume) {
    let id = &volume.id;
    let mut warn = |finding: String| checks.add(id.to_string(), Level::Warning, finding);
    if !volume.health.is_empty() {
        warn(format!(
            "LVM says {:?}; see `lvs -a -o +devices {id}`",
            volume.health
        ));
    }
    if let Some(fs) = &volume.record.making {
        warn(format!(
            "mkfs.{fs} was not seen to end; the next mount makes it again"
        ));
    }
    if volume.record.permission.is_some() {
        warn("the next mount may format it, as an operator allowed".to_owned());
    }
    let limit = f64::from(config.thin_pool_limit);
    for (what, percent) in [
        ("data", volume.data_percent),
        ("metadata", volume.metadata_percent),
    ] {
        if let Some(percent) = percent.filter(|p| volume.is_pool() && *p >= limit) {
            warn(format!(
                "its {what} is {percent:.1} % full (limit {limit} %): nothing new is written; \
                 extend it"
            ));
        }
    }
    if volume.active && !volume.is_pool() && matches!(Device::find(host.kernel, id), Ok(None)) {
        let missing = id.device();
        let finding = format!(
            "active, but {} is missing; run `vgmknodes`",
            missing.display()
        );
        checks.add(id.to_string(), Level::Failed, finding);
    }
}
