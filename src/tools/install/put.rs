//! Putting the driver in place, so that kubelet never sees half of it.

use anyhow::{Context, Result, bail};

use super::answer::{self, Init, NoInit};
use super::place::{Place, exists, kind, remove, rename, write};
use super::undo;
use super::{Attach, Report};
use crate::host::Host;
use crate::host::files::{self, Kind};
use crate::tools::neighbours;

/// Mode of an executable and of a file.
const EXECUTABLE: u32 = 0o755;
const READABLE: u32 = 0o644;

const CONFIG: &str = include_str!("../../../examples/config.toml");

/// The config of a new installation: every key explained, and the mode set.
pub fn config_text(attach: bool) -> String {
    CONFIG.replacen("\n#attach = true\n", &format!("\nattach = {attach}\n"), 1)
}

/// Installs or upgrades. Running it again, also after it was killed half-way, is safe.
pub fn put(host: &Host, place: &Place, driver: &[u8], attach: Attach) -> Result<Report> {
    place.clean()?;
    let done = if place.has_dir()? {
        upgrade(host, place, driver, attach)
    } else {
        first_install(host, place, driver, attach)
    };
    // Whatever went wrong, nothing half-made stays.
    let cleaned = place.clean();
    let report = done?;
    cleaned?;
    Ok(report)
}

/// A node without the driver: everything is made ready under a dot name, and one rename shows it.
///
/// The files get their names last of all: a kubelet that starts meanwhile watches that directory
/// too, and would trip over any other name that goes away again.
fn first_install(host: &Host, place: &Place, driver: &[u8], attach: Attach) -> Result<Report> {
    let mode = attach.or(false);
    files::make_dirs(&place.new_dir)
        .with_context(|| format!("making {}", place.new_dir.display()))?;
    let staged = place.in_new_dir(&place.staged);
    write(&staged, driver, EXECUTABLE)?;
    let init = match answer::init(host, &staged) {
        Ok(init) => init,
        Err(why) => bail!(
            "init of the new driver does not say Success; nothing was installed: {}",
            why.reason()
        ),
    };
    let staged_config = place.in_new_dir(&place.staged_config);
    write(&staged_config, config_text(mode).as_bytes(), READABLE)?;
    write(&place.in_new_dir(&place.first), b"", READABLE)?;
    rename(&staged_config, &place.in_new_dir(&place.config))?;
    rename(&staged, &place.in_new_dir(&place.exe))?;
    rename(&place.new_dir, &place.dir)?;

    let exe = place.exe.display();
    let init = match ask_again(host, place, init, Some(mode)) {
        Ok(init) => init,
        Err(why) => {
            place
                .remove(&[config_text(mode)])
                .context("taking it away again, because its init does not say Success")?;
            bail!(
                "init of {exe} does not say Success; it was removed again: {}",
                why.reason()
            );
        }
    };
    let mut report = Report::default();
    report.say("installed", &exe);
    report.say(
        "config",
        format_args!("{}: attach = {mode}", place.config.display()),
    );
    earlier_configs(place, &mut report)?;
    checked(place, &init, &mut report);
    Ok(report)
}

/// A node with the directory, and nearly always with a driver: the bash script or an older one.
fn upgrade(host: &Host, place: &Place, driver: &[u8], attach: Attach) -> Result<Report> {
    let mut report = Report::default();
    let exe = place.exe.display();
    let had_driver = match kind(&place.exe)? {
        Kind::Dir => bail!("{exe} is a directory; move it away"),
        Kind::Missing => false,
        Kind::File | Kind::Link => true,
    };
    if exists(&place.undoing)? && !exists(&place.previous)? {
        report.kept(undo::finish(place)?);
    }
    write(&place.staged, driver, EXECUTABLE)?;
    let init = match answer::init(host, &place.staged) {
        Ok(init) => init,
        Err(why) => bail!(
            "init of the new driver does not say Success; nothing was changed: {}",
            why.reason()
        ),
    };
    let new_mode = mode_to_write(host, place, had_driver, &init, attach)?;
    if new_mode.is_none() && files::is_executable_with(&place.exe, driver) {
        report.say("unchanged", format_args!("{exe} is this driver already"));
        checked(place, &init, &mut report);
        return Ok(report);
    }

    record(place, had_driver)?;
    if let Some(mode) = new_mode {
        write(&place.no_config, b"", READABLE)?;
        write(&place.staged_config, config_text(mode).as_bytes(), READABLE)?;
        rename(&place.staged_config, &place.config)?;
    }
    rename(&place.staged, &place.exe)?;

    let init = match ask_again(host, place, init, new_mode) {
        Ok(init) => init,
        Err(why) => {
            put_back(place, had_driver, new_mode.is_some())
                .context("taking it back, because its init does not say Success")?;
            bail!(
                "init of {exe} does not say Success; what was there before is back: {}",
                why.reason()
            );
        }
    };
    report.say("installed", &exe);
    if had_driver {
        report.say(
            "kept",
            format_args!("{}, the driver before", place.previous.display()),
        );
    }
    let config = place.config.display();
    match new_mode {
        Some(mode) => {
            report.say("config", format_args!("{config}: attach = {mode}"));
            earlier_configs(place, &mut report)?;
        }
        None if exists(&place.config)? => report.say("kept", format_args!("{config}, as it is")),
        None => {}
    }
    checked(place, &init, &mut report);
    Ok(report)
}

