//! A call of kubelet that brings a volume up. Its `activate`, `hold_active` and `note_name` are in `activate.rs`.

use std::path::Path;

use crate::config::Config;
use crate::host::Host;
use crate::options::Options;
use crate::volume::decide::Wish;
use crate::volume::look::{Asker, Words};
use crate::volume::subject::Subject;

/// A call that brings a volume up.
#[derive(Clone, Copy)]
pub struct Job<'a> {
    pub subject: Subject<'a>,
    pub options: &'a Options,
}

impl<'a> Job<'a> {
    pub fn new(host: &'a Host<'a>, config: &'a Config, options: &'a Options) -> Self {
        let id = &options.id;
        Self {
            subject: Subject { host, config, id },
            options,
        }
    }

    pub fn wish(&self, dir: Option<&Path>) -> Wish {
        Wish::of_call(self.subject.config, self.options, dir)
    }

    /// The call as an asker; `dir`: the directory that it names.
    pub fn asker(&self, dir: Option<&'a Path>) -> Asker<'a> {
        Asker::Call {
            words: dir.map(|dir| Words {
                dir,
                volume_name: self.options.volume_name.as_ref(),
            }),
            made: None,
        }
    }
}
