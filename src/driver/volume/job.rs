//! The call of kubelet that works on a volume.

use std::path::Path;

use super::decide::Wish;
use super::subject::Subject;
use crate::config::Config;
use crate::host::Host;
use crate::options::Options;

/// A call of kubelet that brings a volume up or grows it.
pub struct Job<'a> {
    pub subject: Subject<'a>,
    pub options: &'a Options,
    pub wish: Wish,
    /// Where its filesystem is to be mounted. `None`: the call is about the device alone.
    pub dir: Option<&'a Path>,
    /// The device that kubelet passes, or "".
    pub handed: &'a str,
}

impl<'a> Job<'a> {
    pub fn new(
        host: &'a Host<'a>,
        config: &'a Config,
        options: &'a Options,
        dir: Option<&'a Path>,
        handed: &'a str,
    ) -> Self {
        let id = &options.id;
        Self {
            subject: Subject { host, config, id },
            options,
            wish: Wish::of_call(config, options, dir),
            dir,
            handed,
        }
    }
}
