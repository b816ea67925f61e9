//! `lvm status`: one volume, or all, as LVM, the kernel and the driver's record have them.

use anyhow::{Result, bail};
use serde::Serialize;

use super::{columns, printed};
use crate::cli::Printed;
use crate::config::{Config, Loaded};
use crate::device::{Device, is_swap};
use crate::fs::probe;
use crate::holders;
use crate::host::Host;
use crate::lock;
use crate::lvm::{self, Found, Volume};
use crate::mount::Table;
use crate::names::LvId;

/// One line of the list.
#[derive(Serialize)]
struct Line {
    volume: String,
    size_bytes: u64,
    active: bool,
    record: Option<String>,
    health: String,
    mounted_at: Vec<String>,
}

/// `lvm status`: all volumes.
pub fn all(host: &Host, config: &Loaded, json: bool) -> Result<Printed> {
    let volumes = lvm::all_volumes(host, config.or_default().limits.query)?;
    let table = Table::read(host.kernel)?;
    let mut lines = Vec::new();
    let mut rows = vec![
        ["VOLUME", "SIZE", "ACTIVE", "RECORD", "HEALTH", "MOUNTED AT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for volume in volumes {
        let device = Device::find(host.kernel, &volume.id).ok().flatten();
        let line = Line {
            volume: volume.id.to_string(),
            size_bytes: volume.size.get(),
            active: device.is_some() || volume.active,
            record: record(&volume),
            health: health(&volume),
            mounted_at: device.map(|d| mounts(host, &table, &d)).unwrap_or_default(),
        };
        rows.push(vec![
            line.volume.clone(),
            volume.size.to_string(),
            yes_or_no(line.active),
            line.record.clone().unwrap_or_else(|| "-".to_owned()),
            line.health.clone(),
            line.mounted_at.join(" "),
        ]);
        lines.push(line);
    }
    printed(&lines, columns(&rows), json)
}

/// All of one volume.
#[derive(Serialize)]
struct Full {
    volume: String,
    uuid: String,
    size_bytes: u64,
    layout: String,
    health: String,
    writable: bool,
    thin_pool: Option<String>,
    device: Option<String>,
    number: Option<String>,
    suspended: bool,
    record: Vec<String>,
    content: String,
    mounted_at: Vec<String>,
    used_by: Vec<String>,
    locked_by: Vec<String>,
}

/// `lvm status VG/LV`.
pub fn one(host: &Host, config: &Loaded, id: &LvId, json: bool) -> Result<Printed> {
    let config = config.or_default();
    let volume = match lvm::find(host, id, config.limits.query)? {
        Found::Volume(volume) => *volume,
        Found::NoVolume => bail!("there is no logical volume {id}; see `lvs {}`", id.vg()),
        Found::NoGroup => bail!(
            "this node has no volume group {}; see `vgs`, `pvs`",
            id.vg()
        ),
    };
    // A pool's device is not one that anybody opens.
    let device = if volume.is_pool() {
        None
    } else {
        Device::find(host.kernel, id)?
    };
    let full = look(host, config, &volume, device.as_ref())?;
    let list = |items: &[String]| match items {
        [] => "-".to_owned(),
        items => items.join(", "),
    };
    let rows = [
        ("Volume", full.volume.clone()),
        ("UUID", full.uuid.clone()),
        ("Size", volume.size.to_string()),
        ("Layout", full.layout.clone()),
        ("Health", full.health.clone()),
        ("Writable", yes_or_no(full.writable)),
        (
            "Thin pool",
            full.thin_pool.clone().unwrap_or_else(|| "-".to_owned()),
        ),
        (
            "Device",
            match (&full.device, &full.number) {
                (Some(device), Some(number)) => format!("{device} ({number})"),
                _ => "not active".to_owned(),
            },
        ),
        ("Suspended", yes_or_no(full.suspended)),
        ("Record", list(&full.record)),
        ("Content", full.content.clone()),
        ("Mounted at", list(&full.mounted_at)),
        ("Used by", list(&full.used_by)),
        ("Locked by", list(&full.locked_by)),
    ];
    let rows: Vec<Vec<String>> = rows
        .map(|(name, value)| vec![format!("{name}:"), value])
        .to_vec();
    printed(&full, columns(&rows), json)
}

fn look(host: &Host, config: &Config, volume: &Volume, device: Option<&Device>) -> Result<Full> {
    let table = Table::read(host.kernel)?;
    let suspended = device.is_some_and(|device| device.require_not_suspended(host.kernel).is_err());
    let content = match device {
        None => "not active, so not looked at".to_owned(),
        Some(_) if suspended => "suspended, so not looked at".to_owned(),
        Some(device) => match probe(host, &config.limits, device) {
            Ok(content) => content.to_string(),
            Err(error) => format!("{error:#}"),
        },
    };
    let mut used_by = Vec::new();
    let mut locked_by = Vec::new();
    if let Some(device) = device {
        used_by = device.holders(host.kernel).unwrap_or_default();
        used_by.extend(device.loops(host.kernel).unwrap_or_default());
        if is_swap(host.kernel, device.number) {
            used_by.push("swap".to_owned());
        }
        let lock = holders::of_file(host.kernel, &lock::path_of(device));
        locked_by = lock.iter().map(ToString::to_string).collect();
    }
    Ok(Full {
        volume: volume.id.to_string(),
        uuid: volume.uuid.clone(),
        size_bytes: volume.size.get(),
        layout: volume.layout.clone(),
        health: health(volume),
        writable: volume.writable,
        thin_pool: volume.pool.as_ref().map(ToString::to_string),
        device: device.map(|device| device.path.display().to_string()),
        number: device.map(|device| device.number.to_string()),
        suspended,
        record: volume.record.tags.clone(),
        content,
        mounted_at: device
            .map(|device| mounts(host, &table, device))
            .unwrap_or_default(),
        used_by,
        locked_by,
    })
}

fn record(volume: &Volume) -> Option<String> {
    let record = &volume.record;
    if record.may_format {
        Some("may be formatted".to_owned())
    } else if let Some(made) = &record.made {
        Some(made.fs.clone())
    } else if let Some(fs) = &record.making {
        Some(format!("{fs}, mkfs not seen to end"))
    } else {
        record.new.then(|| "new".to_owned())
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
        .of_device(host.kernel, device)
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
