//! Healthy filesystems as other tools make them, and volumes whose files hold the marks of other content: a pod gets
//! each of them, whatever the driver thinks of its bytes.

use crate::prelude::*;

/// The name of a filesystem, the line that makes it on `DEV`, its type, and the volume's size in MiB.
type Case = (&'static str, &'static str, &'static str, u64);

#[rustfmt::skip] // a row is a line
const CASES: &[Case] = &[
    ("blocks", "mkfs.ext4 -q -b 1024 -O ^resize_inode DEV", "ext4", 64),
    ("bigalloc", "mkfs.ext4 -q -O bigalloc -C 16384 DEV", "ext4", 64),
    ("inline", "mkfs.ext4 -q -O inline_data -I 256 DEV", "ext4", 64),
    ("encrypt", "mkfs.ext4 -q -O encrypt,stable_inodes DEV", "ext4", 64),
    ("verity", "mkfs.ext4 -q -O verity DEV", "ext4", 64),
    ("fast", "mkfs.ext4 -q -O fast_commit DEV", "ext4", 64),
    ("orphan", "mkfs.ext4 -q -O orphan_file DEV", "ext4", 64),
    ("narrow", "mkfs.ext4 -q -O ^64bit DEV", "ext4", 64),
    ("meta", "mkfs.ext4 -q -O meta_bg,^resize_inode DEV", "ext4", 64),
    ("quota", "mkfs.ext4 -q -O quota,project,ea_inode,large_dir DEV", "ext4", 64),
    ("mmp", "mkfs.ext4 -q -O mmp DEV", "ext4", 64),
    ("unlogged", "mkfs.ext4 -q -O ^has_journal,^metadata_csum DEV", "ext4", 64),
    ("bsd", "mkfs.ext2 -q -O none DEV", "ext2", 64),
    ("reflink", "mkfs.xfs -q -m reflink=0,rmapbt=0 DEV", "xfs", 320),
    ("rmap", "mkfs.xfs -q -m rmapbt=1 -b size=1024 -i size=512 DEV", "xfs", 320),
    ("bigtime", "mkfs.xfs -q -m bigtime=0,inobtcount=0,finobt=0 -l size=70m DEV", "xfs", 320),
    ("version", "mkfs.xfs -q -m crc=0 DEV", "xfs", 320),
    ("mixed", "mkfs.btrfs -q --mixed DEV", "btrfs", 128),
    ("dup", "mkfs.btrfs -q -d dup -m dup DEV", "btrfs", 256),
    ("older", "mkfs.btrfs -q -O ^no-holes -R ^free-space-tree DEV", "btrfs", 128),
    ("sums", "mkfs.btrfs -q --csum xxhash -n 4096 DEV", "btrfs", 128),
    ("converted", "mkfs.ext4 -q -b 4096 DEV; btrfs-convert DEV", "btrfs", 256),
    ("undone", "mkfs.ext4 -q -b 4096 DEV; btrfs-convert DEV; btrfs-convert -r DEV", "ext4", 256),
];

#[test]
fn a_healthy_filesystem_of_other_tools_is_mounted_grown_and_read() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("healthy");
    for (name, make, fs, mib) in CASES {
        let volume = group.linear(name, &format!("{mib}m")).fs(fs);
        let device = volume.device();
        let make = make.replace("DEV", &device);
        println!("{name}");
        bash(&format!(
            "{make}; mount -t {fs} {device} /mnt; printf kept > /mnt/page; umount /mnt"
        ));
        let dirs = ["first", "second"].map(|pod| node.up(pod, &volume));
        let before = filesystem_size(&dirs[0]);
        node.grow("first", &volume, 2 * mib * MIB).is_success();
        for dir in dirs {
            assert_eq!(read(&dir.join("page")), "kept", "{name}");
        }
        node.all_down(&["first", "second"], &volume);
        node.finds(&volume.clone().read_only(), "kept");
        // The kernel grows no ext2 that is mounted: the next mount does.
        let dir = node.up("third", &volume);
        assert_eq!(read(&dir.join("page")), "kept", "{name}");
        let size = filesystem_size(&dir);
        assert!(size > before, "{name} had {before} bytes, and has {size}");
        node.all_down(&["third"], &volume);
        group.lv("lvremove", &[], name);
    }
}

/// A mark in a file: its name, how often it comes, and where in each of these pieces it lies.
#[rustfmt::skip] // a row is a line
const MARKS: [(&str, usize, usize, &[u8]); 7] = [
    ("an uberblock of ZFS", 1024, 0, &0x00BA_B10C_u64.to_le_bytes()),
    ("a second LUKS2 header", 4096, 0, b"SKUL\xBA\xBE\0\x02"),
    ("md", 4096, 0, &0xA92B_4EFC_u32.to_le_bytes()),
    ("GPT", 512, 0, b"EFI PART\0\0\x01\0"),
    ("DRBD", 4096, 60, &0x8374_026D_u32.to_be_bytes()),
    ("a physical volume", 4096, 4, b" LVM2 x[5A%r0N*>"),
    ("xfs", 4096, 0, b"XFSB\0\0\x10\0"),
];

#[test]
fn a_file_of_the_pod_that_holds_marks_of_other_content_prevents_no_mount() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("marks");
    for (fs, size) in [("ext4", "64m"), ("xfs", "320m"), ("btrfs", "128m")] {
        for (number, (name, every, at, mark)) in MARKS.iter().enumerate() {
            println!("{fs} with a file full of {name}");
            let lv = format!("{fs}{number}");
            let volume = group.linear(&lv, size).fs(fs);
            let dir = node.up("first", &volume);
            write_synced(&dir.join("page"), "kept");
            fill(&dir.join("image"), *every, *at, mark);
            node.down("first", &volume);
            node.finds(&volume.clone().read_only(), "kept");
            node.finds(&volume, "kept");
            node.prints(&["check", &group.path(&lv)], "would mount", 0);
            // The next volume gets its place.
            run("blkdiscard", &["-f", &volume.device()]);
            group.lv("lvremove", &[], &lv);
        }
    }
}

/// Writes a file with a mark in each of its pieces, until the filesystem is full.
fn fill(file: &std::path::Path, every: usize, at: usize, mark: &[u8]) {
    use std::io::Write;
    let mut piece = vec![0x5A; every];
    piece[at..at + mark.len()].copy_from_slice(mark);
    let piece = piece.repeat(64 * 1024 / every);
    let mut file = std::fs::File::create(file).unwrap();
    while file.write_all(&piece).is_ok() {}
    let _ = file.sync_all();
}
