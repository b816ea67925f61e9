//! `lvm status`: one volume, or all, as LVM, the kernel, the driver's record and the next mount have
//! them.

use std::fmt::Write;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;

use super::verdict::{Ask, Seen, Verdict, content_in_words, look};
use crate::config::Loaded;
use crate::host::{Host, holders};
use crate::lvm::{self, Found, Volume};
use crate::mount::Table;
use crate::names::LvId;
use crate::output::{Printed, columns, printed};
use crate::volume::{Device, lock};

/// How long the list looks at volumes. Most of them are told by the kernel's tables, at once.
const LONGEST: Duration = Duration::from_secs(5);

/// One line of the list.
#[derive(Serialize)]
struct Line {
    volume: String,
    size_bytes: u64,
    active: bool,
    record: Option<String>,
    health: String,
    next_mount: Option<Verdict>,
    data_percent: Option<f64>,
    metadata_percent: Option<f64>,
    mounted_at: Vec<String>,
}

/// `lvm status`: all volumes.
pub fn all(host: &Host, config: &Loaded, json: bool) -> Result<Printed> {
    let volumes = lvm::all_volumes(host, config.or_default().limits.query)?;
    let table = Table::read(host.kernel)?;
    let started = Instant::now();
    let mut left_out: usize = 0;
    let mut lines = Vec::new();
    for volume in &volumes {
        let device = device_of(host, volume);
        let next_mount = if volume.is_pool() {
            None
        } else if started.elapsed() < LONGEST {
            Some(verdict(host, config, volume, &volumes))
        } else {
            left_out = left_out.saturating_add(1);
            None
        };
        lines.push(Line {
            volume: volume.id.to_string(),
            size_bytes: volume.size.get(),
            active: device.is_some() || volume.active,
            record: record(volume),
            health: health(volume),
            next_mount,
            data_percent: volume.data_percent,
            metadata_percent: volume.metadata_percent,
            mounted_at: device.map(|d| mounts(host, &table, &d)).unwrap_or_default(),
        });
    }
    let titles = [
        "VOLUME",
        "SIZE",
        "ACTIVE",
        "RECORD",
        "HEALTH",
        "NEXT MOUNT",
        "MOUNTED AT",
    ];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    rows.extend(lines.iter().zip(&volumes).map(|(line, volume)| {
        vec![
            line.volume.clone(),
            volume.size.to_string(),
            yes_or_no(line.active),
            line.record.clone().unwrap_or_else(|| "-".to_owned()),
            fill(volume).unwrap_or_else(|| line.health.clone()),
            line.next_mount.as_ref().map_or("-", word).to_owned(),
            line.mounted_at.join(" "),
        ]
    }));
    let mut text = columns(&rows);
    if volumes.is_empty() {
        "LVM shows no logical volumes; see `vgs`, `pvs`\n".clone_into(&mut text);
    }
    if left_out > 0 {
        let name = crate::host::own_name();
        let _ = writeln!(
            text,
            "{left_out} volumes were not looked at within {} s; `{name} check` looks at all",
            LONGEST.as_secs()
        );
    }
    printed(&lines, text, json)
}

/// `refuse (wrong-type)` says more than `refuse`.
fn word(verdict: &Verdict) -> &'static str {
    verdict.reason.unwrap_or(verdict.word)
}

fn verdict(host: &Host, config: &Loaded, volume: &Volume, all: &[Volume]) -> Verdict {
    let ask = Ask {
        all,
        ..Ask::default()
    };
    let seen = config
        .require()
        .and_then(|config| look(host, config, &volume.id, ask));
    match seen {
        Ok(seen) => Verdict::of(&seen),
        Err(error) => Verdict::unknown(&volume.id, format!("{error:#}")),
    }
}

/// All of one volume.
#[derive(Serialize)]
struct Full {
    volume: String,
    uuid: String,
    size_bytes: u64,
    layout: String,
    health: String,
    active: bool,
    writable: Option<bool>,
    thin_pool: Option<String>,
    data_percent: Option<f64>,
    metadata_percent: Option<f64>,
    device: Option<String>,
    number: Option<String>,
    suspended: bool,
    record: Vec<String>,
    content: String,
    mounted_at: Vec<String>,
    used_by: Vec<String>,
    locked_by: Vec<String>,
    next_mount: Option<Verdict>,
}

