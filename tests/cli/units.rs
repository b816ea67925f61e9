//! The systemd units of `examples/monitoring`.

use std::fs;
use std::os::unix::fs::symlink;

use crate::Machine;
use crate::people::text;
use crate::support::driver::driver;
use crate::support::needs;

#[test]
fn systemd_takes_the_timer_and_its_service() {
    needs!("systemd", "systemd-analyze");
    let machine = Machine::new();
    // A unit takes no path with a space as it is.
    let link = machine.path("lvm");
    symlink(driver(), &link).unwrap();
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/monitoring/");
    let verify = |replaced: &str| {
        let paths = ["service", "timer"].map(|kind| {
            let name = format!("flexvolume-lvm-metrics.{kind}");
            let unit = fs::read_to_string(format!("{dir}{name}")).unwrap();
            let unit = unit.replace("/usr/local/sbin/flexvolume-lvm", link.to_str().unwrap());
            let path = machine.path(&name);
            fs::write(&path, unit.replace("OnUnitInactiveSec", replaced)).unwrap();
            path
        });
        let mut verify = assert_cmd::Command::new("systemd-analyze");
        let verify = verify.args(["verify", "--man=no", "--recursive-errors=no"]);
        let output = verify.args(paths).output().unwrap();
        let said = text(&output.stdout) + &text(&output.stderr);
        (said, output.status.success())
    };
    assert_eq!(verify("OnUnitInactiveSec"), (String::new(), true));
    assert!(verify("OnUnitIdle").0.contains("OnUnitIdle"));
}
