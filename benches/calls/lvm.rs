//! A volume group on a loop device over a sparse file in memory.

use std::fs;
use std::path::PathBuf;

use crate::race::{output, run};
use crate::words;

pub struct Group {
    pub name: String,
    file: PathBuf,
    disk: String,
}

impl Group {
    pub fn new(name: &str, bytes: u64) -> Self {
        let file = PathBuf::from(format!("/run/{name}.disk"));
        fs::File::create(&file).unwrap().set_len(bytes).unwrap();
        let disk = output(&words!["losetup", "--find", "--show", file.display()]);
        run(&words!["vgcreate", "-q", name, disk]);
        Self {
            name: name.to_owned(),
            file,
            disk,
        }
    }

    pub fn linear(&self, lv: &str, size: &str) {
        run(&words![
            "lvcreate", "-qq", "-y", "-W", "y", "-n", lv, "-L", size, self.name
        ]);
    }

    /// A thin volume, in a pool that is made with the first one.
    pub fn thin(&self, lv: &str, size: &str) {
        let pool = format!("{}/pool", self.name);
        if !PathBuf::from(self.device("pool")).exists() {
            run(&words![
                "lvcreate",
                "-qq",
                "-y",
                "--type",
                "thin-pool",
                "-Z",
                "n",
                "-n",
                "pool",
                "-l",
                "90%FREE",
                self.name
            ]);
        }
        run(&words![
            "lvcreate",
            "-qq",
            "-y",
            "-n",
            lv,
            "-V",
            size,
            "--thinpool",
            pool
        ]);
    }

    pub fn path(&self, lv: &str) -> String {
        format!("{}/{lv}", self.name)
    }

    pub fn device(&self, lv: &str) -> String {
        format!("/dev/mapper/{}-{lv}", self.name)
    }

    pub fn tags(&self, lv: &str) -> Vec<String> {
        let tags = output(&words![
            "lvs",
            "--noheadings",
            "-o",
            "lv_tags",
            self.path(lv)
        ]);
        let tags = tags.split(',').filter(|tag| !tag.is_empty());
        tags.map(str::to_owned).collect()
    }

    /// Makes a volume as blank as it was when it was new, and untagged.
    pub fn blank(&self, lv: &str) {
        run(&words!["blkdiscard", self.device(lv)]);
        let mut command = words!["lvchange", "-qq"];
        for tag in self.tags(lv) {
            command.extend(words!["--deltag", tag]);
        }
        if command.len() > 2 {
            command.push(self.path(lv));
            run(&command);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        run(&words!["vgchange", "-qq", "-an", self.name]);
        run(&words!["losetup", "--detach", self.disk]);
        let _ = fs::remove_file(&self.file);
    }
}
