//! Finds the steps of a call by watching a call that succeeds, and stops another call at each of these steps.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use crate::prelude::*;

/// The driver's own system calls that may change something.
const OWN: &str = "mkdir,rmdir,mount,umount2,flock,unlink,unshare,setns,open_tree,move_mount";
/// System calls of tools that may change something. With other system calls, tools only read, or write to their own
/// memory.
const OF_TOOLS: &str = "pwrite64,pwritev,pwritev2,write,io_submit,fallocate,ftruncate,fsync,fdatasync,\
                        ioctl,rename,renameat,renameat2,unlink,mount,umount2,semop,semctl";
/// The ioctls that change something.
const IOCTLS: &str = "DM_DEV_CREATE DM_DEV_SUSPEND DM_DEV_REMOVE DM_TABLE_LOAD DM_TARGET_MSG BLKDISCARD BLKZEROOUT \
                      EXT4_IOC_RESIZE_FS XFS_IOC_FSGROWFSDATA BTRFS_IOC_RESIZE";
const TOOLS: &str = "lvs vgs lvchange lvcreate lvextend blkid dmsetup wipefs mkfs.ext4 mkfs.xfs \
                     mkfs.btrfs e2fsck mount resize2fs xfs_growfs btrfs cryptsetup";

fn only_reads(tool: &str) -> bool {
    matches!(tool, "lvs" | "vgs" | "blkid" | "dmsetup" | "wipefs")
}

fn is_lvm(tool: &str) -> bool {
    tool.starts_with("lv") || tool.starts_with("vg")
}

/// A place in a call where it can be cut short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Tool number `.0` of the call (`.1`) has not begun yet.
    Before(usize, String),
    /// The tool has ended, but the driver does not know.
    After(usize, String),
    /// The tool has made the system call `.2` for the `.3`th time.
    Inside(usize, String, String, usize),
    /// The driver is about to make the system call `.0` for the `.1`th time.
    OwnBefore(String, usize),
    /// The driver has made this system call.
    OwnAfter(String, usize),
}

impl Step {
    pub fn is_own(&self) -> bool {
        matches!(self, Self::OwnBefore(..) | Self::OwnAfter(..))
    }
}

/// How a call is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Kill(Victim),
    Stop(Told),
}

/// The processes that get SIGTERM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The driver and its tool, as when systemd restarts kubelet. The tool goes on, and may end by itself.
    All,
    /// The driver. Its tool hangs, and ends only when the driver kills it.
    Driver,
}

/// The processes that are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victim {
    /// The driver; a tool that it has started goes on.
    Driver,
    /// The tool; the driver sees it fail.
    Tool,
    /// Both at once, as when kubelet's cgroup is killed.
    Both,
}

/// Stand-ins for the tools of one node.
pub struct Steps {
    dir: PathBuf,
}

impl Steps {
    /// Where the node's config must look for tools.
    pub fn dir_of(name: &str) -> PathBuf {
        PathBuf::from(format!("/run/steps-{name}"))
    }

    pub fn new(name: &str) -> Self {
        let dir = Self::dir_of(name);
        fs::create_dir_all(&dir).unwrap();
        let script = dir.join("stand-in");
        fs::write(&script, include_str!("stand-in.sh")).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        for tool in TOOLS.split_whitespace() {
            // Another node of the same name has made it before.
            let _ = symlink(&script, dir.join(tool));
        }
        let steps = Self { dir };
        steps.plan("none");
        steps
    }

