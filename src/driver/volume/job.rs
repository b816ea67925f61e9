//! The volume that a call or a command works on, and the call that brings one up.

use std::path::Path;

use super::decide::Wish;
use crate::config::Config;
use crate::host::Host;
use crate::names::LvId;
use crate::options::Options;

/// A logical volume of this node, with the config that says what may become of it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub host: &'a Host<'a>,
    pub config: &'a Config,
    pub id: &'a LvId,
}

/// A call of kubelet that brings a volume up.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub subject: Subject<'a>,
    pub options: &'a Options,
    /// Where its filesystem is to be mounted. `None`: the call is about the device alone.
    pub dir: Option<&'a Path>,
    /// The device that kubelet passes, or "".
    pub handed: &'a str,
}

impl<'a> Job<'a> {
    pub fn new(host: &'a Host<'a>, config: &'a Config, options: &'a Options) -> Self {
        let id = &options.id;
        Self {
            subject: Subject { host, config, id },
            options,
            dir: None,
            handed: "",
        }
    }

    pub fn wish(&self) -> Wish {
        Wish::of_call(self.subject.config, self.options, self.dir)
    }
}
