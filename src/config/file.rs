//! From the text of the file to [`Config`]: which keys there are, and where.

use std::collections::BTreeMap;

use toml::de::DeTable;

use super::check;
use super::read::{Section, line_of};
use super::{Config, FsConfig, Limits, VolumeGroup};
use crate::names::{FsType, VgName};

/// Where a key belongs, for the hint when it stands elsewhere.
pub const KEYS: [(&str, &[&str]); 4] = [
    (
        "at the beginning of the file, above the first [table]",
        &[
            "attach",
            "selinux_relabel",
            "supports_metrics",
            "fs_group",
            "requires_fs_resize",
            "node_name",
            "kubelet_dirs",
            "default_fs",
            "tool_dirs",
            "deactivate",
            "stale_backups",
            "thin_pool_limit",
            "log",
        ],
    ),
    (
        "into the table [limits]",
        &[
            "query", "activate", "make", "check", "mount", "resize", "lock",
        ],
    ),
    (
        "into a table [volume_group.NAME]",
        &[
            "thin_pool",
            "create",
            "max_size",
            "reserve",
            "lvcreate_options",
        ],
    ),
    (
        "into a table [filesystem.TYPE]",
        &["mkfs_options", "mount_options"],
    ),
];

pub fn parse(text: &str, file: &str) -> Result<Config, String> {
    let document = DeTable::parse(text).map_err(|e| syntax(text, file, &e))?;
    let mut node = Section::whole(file, text, document.get_ref());
    let mut config = Config {
        file: file.to_owned(),
        ..Config::default()
    };
    node.set("attach", check::boolean, &mut config.attach)?;
    node.set(
        "selinux_relabel",
        check::boolean,
        &mut config.selinux_relabel,
    )?;
    node.set(
        "supports_metrics",
        check::boolean,
        &mut config.supports_metrics,
    )?;
    node.set("fs_group", check::boolean, &mut config.fs_group)?;
    node.set(
        "requires_fs_resize",
        check::boolean,
        &mut config.requires_fs_resize,
    )?;
    node.set("node_name", check::node_name, &mut config.node_name)?;
    node.set("kubelet_dirs", check::dirs, &mut config.kubelet_dirs)?;
    node.set("default_fs", check::filesystem, &mut config.default_fs)?;
    node.set("tool_dirs", check::dirs, &mut config.tool_dirs)?;
    node.set("deactivate", check::boolean, &mut config.deactivate)?;
    node.set(
        "stale_backups",
        check::stale_backups,
        &mut config.stale_backups,
    )?;
    node.set(
        "thin_pool_limit",
        check::percent,
        &mut config.thin_pool_limit,
    )?;
    node.set("log", check::log, &mut config.log)?;
    if let Some(section) = node.section("limits")? {
        limits(section, &mut config.limits)?;
    }
    config.filesystems = filesystems(&mut node)?;
    if let Some(section) = node.section("volume_group")? {
        config.volume_groups = volume_groups(&section)?;
    }
    node.finish()?;
    Ok(config)
}

/// What the TOML parser has to say, with the text of the line in the place of a key: it may be
/// none.
fn syntax(text: &str, file: &str, error: &toml::de::Error) -> String {
    let offset = error.span().map_or(text.len(), |span| span.start);
    let line = line_of(text.as_bytes(), offset);
    let words = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let words: String = words.trim().chars().take(60).collect();
    let said: Vec<&str> = error.message().split_whitespace().collect();
    format!("{file}, line {line}, at {words:?}: {}", said.join(" "))
}

fn limits(mut section: Section, limits: &mut Limits) -> Result<(), String> {
    section.set("query", check::seconds, &mut limits.query)?;
    section.set("activate", check::seconds, &mut limits.activate)?;
    section.set("make", check::seconds, &mut limits.make)?;
    section.set("check", check::seconds, &mut limits.check)?;
    section.set("mount", check::seconds, &mut limits.mount)?;
    section.set("resize", check::seconds, &mut limits.resize)?;
    section.set("lock", check::seconds, &mut limits.lock)?;
    section.finish()
}

/// The tables `filesystem.<type>` of the whole file or of a volume group.
fn filesystems(parent: &mut Section) -> Result<BTreeMap<FsType, FsConfig>, String> {
    let Some(section) = parent.section("filesystem")? else {
        return Ok(BTreeMap::new());
    };
    let mut all = BTreeMap::new();
    for (name, mut of_fs) in section.sections()? {
        let fs = FsType::parse(name).map_err(|e| of_fs.wrong_itself(e))?;
        let mut config = FsConfig::default();
        let mkfs_options = |value: &_| check::mkfs_options(fs, value);
        of_fs.set("mkfs_options", mkfs_options, &mut config.mkfs_options)?;
        of_fs.set(
            "mount_options",
            check::mount_options,
            &mut config.mount_options,
        )?;
        of_fs.finish()?;
        // A table without a key says nothing, as no table does.
        if config != FsConfig::default() {
            all.insert(fs, config);
        }
    }
    Ok(all)
}

fn volume_groups(section: &Section) -> Result<BTreeMap<VgName, VolumeGroup>, String> {
    let mut all = BTreeMap::new();
    for (name, mut of_group) in section.sections()? {
        let vg = VgName::parse(name).map_err(|e| of_group.wrong_itself(e))?;
        let mut group = VolumeGroup::default();
        of_group.set("thin_pool", check::thin_pool, &mut group.thin_pool)?;
        of_group.set("create", check::boolean, &mut group.create)?;
        of_group.set("max_size", check::max_size, &mut group.max_size)?;
        of_group.set("reserve", check::size, &mut group.reserve)?;
        of_group.set(
            "lvcreate_options",
            check::lvcreate_options,
            &mut group.lvcreate_options,
        )?;
        group.filesystems = filesystems(&mut of_group)?;
        of_group.finish()?;
        all.insert(vg, group);
    }
    if all.is_empty() {
        // To allow none was perhaps meant, and all would be allowed.
        return Err(section.wrong_itself("name at least one group: [volume_group.NAME]"));
    }
    Ok(all)
}

/// The `attach` of a text that is no TOML, if its lines before the first table agree on one.
pub fn attach_of_broken(text: &str) -> Option<bool> {
    let top = text
        .lines()
        .take_while(|line| !line.trim_start().starts_with('['));
    let values = top.filter_map(|line| {
        let value = line.trim_start().strip_prefix("attach")?;
        let value = value.trim_start().strip_prefix('=')?;
        value.split('#').next()?.trim().parse::<bool>().ok()
    });
    let mut values: Vec<bool> = values.collect();
    values.dedup();
    match values.as_slice() {
        [value] => Some(*value),
        _ => None,
    }
}
