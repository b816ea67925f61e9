//! A call of kubelet that works on a volume. This file makes a [`Wish`] from the node's config, and from the options of
//! a call or the words of a person.

use std::collections::BTreeMap;
use std::path::Path;

use super::decide::{Purpose, Wish};
use super::subject::Subject;
use crate::config::Config;
use crate::host::Host;
use crate::mount::{KubeletPath, restricting};
use crate::names::{Bytes, FsType, LvId};
use crate::options::Options;

/// A call of kubelet that brings a volume up or grows it.
pub struct Job<'a> {
    pub subject: Subject<'a>,
    pub options: &'a Options,
    pub wish: Wish,
    /// Where the volume's filesystem is to be mounted. `None`: the call is about the device alone.
    pub dir: Option<&'a Path>,
    /// The path of the device that kubelet passes to this call. `None`: kubelet passes none.
    pub handed: Option<&'a str>,
}

impl<'a> Job<'a> {
    /// A call with these options: see [`Wish::of_call`].
    pub fn new(
        host: &'a Host<'a>,
        config: &'a Config,
        options: &'a Options,
        dir: Option<&'a Path>,
    ) -> Self {
        let id = &options.id;
        Self {
            subject: Subject { host, config, id },
            options,
            wish: Wish::of_call(config, options, dir),
            dir,
            handed: None,
        }
    }

    /// A call that wants the volume, and its filesystem at `dir`, to have at least this size.
    pub fn to_grow(
        host: &'a Host<'a>,
        config: &'a Config,
        options: &'a Options,
        dir: &'a Path,
        size: Bytes,
    ) -> Self {
        let mut job = Self::new(host, config, options, Some(dir));
        job.wish.purpose = Purpose::Size(size);
        job.wish.read_only = false;
        job
    }
}

impl Wish {
    /// The wish of a call, by its options and the node's config. With `dir`, the call wants the volume's filesystem
    /// mounted there. Without `dir`, it wants only an active volume.
    pub fn of_call(config: &Config, options: &Options, dir: Option<&Path>) -> Self {
        let id = &options.id;
        let of_node = config.mount_options(id.vg(), FsType::Btrfs);
        let all = of_node.and(&options.mount_options).joined();
        let of_pod = restricting(options.mount_options.finals());
        let of_mounts = |fs| {
            let of_node = config.mount_options(id.vg(), fs);
            (fs, restricting(of_node.finals()) | of_pod)
        };
        let of_group = config.encryption(id.vg()).is_some();
        let by_person = Self::of_person(config, id, options.fs, options.read_only);
        Self {
            purpose: dir.map_or(Purpose::Device, |_| Purpose::Filesystem),
            subvolume: all
                .is_some_and(|all| all.split(',').any(|option| option.starts_with("subvol"))),
            flags: FsType::ALL.map(of_mounts).into(),
            global: dir.is_some_and(|dir| KubeletPath::of(dir).is_global()),
            by_hand: dir.is_some_and(|dir| KubeletPath::of(dir) == KubeletPath::Other),
            encrypted: Some(options.encryption.is_some() || of_group),
            has_key: options.passphrase.is_some() || config.key_file(id.vg()).is_some(),
            size: options.size,
            asked_pool: options.thin_pool.clone(),
            ..by_person
        }
    }

    /// The wish of a person who asks what the next mount of a pod's volume would do.
    pub fn of_person(config: &Config, id: &LvId, fs: Option<FsType>, read_only: bool) -> Self {
        let policy = config.policy(id.vg());
        let not_allowed = policy.as_ref().err().map(|error| format!("{error:#}"));
        Self {
            purpose: Purpose::Filesystem,
            fs,
            default_fs: config.default_fs,
            read_only,
            subvolume: false,
            flags: BTreeMap::new(),
            global: false,
            by_hand: false,
            encrypted: config.encryption(id.vg()).map(|_| true),
            // Without `attach`, kubelet may pass a Secret with the passphrase.
            has_key: !config.attach || config.key_file(id.vg()).is_some(),
            allow_discards: config.luks.allow_discards,
            not_allowed,
            pool_limit: config.thin_pool_limit,
            group: policy.ok().flatten().cloned().unwrap_or_default(),
            size: None,
            asked_pool: None,
        }
    }
}