/// Asks the driver under its own name. `before` is what it said under its dot name, and `mode` was
/// written into its config since.
///
/// Who is told to stop believes that: taking a good driver away again leaves volumes that nobody
/// unmounts, and a kubelet like 1.20 that starts and finds the directory without its executable
/// loads no `FlexVolume` driver at all (kubelet's pkg/volume/plugins.go, refreshProbedPlugins).
fn ask_again(host: &Host, place: &Place, before: Init, mode: Option<bool>) -> Result<Init, NoInit> {
    match answer::init(host, &place.exe) {
        Err(NoInit::Stopped) => Ok(Init {
            attach: mode.unwrap_or(before.attach),
            ..before
        }),
        answer => answer,
    }
}

/// The mode that has to be written into a new config, if any. `init` is the new driver's answer
/// with the config that is there.
fn mode_to_write(
    host: &Host,
    place: &Place,
    had_driver: bool,
    init: &Init,
    attach: Attach,
) -> Result<Option<bool>> {
    let now = init.attach;
    let wanted = attach.wanted();
    if exists(&place.config)? {
        if wanted.is_some_and(|wanted| wanted != now) {
            bail!(
                "{} says attach = {now} and is never changed here: edit it, then run this again",
                place.config.display()
            );
        }
        return Ok(None);
    }
    // A driver that was installed over another and has vanished since was as it is configured.
    let vanished = !had_driver && exists(&place.previous)?;
    if !had_driver && !vanished {
        return Ok(Some(attach.or(false)));
    }
    let wanted = match wanted {
        Some(wanted) => wanted,
        None if vanished => now,
        None => match answer::init(host, &place.exe) {
            Ok(before) => before.attach,
            // It does not work, so there is no mode that volumes could depend on.
            Err(NoInit::Wrong(_)) => now,
            Err(NoInit::Stopped) => bail!("told to stop before anything was changed"),
            Err(NoInit::NoInterpreter) => bail!(
                "{} cannot be asked for its mode, because what runs it is not here (in a \
                 container there is no shell); say it with --attach true or --attach false. The \
                 bash script's mode is true",
                place.exe.display()
            ),
        },
    };
    Ok((wanted != now).then_some(wanted))
}

/// The record for an undo comes first: from here on a killed run can be taken back or run again.
fn record(place: &Place, had_driver: bool) -> Result<()> {
    remove(&place.no_config)?;
    if had_driver {
        files::second_name(&place.exe, &place.staged_previous)
            .with_context(|| format!("keeping {}", place.exe.display()))?;
        rename(&place.staged_previous, &place.previous)
    } else if exists(&place.previous)? {
        // What this driver once replaced is still the one to go back to.
        Ok(())
    } else {
        write(&place.first, b"", READABLE)
    }
}

fn put_back(place: &Place, had_driver: bool, wrote_config: bool) -> Result<()> {
    if had_driver {
        // What would be kept is what was written a moment ago.
        return undo::take_back(place).map(drop);
    }
    remove(&place.exe)?;
    if wrote_config {
        remove(&place.config)?;
    }
    remove(&place.no_config)?;
    remove(&place.first)
}

/// Says that there are configs which this one does not repeat: nobody else would look for them.
fn earlier_configs(place: &Place, report: &mut Report) -> Result<()> {
    let paths = place.kept_configs()?;
    report.kept(paths.iter().map(|path| {
        let path = path.display();
        format!("{path}, the edited config of an earlier installation; it is not used")
    }));
    Ok(())
}

fn checked(place: &Place, init: &Init, report: &mut Report) {
    if let Some(message) = &init.message {
        report.say("warning", message);
    }
    for problem in neighbours::problems(&place.plugin_dir) {
        report.say("warning", problem);
    }
    report.say(
        "checked",
        format_args!("init says Success, attach = {}", init.attach),
    );
    report.next(format_args!(
        "pods say `driver: {}`; kubelet finds it by itself if its --volume-plugin-dir is {}",
        place.plugin,
        place.plugin_dir.display()
    ));
    if init.attach {
        report.next(
            "install it on the control-plane hosts too, or set enableControllerAttachDetach to \
             false in kubelet's config",
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_config_of_a_new_node_differs_from_the_defaults_in_its_mode_only() {
        for attach in [true, false] {
            let text = config_text(attach);
            assert!(text.contains(&format!("\nattach = {attach}\n")));
            let want = Config {
                file: "f".to_owned(),
                attach,
                ..Config::default()
            };
            let got = Config::parse(&text, "f").unwrap();
            assert_eq!(got.attach, want.attach);
            assert_eq!(got.limits, want.limits);
            assert!(got.volume_groups.is_empty());
        }
    }
}
