//! Two guests that are nodes, on one disk with one shared group, `vg`.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use crate::support::reply::Reply;
use crate::support::volume::Volume;
use crate::support::{Mode, eventually};

/// Both guests. One case at a time works with them.
pub struct Pair {
    pub a: Guest,
    pub b: Guest,
}

/// Both nodes. The first case boots them and makes the group, which takes longer than most cases.
pub fn pair() -> MutexGuard<'static, Pair> {
    static PAIR: OnceLock<Mutex<Pair>> = OnceLock::new();
    let pair = PAIR.get_or_init(|| {
        let share = PathBuf::from(std::env::var_os("FLEXVOLUME_LVM_SHARED").unwrap());
        let disk = File::create(share.join("disk")).unwrap();
        disk.set_len(3 << 30).unwrap();
        let (a, b) = (Guest::new(&share, "a", 1), Guest::new(&share, "b", 2));
        a.boot();
        b.boot();
        a.sh("vgcreate --shared --setautoactivation n vg /dev/ubda");
        b.join();
        Mutex::new(Pair { a, b })
    });
    pair.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

pub struct Guest {
    name: &'static str,
    host_id: u32,
    share: PathBuf,
    machine: Mutex<Option<Child>>,
}

impl Pair {
    /// Which of two calls that were made at once succeeded, and which failed.
    pub fn winner(&self, replies: &[Reply; 2]) -> (&Guest, &Guest) {
        match replies.each_ref().map(|reply| reply.status.as_str()) {
            ["Success", "Failure"] => (&self.a, &self.b),
            ["Failure", "Success"] => (&self.b, &self.a),
            _ => panic!("{replies:?}"),
        }
    }
}

impl Guest {
    fn new(share: &Path, name: &'static str, host_id: u32) -> Self {
        Self {
            name,
            host_id,
            share: share.to_owned(),
            machine: Mutex::new(None),
        }
    }

    /// Counts this guest for the table that tests/run.sh prints.
    fn count() {
        let [boots, step] = ["BOOTS", "STEP"].map(|name| std::env::var(name).unwrap());
        let mut boots = File::options().append(true).open(boots).unwrap();
        boots.write_all(format!("{step}\n").as_bytes()).unwrap();
    }

    /// Boots the guest, which joins the lock manager, but no group.
    pub fn boot(&self) {
        Self::count();
        let files = self.share.join(self.name);
        let _ = fs::remove_dir_all(&files);
        fs::create_dir(&files).unwrap();
        fs::copy("tests/uml-init", files.join("init")).unwrap();
        let (share, lockd) = (self.share.display(), std::env::var("FLEXVOLUME_LVM_LOCKD"));
        let command = format!(
            "export NODE={} HOST_ID={} SHARE={share} LOCKD={}\n{}",
            self.name,
            self.host_id,
            lockd.unwrap(),
            include_str!("node.sh")
        );
        fs::write(files.join("command"), command).unwrap();
        let printed = File::create(files.join("printed")).unwrap();
        let uml = std::env::var("FLEXVOLUME_LVM_UML").unwrap();
        let processors = std::env::var("FLEXVOLUME_LVM_PROCESSORS").unwrap();
        let processors: Vec<&str> = processors.split(' ').collect();
        let processor = processors[self.host_id as usize % processors.len()];
        // On one processor: see tests/uml.sh.
        let guest = Command::new("taskset")
            .args(["--cpu-list", processor])
            .arg(format!("{uml}/usr/bin/linux.uml"))
            .args("mem=1G seccomp=auto pty.legacy_count=0 root=/dev/root rootfstype=hostfs rootflags=/ ro".split(' '))
            .arg(format!("init={}/init", files.display()))
            .arg(format!("share={share}"))
            .arg(format!("files={}", files.display()))
            .arg(format!("modules=\"{uml}/usr/lib/uml/modules\""))
            // Shared: without a lock on the file.
            .arg(format!("ubd0c={share}/disk"))
            .args("con0=null,fd:2 con1=null,fd:1 con2=fd:0,null con=null".split(' '))
            .args(["console=tty0", "loglevel=5"])
            .env("TMPDIR", "/dev/shm")
            // See tests/uml-ptrace.c.
            .env(
                "LD_PRELOAD",
                std::env::var("FLEXVOLUME_LVM_PRELOAD").unwrap(),
            )
            .stdin(Stdio::piped())
            .stdout(printed.try_clone().unwrap())
            .stderr(printed)
            .spawn()
            .unwrap();
        *self.machine.lock().unwrap() = Some(guest);
        self.wait_for(0);
    }

