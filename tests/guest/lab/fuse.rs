//! A filesystem whose server is in this process and stops to answer when it is told to, as that of a
//! network filesystem does when its machine is gone. It has one file, `disk`, which reads as zeroes
//! and takes whatever is written.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::poll::{PollFd, PollFlags, poll};

use crate::prelude::*;

const ROOT: u64 = 1;
const DISK: u64 = 2;
const DISK_SIZE: u64 = 16 << 20;
/// Requests, replies and their numbers: Linux `include/uapi/linux/fuse.h`.
const IN_HEADER: usize = 40;
const OUT_HEADER: usize = 16;
const MAX_WRITE: u32 = 64 << 10;

pub struct Fuse {
    dir: PathBuf,
    stopped: Arc<AtomicBool>,
    ended: Arc<AtomicBool>,
    server: Option<JoinHandle<()>>,
}

impl Fuse {
    /// Mounts one on this directory.
    pub fn at(dir: &Path) -> Self {
        run("modprobe", &["fuse"]);
        fs::create_dir_all(dir).unwrap();
        let device = File::options().read(true).write(true).open("/dev/fuse");
        let device = device.unwrap();
        let options = format!(
            "fd={},rootmode=40000,user_id=0,group_id=0,allow_other",
            device.as_raw_fd()
        );
        let flags = MsFlags::empty();
        mount(Some("server"), dir, Some("fuse"), flags, Some(&*options)).unwrap();
        let [stopped, ended] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&stopped), Arc::clone(&ended));
        let server = thread::spawn(move || serve(device, &flags.0, &flags.1));
        Self {
            dir: dir.to_owned(),
            stopped,
            ended,
            server: Some(server),
        }
    }

    pub fn disk(&self) -> PathBuf {
        self.dir.join("disk")
    }

    /// From now on it takes requests, and answers none. Who waits for an answer cannot even be
    /// killed.
    pub fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }
}

impl Drop for Fuse {
    /// Without a server all who wait are told of an error.
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        let _ = self.server.take().unwrap().join();
        let _ = umount2(&self.dir, MntFlags::MNT_DETACH);
    }
}

fn serve(mut device: File, stopped: &AtomicBool, ended: &AtomicBool) {
    let mut buffer = vec![0; MAX_WRITE as usize + 4096];
    while !ended.load(Ordering::Relaxed) {
        let mut ready = [PollFd::new(device.as_fd(), PollFlags::POLLIN)];
        if poll(&mut ready, 50_u8) == Ok(0) {
            continue;
        }
        let length = match device.read(&mut buffer) {
            Ok(length) => length,
            // Somebody has unmounted it.
            Err(error) if error.raw_os_error() == Some(nix::libc::ENODEV) => return,
            // A request was given up before it was read.
            Err(_) => continue,
        };
        if stopped.load(Ordering::Relaxed) {
            continue;
        }
        let request = &buffer[..length];
        let Some(answer) = answer(request) else {
            continue;
        };
        let (error, body) = answer.map_or_else(|error| (-error, Vec::new()), |body| (0, body));
        let total = u32::try_from(OUT_HEADER + body.len()).unwrap();
        let mut reply = total.to_le_bytes().to_vec();
        reply.extend(error.to_le_bytes());
        reply.extend(&request[8..16]); // the request's own number
        reply.extend(body);
        // Nobody may wait for it any more.
        let _ = device.write_all(&reply);
    }
}

/// The body of the reply, or an error number. None: there is no reply to it.
fn answer(request: &[u8]) -> Option<Result<Vec<u8>, i32>> {
    let word = |at: usize| u32::from_le_bytes(request[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_le_bytes(request[at..at + 8].try_into().unwrap());
    let (opcode, node) = (word(4), long(16));
    let argument = IN_HEADER;
    Some(Ok(match opcode {
        // LOOKUP: the node, its generation, and for how long that is true: not at all.
        1 if &request[argument..] == b"disk\0" => {
            [&DISK.to_le_bytes()[..], &[0; 32], &attributes(DISK)].concat()
        }
        1 => return Some(Err(nix::libc::ENOENT)),
        // FORGET, INTERRUPT and BATCH_FORGET.
        2 | 36 | 42 => return None,
        // GETATTR and SETATTR.
        3 | 4 => [&[0; 16][..], &attributes(node)].concat(),
        // OPEN and OPENDIR: a handle.
        14 | 27 => vec![0; 16],
        // READ of what is left from there.
        15 => {
            let left = DISK_SIZE.saturating_sub(long(argument + 8));
            let length = u64::from(word(argument + 16)).min(left);
            vec![0; usize::try_from(length).unwrap()]
        }
        // WRITE: so much was taken.
        16 => [word(argument + 16).to_le_bytes(), [0; 4]].concat(),
        // STATFS.
        17 => vec![0; 80],
        // RELEASE, FSYNC, FLUSH, RELEASEDIR, FSYNCDIR, ACCESS; and READDIR, which is at its end.
        18 | 20 | 25 | 28 | 29 | 30 | 34 => Vec::new(),
        // INIT: the version, and no feature but how much may be written at once.
        26 => {
            let mut body = vec![0; 64];
            body[..4].copy_from_slice(&7_u32.to_le_bytes());
            body[4..8].copy_from_slice(&31_u32.to_le_bytes());
            body[20..24].copy_from_slice(&MAX_WRITE.to_le_bytes());
            body
        }
        _ => return Some(Err(nix::libc::ENOSYS)),
    }))
}

/// `struct fuse_attr`: number, size, blocks, times, mode, links.
fn attributes(node: u64) -> [u8; 88] {
    let (size, mode, links) = match node {
        ROOT => (0, 0o040_755_u32, 2_u32),
        _ => (DISK_SIZE, 0o100_644, 1),
    };
    let mut bytes = [0; 88];
    bytes[..8].copy_from_slice(&node.to_le_bytes());
    bytes[8..16].copy_from_slice(&size.to_le_bytes());
    bytes[16..24].copy_from_slice(&(size / 512).to_le_bytes());
    bytes[60..64].copy_from_slice(&mode.to_le_bytes());
    bytes[64..68].copy_from_slice(&links.to_le_bytes());
    bytes
}
