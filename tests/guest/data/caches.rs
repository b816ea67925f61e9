//! Caches whose metadata is damaged: LVM has `cache_check` read it, and activates nothing.

use std::fs;

use super::states::sectors;
use crate::page::{self, section};
use crate::prelude::*;

const PAGE: &str = include_str!("../../../docs/on-call.md");
const COPIES: &str = "bs=4096 count=1 conv=notrunc,fsync status=none";

/// A volume on two disks, which is not active. The second disk has a cache, whose metadata begins with a block that can
/// be damaged.
struct Cached {
    name: &'static str,
    /// What the cache is before.
    lv: &'static str,
    volume: Volume,
    /// The disk of the cache, and the number of that block.
    block: (String, u64),
    _group: Group,
    _disks: Vec<Disk>,
}

impl Cached {
    fn new(node: &Node, name: &'static str, mode: &str, kind: &str, is_thin: bool) -> Self {
        let (disks, group) = Disk::several(name, 2, 200 * MIB);
        let [slow, fast] = [0, 1].map(|number| disks[number].path());
        let lv = if is_thin { "pool" } else { "data" };
        let volume = if is_thin {
            let make = "lvcreate -qq -y --type thin-pool -Z n --poolmetadataspare n -n pool -L 64m";
            sh(&format!("{make} {name} {slow}"));
            group.thin("data", "32m")
        } else {
            let make = "lvcreate -qq -y -W y -n data -L 64m";
            sh(&format!("{make} {name} {slow}"));
            Volume::new(&group, "data")
        };
        node.write("pod", &volume, "before");
        let (makes, metadata) = match kind {
            "pool" => ("cache-pool", "fast_cpool_cmeta"),
            _ => ("linear -an -Z n", "fast_cvol"),
        };
        bash(&format!(
            "lvchange -qq -an {name}/data {name}/{lv}
            lvcreate -qq -y -L 32m --type {makes} -n fast {name} {fast}
            lvconvert -qq -y --type cache --cachemode {mode} --cache{kind} fast {name}/{lv}"
        ));
        node.write("pod", &volume, "kept");
        let mapped = format!("{}-{metadata}", name.replace('-', "--"));
        let at = sectors(&mapped, 5) / 4096;
        bash(&format!("lvchange -qq -an {name}/data {name}/{lv}"));
        let cached = Self {
            name,
            lv: if is_thin { "pool_tdata" } else { "data" },
            volume,
            block: (fast, at),
            _group: group,
            _disks: disks,
        };
        let (disk, at) = &cached.block;
        sh(&format!(
            "dd if={disk} of=/run/{name}.block skip={at} {COPIES}"
        ));
        sh(&format!("dd if=/dev/urandom of={disk} seek={at} {COPIES}"));
        cached
    }

    fn mend(&self) {
        let (name, (disk, at)) = (self.name, &self.block);
        sh(&format!(
            "dd if=/run/{name}.block of={disk} seek={at} {COPIES}"
        ));
    }

    /// Runs those lines of the page that have no `without`, as somebody types them: a line that fails stops nothing.
    fn as_the_page_says(&self, without: &str) {
        let blocks = page::blocks(section(PAGE, "5. More on some of them"), "sh");
        let mut blocks = blocks.iter();
        let block = blocks.find(|block| block.contains("--uncache")).unwrap();
        let words = [("VG", self.name), ("LV", self.lv), ("NAME", "fast")];
        let lines = block
            .lines()
            .filter(|line| without.is_empty() || !line.contains(without));
        let typed = lines.map(|line| {
            let line = words
                .iter()
                .fold(line.to_owned(), |line, (from, to)| line.replace(from, to));
            line + "\n"
        });
        let script = format!("/run/{}.sh", self.name);
        fs::write(&script, typed.collect::<String>()).unwrap();
        agreeing(&format!("bash {script}"));
    }
}

#[test]
fn a_cache_with_damaged_metadata_is_taken_away_by_what_the_page_says_if_the_disks_have_all() {
    let node = Node::new(Mode::MountOnly);
    for (name, kind, is_thin) in [
        ("checked-pool", "pool", false),
        ("checked-vol", "vol", false),
        ("checked-thin", "pool", true),
    ] {
        println!("{name}");
        let cached = Cached::new(&node, name, "writethrough", kind, is_thin);
        let refused = node.mount("refused", &cached.volume);
        refused.is_failure(&["activating", "Manual repair required!"]);
        if !is_thin {
            let said = sh(refused.command("lvs -o cache_mode").unwrap());
            assert!(said.contains("writethrough"), "{said}");
            // The first try has left parts active, so LVM names another cause now. The message is the same.
            let again = node.mount("refused", &cached.volume);
            assert_eq!(
                again.command("lvs -o cache_mode"),
                refused.command("lvs -o cache_mode")
            );
        }
        cached.as_the_page_says("");
        if is_thin {
            let last = "lvchange -an VG/POOL_tmeta";
            assert!(PAGE.contains(&format!("`{last}`")), "{last}");
            sh(&last.replace("VG", name).replace("POOL", "pool"));
        }
        node.finds(&cached.volume, "kept");
        let layout = sh(&format!(
            "lvs --noheadings -a -o lv_layout {name}/{}",
            cached.lv
        ));
        assert!(!layout.contains("cache"), "{layout}");
        let left = sh("dmsetup ls");
        assert!(!left.contains("fast"), "{left}");
    }
}

#[test]
fn what_the_page_says_of_a_damaged_cache_keeps_what_only_the_cache_has() {
    let node = Node::new(Mode::MountOnly);
    for (name, kind) in [("ahead-pool", "pool"), ("ahead-vol", "vol")] {
        println!("{name}");
        let cached = Cached::new(&node, name, "writeback", kind, false);
        let refused = node.mount("refused", &cached.volume);
        refused.is_failure(&["activating", "With writeback"]);
        let said = sh(refused.command("lvs -o cache_mode").unwrap());
        assert!(said.contains("writeback"), "{said}");
        // Somebody does not look.
        cached.as_the_page_says("");
        node.mount("refused", &cached.volume)
            .is_failure(&["activating"]);
        cached.as_the_page_says("--uncache");
        cached.mend();
        node.finds(&cached.volume, "kept");
    }
}
