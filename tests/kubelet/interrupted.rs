//! A pod that is deleted before its volume is up.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::prelude::*;

/// A mkfs.ext4 that waits until it is let go.
struct Gate {
    dir: PathBuf,
}

impl Gate {
    fn new(case: &str) -> Self {
        let dir = PathBuf::from(format!("/run/gate-{case}"));
        fs::create_dir(&dir).unwrap();
        let gate = Self { dir };
        let tool = gate.dir.join("mkfs.ext4");
        let script = format!(
            "#!/bin/sh\ncd {}\ntouch reached\nwhile [ ! -e open ]; do sleep 0.2; done\n\
             exec /sbin/mkfs.ext4 \"$@\"\n",
            gate.dir.display()
        );
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        gate
    }

    /// A driver that finds this mkfs.ext4 first.
    fn driver(&self, case: &str, mode: Mode) -> Driver {
        let dirs = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        let first = self.dir.display();
        let line = format!("tool_dirs = [\"{first}\", \"{}\"]", dirs.join("\", \""));
        Driver::with_config(case, mode, &line)
    }

    fn is_reached(&self) {
        wait_until("mkfs runs", || self.dir.join("reached").exists());
    }

    fn open(&self) {
        fs::write(self.dir.join("open"), "").unwrap();
    }
}

in_both_modes! {
    a_pod_deleted_while_its_mount_is_in_progress_leaves_nothing
}

fn a_pod_deleted_while_its_mount_is_in_progress_leaves_nothing(mode: Mode) {
    let _running = shared();
    let case = mode.case("hasty");
    let gate = Gate::new(&case);
    let driver = gate.driver(&case, mode);
    let volume = Volume::new(&case, "data");
    let pod = Pod::writing(&driver, "first", &volume, "never");
    gate.is_reached();
    pod.delete();
    // Newer kubelets remove the empty directories of a pod that has gone, also this one.
    let has_no_place = mode == Mode::MountOnly && since(27);
    if has_no_place {
        pod.is_gone();
    }
    gate.open();
    if has_no_place {
        driver.has_answered("mount", 1);
    } else {
        driver.has_answered("unmount", 1);
    }
    pod.is_gone();
    volume.is_unmounted();
    if mode == Mode::Attach {
        driver.has_answered("detach", 1);
    }
    // Nothing was taken away before the volume was up, and then all of it.
    driver.assert_order(match mode {
        Mode::Attach => "mountdevice mount unmount unmountdevice detach",
        Mode::MountOnly if has_no_place => "mount",
        Mode::MountOnly => "mount unmount",
    });
    let failures = driver.failures();
    assert_eq!(failures.len(), usize::from(has_no_place), "{failures:#?}");

    let next = Pod::written(&driver, "next", &volume);
    all_end(&driver, mode, &volume, &[next]);
    assert_eq!(driver.failures(), failures);
}