    /// Starts the group's locks on this node. Tries again, since udev may not show their device just after a boot.
    pub fn join(&self) {
        eventually("the start of the locks", || {
            let start = "vgchange --lockstart vg && lvmlockctl -i | grep ^LS > /dev/null";
            self.run(start).status.success()
        });
    }

    /// Ends the guest at once, as a power cut does.
    pub fn cut_power(&self) {
        let mut guest = self.machine.lock().unwrap().take().unwrap();
        // The guest and the processes of its kernel are one process group.
        let group = Pid::from_raw(guest.id().cast_signed());
        killpg(group, Signal::SIGKILL).unwrap();
        guest.wait().unwrap();
    }

    fn file(&self, number: u32, ending: &str) -> PathBuf {
        self.share
            .join(self.name)
            .join(format!("{number}.{ending}"))
    }

    fn wait_for(&self, number: u32) {
        let status = self.file(number, "status");
        eventually(&format!("{} of node {}", number, self.name), || {
            let ended = |guest: &mut Child| guest.try_wait().unwrap();
            let ended = self.machine.lock().unwrap().as_mut().and_then(ended);
            assert!(ended.is_none(), "node {} ended: {ended:?}", self.name);
            status.exists()
        });
    }

    /// Runs a script in the guest.
    pub fn run(&self, script: &str) -> Output {
        static NUMBER: AtomicU32 = AtomicU32::new(1);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        fs::write(self.file(number, "sh"), script).unwrap();
        let mut guest = self.machine.lock().unwrap();
        let console = guest.as_mut().unwrap().stdin.as_mut().unwrap();
        writeln!(console, "{number}").unwrap();
        drop(guest);
        self.wait_for(number);
        let read = |ending| fs::read(self.file(number, ending)).unwrap();
        let code = String::from_utf8(read("status")).unwrap();
        Output {
            status: ExitStatus::from_raw(code.trim().parse::<i32>().unwrap() << 8),
            stdout: read("out"),
            stderr: read("err"),
        }
    }

    /// Runs a script, which must succeed, and returns what it printed, without the ends.
    pub fn sh(&self, script: &str) -> String {
        let output = self.run(script);
        let stdout = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let stderr = String::from_utf8_lossy(&output.stderr);
        let name = self.name;
        assert!(
            output.status.success(),
            "node {name}: {script}: {stdout}{stderr}"
        );
        stdout
    }

    /// Calls the driver.
    pub fn call(&self, mode: Mode, args: &[impl AsRef<str>]) -> Reply {
        let line = line(mode, args);
        Reply::of(&line, &self.run(&line))
    }

    /// The output and the exit code of a command for people.
    pub fn says(&self, mode: Mode, args: &[&str]) -> (String, i32) {
        let output = self.run(&line(mode, args));
        let text = [output.stdout, output.stderr].concat();
        let code = output.status.code().unwrap();
        (String::from_utf8(text).unwrap(), code)
    }

    /// Brings a volume up for a pod, as kubelet does in this mode.
    pub fn up(&self, mode: Mode, volume: &Volume) -> Reply {
        let mut reply = None;
        for call in up_calls(mode, volume) {
            let answer = reply.insert(self.call(mode, &call));
            if answer.status != "Success" {
                break;
            }
        }
        reply.unwrap()
    }

    /// Brings the volume up, and takes it down again.
    pub fn can_have(&self, mode: Mode, volume: &Volume) {
        self.up(mode, volume).is_success();
        self.down(mode, volume);
    }

    /// Takes the volume from its pod; the controller detaches it on another host.
    pub fn down(&self, mode: Mode, volume: &Volume) {
        for call in down_calls(mode, volume) {
            self.call(mode, &call).is_success();
        }
        assert!(!self.has(volume), "{} still has {}", self.name, volume.lv());
    }

    /// How many encrypted volumes are open on this node.
    pub fn opened(&self) -> usize {
        let listed = self.sh("dmsetup ls --target crypt");
        listed.lines().filter(|line| line.contains('(')).count()
    }

