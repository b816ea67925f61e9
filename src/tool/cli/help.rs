//! Examples and exit codes of the commands. They are printed below the options in `--help` and in man pages.
//!
//! Lines have at most 80 characters, since clap does not wrap indented lines. A line has two columns, with two spaces
//! between them, or the second column is on the next line. `xtask` makes man pages from this form.

/// The exit codes of each command whose own text below has none.
pub const EXIT_CODES: &str = "

Exit codes:
  0  done
  1  it failed, or you said no; what was done before that is printed
  2  the command line is wrong, or only root may do that";

pub const STATUS: &str = "\
Examples:
  flexvolume-lvm status                 what is on this node, and who uses it
  flexvolume-lvm status vg0/data        one volume, from its disk to its pods
  flexvolume-lvm status shop/web-0      the volumes of a pod
  flexvolume-lvm status -x              only what is unwell

Exit codes:
  0  done; with -x: all is well
  1  it failed; with -x: something is unwell
  2  the command line is wrong, or only root may do that";

pub const LOG: &str = "\
Examples:
  flexvolume-lvm log --failed --since 1h    what failed in this hour, and why
  flexvolume-lvm log vg0/data               the calls about one volume
  journalctl -t flexvolume-lvm -f           new calls, as they come

Exit codes:
  0  done
  1  it failed, or no such call about the name is in the log
  2  the command line is wrong";

pub const CHECK: &str = "\
Examples:
  flexvolume-lvm check                      would every volume mount?
  flexvolume-lvm check vg0/data --fs xfs    would a pod that wants xfs have it?
  flexvolume-lvm check -o volumegroup=vg0 -o volumeID=new -o size=1g
      would a pod with these options have it?
  flexvolume-lvm check --config NEW.toml    the first mistake in a config
  flexvolume-lvm check --idle vg0/data      does anything use it?

Exit codes:
  0  every volume would mount; with --config: there is no mistake; with --idle:
     nothing uses the volume
  1  a volume would not mount, needs `e2fsck -p`, is not active, is busy, or
     has a fault, as `status -x` shows; with --config: there is a mistake;
     with --idle: something uses the volume; or it failed
  2  the command line is wrong, or only root may do that";

pub const DOCTOR: &str = "\
Examples:
  flexvolume-lvm doctor       what is wrong on this node, and what helps
  flexvolume-lvm doctor -q    nothing, if all is well

Exit codes:
  0  all is well
  1  a pod would fail, or it failed itself
  2  the command line is wrong, or only root may do that
  3  there are warnings only";

pub const EXPLAIN: &str = "\
Examples:
  flexvolume-lvm explain no-room    why, and what helps
  flexvolume-lvm explain format     what the next mount does
  flexvolume-lvm explain            all words";

pub const METRICS: &str = "\
Examples:
  flexvolume-lvm metrics    the metrics, on standard output
  flexvolume-lvm metrics --textfile /var/lib/prometheus/node-exporter
      the same as flexvolume-lvm.prom in that directory, in one step";

pub const ADOPT: &str = "\
Examples:
  flexvolume-lvm adopt vg0/data    the next mount takes the filesystem there";

pub const ALLOW_FORMAT: &str = "\
Examples:
  flexvolume-lvm allow-format vg0/data          asks first
  flexvolume-lvm allow-format --yes vg0/data    for scripts";

pub const INSTALL: &str = "\
Examples:
  ./lvm install --link    this driver, and the command flexvolume-lvm
  ./lvm install --plugin-dir /var/lib/kubelet/volumeplugins
      where kubelet has this --volume-plugin-dir
  ./lvm install --attach true    on a new node, in the mode of the bash script";

pub const UNINSTALL: &str = "\
Examples:
  flexvolume-lvm uninstall    the driver that was there before is put back";
