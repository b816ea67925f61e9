//! A volume outlives the machine's power-off. This takes two boots on the same disk: the first
//! ends with the volumes still mounted, and asks for the second by a file in the shared directory.

use std::path::PathBuf;

use crate::prelude::*;

const DISK: &str = "/dev/vda";

fn volume(fs: &str, mode: Mode) -> (String, Volume) {
    let lv = format!("{fs}-{mode:?}");
    let volume = Volume::of("lasting", &lv).fs(fs);
    (lv, volume)
}

#[test]
fn volumes_are_mounted_when_the_power_goes() {
    run("vgcreate", &["-q", "lasting", DISK]);
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        for (fs, size) in FILESYSTEMS {
            let (lv, volume) = volume(fs, mode);
            run("lvcreate", &["-qq", "-y", "-n", &lv, "-L", size, "lasting"]);
            write_synced(&node.up("pod", &volume).join("page"), &lv);
        }
    }
    let again = std::env::var_os("FLEXVOLUME_LVM_BOOT_AGAIN").unwrap();
    std::fs::write(PathBuf::from(again), "").unwrap();
}

#[test]
fn after_the_reboot_the_volumes_come_up_with_their_data() {
    for mode in BOTH_MODES {
        let node = Node::new(mode);
        for (fs, _) in FILESYSTEMS {
            let (lv, volume) = volume(fs, mode);
            let dir = node.up("pod", &volume);
            assert_eq!(read(&dir.join("page")), lv);
            write_synced(&dir.join("page"), "and can be written");
            node.down("pod", &volume);
            node.down_globally(&volume);
        }
    }
}
