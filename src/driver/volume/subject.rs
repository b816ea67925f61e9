//! The volume that a call or a command works on.

use crate::config::Config;
use crate::host::Host;
use crate::names::LvId;

/// A logical volume of this node, with the host and the config for work on it.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    pub host: &'a Host<'a>,
    pub config: &'a Config,
    pub id: &'a LvId,
}
