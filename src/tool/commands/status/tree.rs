//! One volume on one screen: a tree from the disk to the pods, the next mount, and the last calls.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use super::row::{Encrypted, VolumeRow};
use crate::commands::log::{self, Call};
use crate::commands::survey::{Inventory, content_in_words, uid_of};
use crate::output::{Printed, bold, columns_within, printed, red, width};
use driver::crypt::Header;
use driver::host::holders;
use driver::lvm::Volume;
use driver::names::Bytes;
use driver::volume::{Content, Facts, lock};

/// How many of the last calls are shown.
const CALLS: usize = 5;

/// One volume, for programs and for the tree.
#[derive(Serialize)]
struct VolumeTree {
    #[serde(flatten)]
    row: VolumeRow,
    thin_pool: Option<String>,
    disks: Vec<String>,
    number: Option<String>,
    writable: Option<bool>,
    suspended: bool,
    content: Option<String>,
    locked_by: Vec<String>,
    last_calls: Vec<Call>,
}

/// `flexvolume-lvm status VG/LV`.
pub fn of(inventory: &Inventory, volume: &Volume, json: bool) -> Result<Printed> {
    let kernel = inventory.host.kernel;
    let (row, facts) = VolumeRow::of(inventory, volume, None);
    let device = inventory.device(volume);
    let locked_by = device.as_ref().map(|device| {
        let holders = holders::of_file(kernel, &lock::path_of(&device.lv_uuid));
        holders.iter().map(ToString::to_string).collect()
    });
    let seen = facts.as_ref();
    let uses = seen.and_then(|facts| facts.uses.as_ref());
    let last_calls = log::last(inventory.host, inventory.config, &volume.id, CALLS);
    let disks = device.as_ref().map(|device| device.disks(kernel));
    let shown = VolumeTree {
        thin_pool: volume.pool.as_ref().map(ToString::to_string),
        disks: disks.unwrap_or_default().into_iter().collect(),
        number: device.as_ref().map(|device| device.number.to_string()),
        writable: volume.writable,
        suspended: uses.is_some_and(|uses| uses.suspended.is_some()),
        content: seen
            .and_then(|facts| facts.content.as_ref())
            .map(content_in_words),
        locked_by: locked_by.unwrap_or_default(),
        last_calls: last_calls.as_deref().unwrap_or_default().to_vec(),
        row,
    };
    let mut text = tree(inventory, volume, &shown, seen);
    text.push_str(&in_words(&shown));
    match last_calls {
        Ok(calls) if calls.is_empty() => text.push_str("Last calls:  none in the log\n"),
        Ok(calls) => {
            let _ = writeln!(text, "\n{}", bold("Last calls"));
            text.push_str(&log::in_columns(&calls, false));
        }
        Err(error) => {
            let _ = writeln!(text, "Last calls:  not known: {error:#}");
        }
    }
    printed(&shown, text, json, 0)
}

/// The tree of devices and mounts, from the disks at the top to the pods.
fn tree(
    inventory: &Inventory,
    volume: &Volume,
    shown: &VolumeTree,
    facts: Option<&Facts>,
) -> String {
    let row = &shown.row;
    let mut levels = below(inventory, volume, shown);
    levels.push(its_level(volume, shown));
    levels.extend(row.encrypted.as_ref().map(level_of_luks));
    levels.extend(on_it(row, facts));
    let mut text = String::new();
    let indent = |n: usize| n.saturating_sub(1).saturating_mul(3);
    for (n, level) in levels.iter().enumerate() {
        let (space, branch) = (indent(n), if n == 0 { "" } else { "└─ " });
        let _ = writeln!(text, "{:space$}{branch}{level}", "");
    }
    let space = indent(levels.len());
    for (n, place) in row.mounted_at.iter().enumerate() {
        let is_last = n.saturating_add(1) == row.mounted_at.len();
        let branch = if is_last { "└─ " } else { "├─ " };
        let pod = uid_of(place.as_ref()).map(|uid| format!("  pod {}", inventory.pods.name(uid)));
        let _ = writeln!(
            text,
            "{:space$}{branch}{place}{}",
            "",
            pod.unwrap_or_default()
        );
    }
    for user in &row.other_users {
        let _ = writeln!(text, "{:space$}└─ used by {user}", "");
    }
    text
}