    /// Sets at which step the next call is stopped.
    pub fn plan(&self, plan: &str) {
        let plan = format!("{plan}\n");
        for (name, text) in [
            ("count", "0\n"),
            ("ran", ""),
            ("trace", ""),
            ("plan", &plan),
        ] {
            fs::write(self.dir.join(name), text).unwrap();
        }
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.dir.join(name)).unwrap_or_default()
    }

    /// The tools that ran since the plan was set, and their process ids.
    pub fn ran(&self) -> Vec<(String, i32)> {
        let text = self.read("ran");
        let words = text.lines().map(|line| line.split(' '));
        words
            .map(|mut words| {
                let tool = words.nth(1).unwrap().to_owned();
                (tool, words.next().unwrap().parse().unwrap())
            })
            .collect()
    }

    /// The steps of a call, found by making it twice, each time on a volume made by `make`; those
    /// inside LVM's own tools only if asked for.
    pub fn find(
        &self,
        node: &Node,
        inside_lvm: bool,
        mut make: impl FnMut() -> Vec<String>,
    ) -> Vec<Step> {
        let mut steps = Vec::new();
        let args = make();
        self.plan(&format!("all {OF_TOOLS}"));
        node.does(&words(&args));
        for (n, (tool, _)) in (1..).zip(self.ran()) {
            steps.push(Step::Before(n, tool.clone()));
            if !only_reads(&tool) && (inside_lvm || !is_lvm(&tool)) {
                let trace = self.read(&format!("trace.{n}"));
                // Until lvcreate has wiped the space, it holds somebody else's data.
                let most = if tool == "lvcreate" { 8 } else { 3 };
                for (call, times) in thin(&changes(&trace), most) {
                    steps.push(Step::Inside(n, tool.clone(), call, times));
                }
            }
            steps.push(Step::After(n, tool));
        }

        let args = make();
        self.plan("none");
        let strace = self.strace(OWN, None);
        let output = spawn(&strace, node, &args).wait_with_output().unwrap();
        assert_eq!(Reply::of(args, &output).status, "Success");
        // strace ends after the driver.
        eventually("strace ends", || self.read("trace").contains("+++ exited"));
        let trace = self.read("trace");
        for (call, times) in changes(&trace) {
            steps.push(Step::OwnBefore(call.clone(), times));
            steps.push(Step::OwnAfter(call, times));
        }
        steps
    }

    fn strace(&self, calls: &str, inject: Option<String>) -> Vec<String> {
        let trace = self.dir.join("trace").display().to_string();
        let mut args = ["strace", "-D", "-o", &trace, "-e"]
            .map(str::to_owned)
            .to_vec();
        args.push(format!("trace={calls}"));
        if let Some(inject) = inject {
            args.extend(["-e".to_owned(), format!("inject={inject}")]);
        }
        args
    }

    /// Makes a call whose tool stops at this step. If the step is the driver's own, the driver gets `own` there.
    fn begin(&self, node: &Node, args: &[String], step: &Step, own: &str) -> Child {
        let (plan, inject) = match step {
            Step::Before(n, _) => (format!("{n} before"), None),
            Step::After(n, _) => (format!("{n} after"), None),
            Step::Inside(n, _, call, times) => (format!("{n} {call}:{times}"), None),
            Step::OwnBefore(call, times) | Step::OwnAfter(call, times) => {
                ("none".into(), Some((call, times)))
            }
        };
        self.plan(&plan);
        let wrapper = inject.map_or_else(Vec::new, |(call, times)| {
            self.strace(call, Some(format!("{call}:signal={own}:when={times}")))
        });
        spawn(&wrapper, node, args)
    }

    /// The tool that has stopped at this step.
    fn tool_at(&self, step: &Step) -> Option<Pid> {
        match step {
            Step::Before(n, _) | Step::After(n, _) | Step::Inside(n, ..) => {
                let ran = self.ran();
                ran.get(n - 1).map(|(_, pid)| Pid::from_raw(*pid))
            }
            Step::OwnBefore(..) | Step::OwnAfter(..) => None,
        }
    }

    /// Makes a call, and tells it to stop at this step.
    pub fn stop(&self, node: &Node, args: &[String], step: &Step, told: Told) -> Cut {
        let mut driver = self.begin(node, args, step, "TERM");
        let is_reached = step.is_own() || self.wait_for_stop(&mut driver, step);
        let began = Instant::now();
        if let Some(tool) = self.tool_at(step).filter(|_| is_reached) {
            let pid = Pid::from_raw(driver.id().cast_signed());
            kill(pid, Signal::SIGTERM).unwrap();
            if told == Told::All {
                killpg(tool, Signal::SIGTERM).unwrap();
                killpg(tool, Signal::SIGCONT).unwrap();
            }
        }
        let output = driver.wait_with_output().unwrap();
        let reply = Reply::of(args, &output);
        if !is_reached {
            return Cut::Missed(reply);
        }
        let took = began.elapsed().as_secs();
        assert!(step.is_own() || took < 10, "{took} s: {reply:?}");
        Cut::Answered(reply)
    }

    /// Makes a call, stops it at this step, and kills there.
    pub fn cut(&self, node: &Node, args: &[String], step: &Step, victim: Victim) -> Cut {
        let own = match step {
            Step::OwnBefore(..) => "KILL",
            _ => "STOP",
        };
        let mut driver = self.begin(node, args, step, own);
        if !self.wait_for_stop(&mut driver, step) {
            let output = driver.wait_with_output().unwrap();
            return Cut::Missed(Reply::of(args, &output));
        }
        let pid = Pid::from_raw(driver.id().cast_signed());
        let Some(tool) = self.tool_at(step) else {
            let _ = kill(pid, Signal::SIGKILL);
            driver.wait().unwrap();
            return Cut::Killed;
        };
        match victim {
            Victim::Tool => {
                killpg(tool, Signal::SIGKILL).unwrap();
                let output = driver.wait_with_output().unwrap();
                return Cut::Answered(Reply::of(args, &output));
            }
            Victim::Driver | Victim::Both => {
                // First the driver is stopped, so that it does not see its tool die. And the tool
                // must not be stopped when the driver dies: then the kernel would hang it up.
                kill(pid, Signal::SIGSTOP).unwrap();
                eventually("the driver is stopped", || is_stopped(pid));
                let signal = match victim {
                    Victim::Both => Signal::SIGKILL,
                    _ => Signal::SIGCONT,
                };
                killpg(tool, signal).unwrap();
                kill(pid, Signal::SIGKILL).unwrap();
                driver.wait().unwrap();
            }
        }
        Cut::Killed
    }

    /// Waits until the step is reached. `false`: the call ended without it.
    fn wait_for_stop(&self, driver: &mut Child, step: &Step) -> bool {
        let mut reached = false;
        eventually("the call stops or ends", || {
            let ended = driver.try_wait().unwrap();
            reached = match step {
                Step::Before(n, _) | Step::After(n, _) => {
                    let tool = self.ran().get(n - 1).map(|(_, pid)| Pid::from_raw(*pid));
                    tool.is_some_and(is_stopped)
                }
                Step::Inside(..) | Step::OwnAfter(..) => {
                    self.read("trace").contains("--- stopped by SIGSTOP ---")
                }
                // strace itself was killed.
                Step::OwnBefore(..) => {
                    ended.is_some_and(|status| status.signal() == Some(Signal::SIGKILL as i32))
                }
            };
            reached || ended.is_some()
        });
        reached
    }

    /// Kills the processes that a call of a failed test has left.
    pub fn kill_all(&self) {
        for (_, pid) in self.ran() {
            let _ = killpg(Pid::from_raw(pid), Signal::SIGKILL);
        }
        self.plan("none");
    }

    /// Waits until every tool that was started has ended, also those whose driver was killed.
    pub fn wait_for_orphans(tools: &[(String, i32)]) {
        for (tool, pid) in tools {
            eventually(&format!("{tool} ends"), || {
                state(Pid::from_raw(*pid)).is_none_or(|state| state == 'Z')
            });
        }
    }
}

