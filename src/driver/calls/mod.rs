//! The call-outs. Each handler reads as the sentence that describes it.

mod attach;
mod expand;
pub mod guard;
mod init;
mod log_fields;
mod mount;
mod unmount;
mod words;

pub use words::{ALL, VERBOSE, is_by_hand, named};

use std::ffi::OsString;

use anyhow::{Context, Result, anyhow, bail};

use crate::config::Loaded;
use crate::host::Host;
use crate::names::{Bytes, same_host};
use crate::options::Options;
use crate::reply::Reply;
use words::{device as device_of, directory};

/// Makes the node match the call, once all of its words are understood.
pub fn answer(args: &[OsString], host: &Host, config: &Loaded) -> Result<Reply> {
    let mut words = Vec::with_capacity(args.len());
    for (n, arg) in args.iter().enumerate() {
        let word = arg.to_str();
        words.push(word.with_context(|| format!("argument {n} of the call is not valid UTF-8"))?);
    }
    let Some((name, words)) = words.split_first() else {
        bail!("no call-out given; see `flexvolume-lvm --help`");
    };
    let options = |json: &str| -> Result<Options> {
        let options = Options::parse(json).context("reading the volume's options")?;
        if let Some(given) = options.mount_options.joined() {
            host.log.about("mountoptions", &given);
        }
        Ok(options)
    };
    match (*name, words) {
        ("init", []) => Ok(init::run(config)),
        ("attach", [json, node]) => attach::attach(host, config, &options(json)?, node),
        ("waitforattach", [device, json]) => {
            let device = device_of(device)?;
            attach::waitforattach(host, config, device, &options(json)?)
        }
        ("isattached", [json, node]) => attach::isattached(host, config, &options(json)?, node),
        ("mountdevice", [dir, device, json]) => {
            let (dir, device) = (directory(dir)?, device_of(device)?);
            mount::run(host, config, &dir, device, &options(json)?)
        }
        ("mount", [dir, json]) => {
            let dir = directory(dir)?;
            mount::run(host, config, &dir, "", &options(json)?)
        }
        ("unmount" | "unmountdevice", [dir]) => unmount::run(host, config, &directory(dir)?),
        ("detach", [volume, node]) => attach::detach(host, config, volume, node),
        ("expandfs", [json, _, dir, new, _old]) | ("expandvolume", [json, dir, new, _old]) => {
            let (options, dir) = (options(json)?, directory(dir)?);
            let size = new
                .parse()
                .map_err(|_| anyhow!("the new size is not a number of bytes"))?;
            expand::run(host, config, &options, &dir, Bytes::new(size))
        }
        (name, words) => match named(name) {
            Some((name, usage)) => {
                let usage = if usage.is_empty() {
                    "no arguments"
                } else {
                    usage
                };
                bail!("{name} takes {usage}; arguments given: {}", words.len())
            }
            None => Ok(Reply::not_supported(
                "flexvolume-lvm has no call-out of this name; see `flexvolume-lvm --help`",
            )),
        },
    }
}

/// Whether a call that names `node` is for this host.
fn is_here(host: &Host, config: &Loaded, node: &str) -> bool {
    match &config.config.node_name {
        Some(name) => same_host(node, name),
        None => same_host(node, &host.kernel.host_name()),
    }
}