/// The levels below the volume: its disks, its group, its pool.
fn below(inventory: &Inventory, volume: &Volume, shown: &VolumeTree) -> Vec<String> {
    let mut levels = Vec::new();
    if !shown.disks.is_empty() {
        levels.push(format!("disk {}", shown.disks.join(", ")));
    }
    let vg = volume.id.vg();
    if let Some(group) = inventory
        .groups
        .iter()
        .find(|group| group.name == vg.as_str())
    {
        let (free, size) = (group.free.rounded(), group.size.rounded());
        levels.push(format!("group {vg}: {free} of {size} free"));
    }
    if let Some(pool) = inventory.pool(volume) {
        levels.push(format!(
            "pool {}: {}{}",
            pool.id,
            pool.takes().rounded(),
            fill(pool)
        ));
    }
    levels
}

/// The volume itself.
fn its_level(volume: &Volume, shown: &VolumeTree) -> String {
    let row = &shown.row;
    let at = match (&row.device, &shown.number) {
        (Some(device), Some(number)) => format!("{device} ({number})"),
        _ if row.active => "active".to_owned(),
        _ => "not active".to_owned(),
    };
    let health = row.colored(row.health.clone());
    format!(
        "{}: {}, {}{}{}, {health}, {at}",
        bold(format_args!("volume {}", volume.id)),
        volume.device_size().rounded(),
        volume.layout,
        row.of_origin(),
        fill(volume),
    )
}

fn level_of_luks(encrypted: &Encrypted) -> String {
    let (uuid, number) = (&encrypted.uuid, encrypted.number.as_deref());
    let state = match &encrypted.open {
        Some(open) => format!("open as {open} ({})", number.unwrap_or("-")),
        None => "closed; only its passphrase tells what is inside".to_owned(),
    };
    format!("LUKS2 {uuid}: {state}")
}

/// How full a pool or a thick snapshot is, or how much of a thin volume its pool has allotted.
fn fill(volume: &Volume) -> String {
    let is_filled = volume.is_pool() || volume.is_thick_snapshot();
    let word = if is_filled { "filled" } else { "allotted" };
    let mut text = String::new();
    for (what, percent) in volume.filled_to(0) {
        let _ = write!(text, ", {what} {percent:.1} % {word}");
    }
    text
}

/// The content of the volume: its filesystem, or other content.
fn on_it(row: &VolumeRow, facts: Option<&Facts>) -> Option<String> {
    let content = facts.and_then(Facts::top_content);
    let is_its = |header: &Header| {
        let recorded = row.encrypted.as_ref().map(|encrypted| &encrypted.uuid);
        header.is_whole && header.uuid.as_ref() == recorded
    };
    if let (Some(all), Some(used)) = (row.fs_bytes, row.fs_used_bytes) {
        let [all, used] = [all, used].map(|bytes| Bytes::new(bytes).rounded());
        let fs = row.fs.as_deref().unwrap_or("mounted");
        return Some(format!("{fs}: {used} of {all} used"));
    }
    match content {
        Some(Content::Claimed(_)) | None => None,
        // The tree has a level of its own for this header.
        Some(Content::Luks(header)) if is_its(header) => None,
        Some(content) => Some(content_in_words(content)),
    }
}

fn in_words(shown: &VolumeTree) -> String {
    let row = &shown.row;
    let list = |items: &[String]| match items {
        [] => "-".to_owned(),
        items => items.join(", "),
    };
    let mut rows = vec![("UUID", row.uuid.clone()), ("Record", list(&row.record))];
    if shown.writable == Some(false) {
        rows.push(("Writable", red("no")));
    }
    if !shown.locked_by.is_empty() {
        rows.push(("Locked by", list(&shown.locked_by)));
    }
    if let Some(verdict) = &row.next_mount {
        rows.push((
            "Next mount",
            match verdict.message() {
                Some(message) if verdict.is_refused() => {
                    format!("{}: {message}", red(verdict.short()))
                }
                Some(message) => format!("{}: {message}", bold(verdict.short())),
                None => bold(verdict.short()),
            },
        ));
        rows.extend(verdict.see().map(|see| ("See", see)));
        rows.extend(verdict.steps.iter().map(|step| ("", format!("  {step}"))));
    }
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(name, value)| {
            let colon = if name.is_empty() { "" } else { ":" };
            vec![format!("{name}{colon}"), value]
        })
        .collect();
    format!("\n{}", columns_within(&rows, width()))
}