/// The end of a call that was to be cut short.
pub enum Cut {
    /// The driver was killed.
    Killed,
    /// A tool was killed, and the driver answered with this reply.
    Answered(Reply),
    /// The call ended with this reply, and did not come to the step.
    Missed(Reply),
}

/// The changing system calls in a trace, each with how often it was made by then.
fn changes(trace: &str) -> Vec<(String, usize)> {
    let mut counts = std::collections::BTreeMap::<&str, usize>::new();
    let mut changes = Vec::new();
    for line in trace.lines() {
        // With several processes or threads, the id of one comes first.
        let Some((words, rest)) = line.split_once('(') else {
            continue;
        };
        let call = words.rsplit(' ').next().unwrap_or(words);
        let times = counts.entry(call).or_default();
        *times += 1;
        let counts = match call {
            // Its output to the driver or the terminal changes nothing.
            _ if call.contains(['-', '+', '=']) => false,
            "write" => !rest.starts_with("1,") && !rest.starts_with("2,"),
            "ioctl" => IOCTLS.split(' ').any(|name| rest.contains(name)),
            _ => true,
        };
        if counts {
            changes.push((call.to_owned(), *times));
        }
    }
    changes
}

/// Keeps so many changes of each kind, spread from the first to the last.
fn thin(changes: &[(String, usize)], most: usize) -> Vec<(String, usize)> {
    let mut kept = Vec::new();
    for (call, times) in changes {
        let alike: Vec<usize> = changes
            .iter()
            .filter(|(other, _)| other == call)
            .map(|(_, times)| *times)
            .collect();
        let last = alike.len() - 1;
        let chosen = (0..most).map(|n| alike[n * last / (most - 1)]);
        if chosen.into_iter().any(|n| n == *times) {
            kept.push((call.clone(), *times));
        }
    }
    kept
}

/// Starts the driver, under the command in `wrapper` if there is one.
#[allow(clippy::disallowed_methods)]
fn spawn(wrapper: &[String], node: &Node, args: &[String]) -> Child {
    let exe = node.exe().display().to_string();
    let words = [wrapper, &[exe], args].concat();
    Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

pub fn words(args: &[String]) -> Vec<&str> {
    args.iter().map(String::as_str).collect()
}

/// The state of a process, as in proc(5): R, S, D, T, t, Z. `None`: there is no such process.
fn state(pid: Pid) -> Option<char> {
    let stat = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

fn is_stopped(pid: Pid) -> bool {
    matches!(state(pid), Some('T' | 't'))
}
