//! The Debian package, with the dpkg of the guest's own Debian. The directory `FLEXVOLUME_LVM_PACKAGES` has the
//! package, and one of an older version.

use std::fs;
use std::path::{Path, PathBuf};

use crate::prelude::*;

const PLUGINS: &str = "/usr/libexec/kubernetes/kubelet-plugins/volume/exec";
const DEFAULTS: &str = "/etc/default/flexvolume-lvm";
/// It answers to `init` as the bash script does, and knows no `--version`.
const SCRIPT: &str = "#!/bin/sh\n[ \"$1\" = init ] || exit 1; echo '{\"status\": \"Success\"}'\n";
const MUTE: &str = "#!/bin/sh\nexit 1\n";

/// A Debian that dpkg may write to. A guest has its files to read only, so what is unpacked goes into memory
/// before them, beside links to what is there: an overlay of Linux 5.10 would open no file of the guest's.
struct Debian;

const WRITABLE: &str = r"
for dir in /usr/libexec /usr/sbin /usr/share /usr/lib/systemd; do
    mkdir -p /run/packages$dir
    mount --bind $dir /run/packages$dir
    mount -t tmpfs -o mode=755 tmpfs $dir
    ln -s /run/packages$dir/* $dir/
done
rm -f /usr/libexec/kubernetes /usr/lib/systemd/system /usr/share/{bash-completion,doc,fish,lintian,man,zsh}
mkdir /usr/lib/systemd/system
ln -s /run/packages/usr/lib/systemd/system/* /usr/lib/systemd/system/
for dir in /etc /var; do
    [ ! -w $dir ] || continue
    mkdir -p /run/packages/{new,work}$dir
    mount -t overlay overlay -o lowerdir=$dir,upperdir=/run/packages/new$dir,workdir=/run/packages/work$dir $dir
done";
const AS_BEFORE: &str = r"
for dir in /usr/libexec /usr/sbin /usr/share /usr/lib/systemd; do
    umount --lazy $dir /run/packages$dir
done
for dir in /etc /var; do
    [ ! -e /run/packages/new$dir ] || umount --lazy $dir
done
rm -rf /run/packages";

impl Debian {
    fn new() -> Self {
        run("bash", &["-euc", WRITABLE]);
        fs::create_dir("/run/packages/linked").unwrap();
        crate::support::put(Path::new("/run/packages/linked/flexvolume-lvm"), MUTE);
        Self
    }

    /// Runs dpkg. Returns whether it succeeded, and what it and the package's scripts said.
    fn tries(args: &[&str]) -> (bool, String) {
        let mut dpkg = assert_cmd::Command::new("dpkg");
        // As where `install --link` has made that name in /usr/local.
        let first = format!("/run/packages/linked:{}", std::env::var("PATH").unwrap());
        // As apt-get -y runs it: nobody answers.
        dpkg.args(args).env("PATH", first).write_stdin("");
        let output = dpkg.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    }

    fn dpkg(args: &[&str]) -> String {
        let (done, said) = Self::tries(args);
        assert!(done, "dpkg {args:?}: {said}");
        said
    }

    /// Runs dpkg, which must fail and say this.
    fn fails(args: &[&str], words: &str) {
        let (done, said) = Self::tries(args);
        let fails_so = !done && said.contains(words);
        assert!(fails_so, "dpkg {args:?}: {done} {said}");
    }

    fn installs(package: &Path) -> String {
        Self::dpkg(&["--install", text(package)])
    }

    /// dpkg's state of the package, such as `install ok installed`.
    fn status() -> String {
        let mut query = assert_cmd::Command::new("dpkg-query");
        query.args(["-W", "-f", "${Status}", "flexvolume-lvm"]);
        String::from_utf8(query.output().unwrap().stdout).unwrap()
    }
}

impl Drop for Debian {
    fn drop(&mut self) {
        let _ = Self::tries(&["--purge", "flexvolume-lvm"]);
        run("bash", &["-euc", AS_BEFORE]);
    }
}

/// The package of this version (`new`) or of an older one (`old`).
fn package(version: &str) -> PathBuf {
    let packages = std::env::var("FLEXVOLUME_LVM_PACKAGES").unwrap();
    let names = fs::read_dir(Path::new(&packages).join(version)).unwrap();
    let mut names = names.map(|entry| entry.unwrap().path());
    names
        .find(|path| path.extension().unwrap() == "deb")
        .unwrap()
}

/// The version that the driver of the node says it is.
fn version(node: &Node) -> String {
    run(text(&node.exe()), &["--version"])
}

/// Puts a driver of somebody else's in the driver's place.
fn other_driver(plugins: &Path, script: &str) -> PathBuf {
    let exe = plugins.join("kubernetes.io~lvm/lvm");
    fs::create_dir_all(exe.parent().unwrap()).unwrap();
    crate::support::put(&exe, script);
    exe
}

/// Everything in a directory, and what files hold.
fn tree(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let listed = run("find", &[text(dir), "-type", "f"]);
    let mut files: Vec<_> = listed.lines().map(PathBuf::from).collect();
    files.sort();
    let held = files
        .into_iter()
        .map(|file| (file.clone(), fs::read(file).unwrap()));
    held.collect()
}

#[test]
fn a_pod_keeps_its_volume_while_the_package_is_upgraded_and_downgraded() {
    let _debian = Debian::new();
    let (_group, volume) = Group::with_data("packaged");
    let (old, new) = (package("old"), package("new"));
    let plugins = Path::new(PLUGINS);
    let script = other_driver(plugins, SCRIPT);
    let before = tree(plugins);
    let mut node = Node::without_driver(Mode::Attach, plugins);

    let said = Debian::installs(&old);
    assert!(said.contains("init says Success, attach = true"), "{said}");
    assert!(said.contains(".lvm.original, the driver before"), "{said}");
    let timer = "flexvolume-lvm-metrics.timer";
    assert!(Path::new("/usr/lib/systemd/system").join(timer).exists());
    assert_eq!(run("find", &["/etc/systemd", "-name", timer]), "");
    let older = version(&node);
    node.configure(Mode::Attach, "# mine");
    let config = fs::read(node.exe().with_file_name("config.toml")).unwrap();
    let dir = node.up("a", &volume);
    write_synced(&dir.join("page"), "of the older version");

    // The older one has mounted, the newer one unmounts.
    Debian::installs(&new);
    let newer = version(&node);
    assert_ne!(older, newer);
    assert_eq!(run("flexvolume-lvm", &["--version"]), newer);
    // kubelet calls the driver by its path, and a person by the command.
    sh(
        "lvcreate -qq -y -n held -L 8m --addtag flexvolume.fs=ext4:7f6b1e88-0c5e-4d34-9d2c-3f8a6c1b2a10 packaged",
    );
    let check = format!("{} check packaged/held || :", text(&node.exe()));
    let said = run("bash", &["-c", &check]);
    let allows = "`flexvolume-lvm allow-format packaged/held`";
    assert!(said.contains(allows), "{said}");
    sh("lvremove -qq -y packaged/held");
    assert_eq!(read(&dir.join("page")), "of the older version");
    Debian::fails(
        &["--remove", "flexvolume-lvm"],
        "volumes of kubernetes.io/lvm are mounted; delete their pods first",
    );
    assert_eq!(Debian::status(), "deinstall ok installed");
    assert_eq!(version(&node), newer);
    node.down("a", &volume);
    node.up("b", &volume);

    Debian::installs(&old);
    assert_eq!(version(&node), older);
    assert_eq!(
        read(&node.pod_dir("b", &volume).join("page")),
        "of the older version"
    );
    node.all_down(&["b"], &volume);
    Debian::installs(&new);
    assert_eq!(
        fs::read(node.exe().with_file_name("config.toml")).unwrap(),
        config
    );

    let metrics = Path::new("/var/lib/prometheus/node-exporter/flexvolume-lvm.prom");
    fs::create_dir_all(metrics.parent().unwrap()).unwrap();
    fs::write(metrics, "").unwrap();
    Debian::dpkg(&["--remove", "flexvolume-lvm"]);
    assert!(!metrics.exists());
    assert_eq!(fs::read_to_string(&script).unwrap(), SCRIPT);
    let kept = Path::new("/var/lib/flexvolume-lvm/config.toml");
    assert_eq!(fs::read(kept).unwrap(), config);
    assert_eq!(tree(plugins), before);
    // The next installation takes it.
    Debian::installs(&new);
    assert_eq!(
        fs::read(node.exe().with_file_name("config.toml")).unwrap(),
        config
    );
    Debian::dpkg(&["--remove", "flexvolume-lvm"]);
    assert!(kept.exists());
    Debian::dpkg(&["--purge", "flexvolume-lvm"]);
    assert_eq!(tree(plugins), before);
    // Below /var/lib/kubelet are the mounts of other tests.
    let left = "find /etc /usr/lib/systemd /usr/libexec /usr/sbin /usr/share /var/lib \
        -path /var/lib/kubelet -prune -o -name flexvolume* -print";
    assert_eq!(sh(left), "");
}

#[test]
fn the_package_goes_where_its_defaults_file_says() {
    let _debian = Debian::new();
    let new = package("new");
    let plugins = Path::new("/run/plugins");
    let _ = fs::remove_dir_all(plugins);
    write_synced(Path::new(DEFAULTS), "PLUGIN_DIR=/run/plugins ATTACH=true\n");
    Debian::fails(
        &["--install", text(&new)],
        "there is no directory /run/plugins; if kubelet's --volume-plugin-dir is that, make it",
    );
    assert_eq!(Debian::status(), "install ok half-configured");
    // The package can go, and a host that was put right can go on.
    Debian::dpkg(&["--remove", "flexvolume-lvm"]);
    Debian::fails(
        &["--install", text(&new)],
        "there is no directory /run/plugins",
    );
    fs::create_dir(plugins).unwrap();
    Debian::dpkg(&["--configure", "flexvolume-lvm"]);

    let node = Node::without_driver(Mode::Attach, plugins);
    let config = node.exe().with_file_name("config.toml");
    assert!(read(&config).contains("\nattach = true\n"));
    let checked = run("flexvolume-lvm", &["check", "--config"]);
    assert!(checked.contains("/run/plugins"), "{checked}");
    // The mode of the installation counts only for a new config.
    write_synced(&config, "attach = false # mine\n");
    Debian::installs(&new);
    Debian::dpkg(&["--remove", "flexvolume-lvm"]);
    Debian::installs(&new);
    assert_eq!(read(&config), "attach = false # mine\n");
    Debian::dpkg(&["--purge", "flexvolume-lvm"]);
    assert_eq!(fs::read_dir(plugins).unwrap().count(), 0);
    fs::remove_dir(plugins).unwrap();
}
