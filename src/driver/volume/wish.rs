//! Makes a [`Wish`] from a call's options or a person's request, and from the node's config.

use std::collections::BTreeMap;
use std::path::Path;

use super::decide::{Create, Purpose, Wish};
use crate::config::Config;
use crate::lvm::Spread;
use crate::mount::{KubeletPath, restrictions};
use crate::names::{FsType, LvId};
use crate::options::Options;

impl Wish {
    /// The wish of a call for `dir`; without `dir`, for the device alone.
    pub fn of_call(config: &Config, options: &Options, dir: Option<&Path>) -> Self {
        let id = &options.id;
        let of_node = config.mount_options(id.vg(), FsType::Btrfs);
        let all = of_node.and(&options.mount_options).joined();
        let is_subvolume = |option: &str| option.starts_with("subvol");
        let of_mounts = |fs| (fs, restrictions(config.mount_options(id.vg(), fs).finals()));
        let of_group = config.encryption(id.vg()).is_some();
        let by_person = Self::of_person(config, id, options.fs, options.read_only);
        Self {
            purpose: dir.map_or(Purpose::Device, |_| Purpose::Filesystem),
            subvolume: all.is_some_and(|all| all.split(',').any(is_subvolume)),
            restrictions: FsType::ALL.map(of_mounts).into(),
            by_hand: dir.is_some_and(|dir| KubeletPath::of(dir) == KubeletPath::Other),
            encrypted: Some(options.encryption.is_some() || of_group),
            has_key: options.passphrase.is_some() || config.key_file(id.vg()).is_some(),
            create: Create {
                size: options.size,
                asked_pool: options.thin_pool.clone(),
                ..by_person.create
            },
            ..by_person
        }
    }

    /// The wish of a person who asks what the next mount of a pod's volume would do.
    pub fn of_person(config: &Config, id: &LvId, fs: Option<FsType>, read_only: bool) -> Self {
        let policy = config.policy(id.vg());
        let create = match &policy {
            Ok(Some(policy)) => Create {
                allowed: policy.create,
                largest: policy.max_size,
                reserve: policy.reserve,
                spread: Spread::of_options(&policy.lvcreate_options),
                pool: policy.thin_pool.clone(),
                ..Create::default()
            },
            _ => Create::default(),
        };
        Self {
            purpose: Purpose::Filesystem,
            fs,
            default_fs: config.default_fs,
            read_only,
            subvolume: false,
            restrictions: BTreeMap::new(),
            by_hand: false,
            encrypted: config.encryption(id.vg()).map(|_| true),
            // Without `attach`, kubelet may give a Secret.
            has_key: !config.attach || config.key_file(id.vg()).is_some(),
            not_allowed: policy.err().map(|error| format!("{error:#}")),
            pool_limit: config.thin_pool_limit,
            create,
        }
    }
}