    /// Whether the volume is active on this node.
    pub fn has(&self, volume: &Volume) -> bool {
        let test = format!("test -e {}", volume.device());
        self.run(&test).status.success()
    }

    pub fn write(&self, mode: Mode, volume: &Volume, page: &str) {
        let dir = pod_dir(mode, volume);
        self.sh(&format!("echo '{page}' > {dir}/page && sync {dir}/page"));
    }

    pub fn read(&self, mode: Mode, volume: &Volume) -> String {
        self.sh(&format!("cat {}/page", pod_dir(mode, volume)))
    }
}

/// A shell line that calls the driver.
pub fn line(mode: Mode, args: &[impl AsRef<str>]) -> String {
    let quoted = |arg: &_| format!("'{}'", AsRef::<str>::as_ref(arg));
    let args: Vec<_> = args.iter().map(quoted).collect();
    let exec = format!("{}/exec/kubernetes.io~lvm", top(mode));
    format!("{exec}/lvm {}", args.join(" "))
}

/// kubelet's calls that bring a volume up for a pod. The controller has attached it on another host.
pub fn up_calls(mode: Mode, volume: &Volume) -> Vec<Vec<String>> {
    let (json, device) = (volume.json(), volume.device());
    let mount = vec!["mount".to_owned(), pod_dir(mode, volume), json.clone()];
    if mode == Mode::MountOnly {
        return vec![mount];
    }
    let wait = vec!["waitforattach".to_owned(), device.clone(), json.clone()];
    let global = global_dir(mode, volume);
    vec![
        wait,
        vec!["mountdevice".to_owned(), global, device, json],
        mount,
    ]
}

/// kubelet's calls that take a volume from its pod.
pub fn down_calls(mode: Mode, volume: &Volume) -> Vec<Vec<String>> {
    let unmount = vec!["unmount".to_owned(), pod_dir(mode, volume)];
    if mode == Mode::MountOnly {
        return vec![unmount];
    }
    vec![
        unmount,
        vec!["unmountdevice".to_owned(), global_dir(mode, volume)],
    ]
}

fn top(mode: Mode) -> &'static str {
    match mode {
        Mode::Attach => "/run/attach",
        Mode::MountOnly => "/run/mount-only",
    }
}

pub fn global_dir(mode: Mode, volume: &Volume) -> String {
    let dir = "kubelet/plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts";
    format!("{}/{dir}/{}", top(mode), volume.name)
}

pub fn pod_dir(mode: Mode, volume: &Volume) -> String {
    let dir = "kubelet/pods/pod/volumes/kubernetes.io~lvm";
    format!("{}/{dir}/{}", top(mode), volume.name)
}

impl Volume {
    /// A volume of the group that does not exist yet.
    pub fn named(lv: &str) -> Self {
        Self::of("vg", lv)
    }

    /// Thin volumes, active nowhere, in a pool of their own.
    pub fn thin<const N: usize>(node: &Guest, pool: &str, lvs: [&str; N]) -> [Self; N] {
        node.sh(&format!(
            "lvcreate --yes --activate n --thinpool {pool} --size 64m vg"
        ));
        lvs.map(|lv| {
            let make = "lvcreate --yes --activate n --virtualsize 32m --thinpool";
            node.sh(&format!("{make} {pool} --name {lv} vg"));
            Self::named(lv)
        })
    }

    /// A blank volume, active nowhere. A LUKS2 header takes 16 MiB of it.
    pub fn new(node: &Guest, lv: &str) -> Self {
        let volume = Self::named(lv);
        let device = volume.device();
        // The volume may lie where a removed one was.
        node.sh(&format!(
            "set -e; lvcreate --yes --zero n --wipesignatures n --size 32m --name {lv} vg
            blkdiscard --force --zeroout {device}; lvchange -an vg/{lv}"
        ));
        volume
    }
}

/// Runs both functions at once.
pub fn at_once<T: Send>(
    one: impl FnOnce() -> T + Send,
    other: impl FnOnce() -> T + Send,
) -> [T; 2] {
    thread::scope(|scope| {
        let other = scope.spawn(other);
        [one(), other.join().unwrap()]
    })
}