/// `lvm status VG/LV`.
pub fn one(host: &Host, config: &Loaded, id: &LvId, json: bool) -> Result<Printed> {
    let volume = match lvm::find(host, id, config.or_default().limits.query)? {
        Found::Volume(volume) => *volume,
        Found::NoVolume => bail!("there is no logical volume {id}; see `lvs {}`", id.vg()),
        Found::NoGroup => bail!(
            "this node has no volume group {}; see `vgs`, `pvs`",
            id.vg()
        ),
    };
    let full = of_one(host, config, &volume)?;
    let list = |items: &[String]| match items {
        [] => "-".to_owned(),
        items => items.join(", "),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let rows = [
        ("Volume", full.volume.clone()),
        ("UUID", full.uuid.clone()),
        ("Size", volume.size.to_string()),
        ("Layout", full.layout.clone()),
        ("Health", full.health.clone()),
        ("Filled", or_none(fill(&volume))),
        ("Active", yes_or_no(full.active)),
        ("Writable", full.writable.map_or("-".to_owned(), yes_or_no)),
        ("Thin pool", or_none(full.thin_pool.clone())),
        (
            "Device",
            match (&full.device, &full.number) {
                (Some(device), Some(number)) => format!("{device} ({number})"),
                _ => "-".to_owned(),
            },
        ),
        ("Suspended", yes_or_no(full.suspended)),
        ("Record", list(&full.record)),
        ("Content", full.content.clone()),
        ("Mounted at", list(&full.mounted_at)),
        ("Used by", list(&full.used_by)),
        ("Locked by", list(&full.locked_by)),
        (
            "Next mount",
            or_none(full.next_mount.as_ref().map(Verdict::line)),
        ),
    ];
    let rows: Vec<Vec<String>> = rows
        .map(|(name, value)| vec![format!("{name}:"), value])
        .to_vec();
    printed(&full, columns(&rows), json)
}

fn of_one(host: &Host, config: &Loaded, volume: &Volume) -> Result<Full> {
    let table = Table::read(host.kernel)?;
    let device = device_of(host, volume);
    let locked_by = device.as_ref().map(|device| {
        let holders = holders::of_file(host.kernel, &lock::path_of(device));
        holders.iter().map(ToString::to_string).collect()
    });
    let seen: Option<Result<Seen>> = (!volume.is_pool()).then(|| {
        let config = config.require()?;
        look(host, config, &volume.id, Ask::default())
    });
    let facts = match &seen {
        Some(Ok(seen)) => Some(&seen.facts),
        _ => None,
    };
    let uses = facts.and_then(|facts| facts.uses.as_ref());
    let mut used_by = Vec::new();
    if let Some(uses) = uses {
        used_by.extend(uses.holders.iter().chain(&uses.loops).cloned());
        used_by.extend(uses.swap.then(|| "swap".to_owned()));
    }
    let content = facts.and_then(|facts| facts.content.as_ref());
    Ok(Full {
        volume: volume.id.to_string(),
        uuid: volume.uuid.clone(),
        size_bytes: volume.size.get(),
        layout: volume.layout.clone(),
        health: health(volume),
        active: device.is_some() || volume.active,
        writable: volume.writable,
        thin_pool: volume.pool.as_ref().map(ToString::to_string),
        data_percent: volume.data_percent,
        metadata_percent: volume.metadata_percent,
        device: device
            .as_ref()
            .map(|device| device.path.display().to_string()),
        number: device.as_ref().map(|device| device.number.to_string()),
        suspended: uses.is_some_and(|uses| uses.suspended.is_some()),
        record: volume.record.tags.clone(),
        content: content.map_or_else(|| "not looked at".to_owned(), content_in_words),
        mounted_at: device
            .map(|device| mounts(host, &table, &device))
            .unwrap_or_default(),
        used_by,
        locked_by: locked_by.unwrap_or_default(),
        next_mount: seen.map(|seen| match seen {
            Ok(seen) => Verdict::of(&seen),
            Err(error) => Verdict::unknown(&volume.id, format!("{error:#}")),
        }),
    })
}

/// A pool's device is not one that anybody opens.
fn device_of(host: &Host, volume: &Volume) -> Option<Device> {
    if volume.is_pool() {
        return None;
    }
    Device::find(host.kernel, &volume.id).ok().flatten()
}

/// How full a pool, or a thin volume, is.
fn fill(volume: &Volume) -> Option<String> {
    let data = volume.data_percent?;
    Some(match volume.metadata_percent {
        Some(metadata) => format!("data {data:.1} %, metadata {metadata:.1} %"),
        None => format!("data {data:.1} %"),
    })
}

fn record(volume: &Volume) -> Option<String> {
    let record = &volume.record;
    if record.permission.is_some() {
        Some("may be formatted".to_owned())
    } else if let Some(made) = &record.made {
        Some(made.fs.clone())
    } else if let Some(fs) = &record.making {
        Some(format!("{fs}, mkfs not seen to end"))
    } else {
        record.new.then(|| "no filesystem yet".to_owned())
    }
}

fn health(volume: &Volume) -> String {
    match volume.health.as_str() {
        "" => "ok".to_owned(),
        health => health.to_owned(),
    }
}

fn mounts(host: &Host, table: &Table, device: &Device) -> Vec<String> {
    table
        .of_device(host.kernel, device.number)
        .iter()
        .map(|row| {
            let read_only = if row.is_read_only() { " (ro)" } else { "" };
            format!("{}{read_only}", row.mount_point.display())
        })
        .collect()
}

fn yes_or_no(yes: bool) -> String {
    if yes { "yes" } else { "no" }.to_owned()
}
