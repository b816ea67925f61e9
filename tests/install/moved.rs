//! The driver moves to another plugin directory, and the node's config moves with it.

use crate::plugin_dir::{OURS, PluginDir, SCRIPT, driver, file, same, says};
use crate::support::put;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

const MINE: &str = "attach = true\n[volume_group.only]\n";

/// A second plugin directory of the node.
fn other(node: &PluginDir) -> PathBuf {
    let dir = node.path("other");
    fs::create_dir(&dir).unwrap();
    dir
}

#[test]
fn an_installation_elsewhere_takes_the_config_of_the_driver_that_runs_it() {
    let node = PluginDir::new();
    let dir = other(&node);
    let local = node.path("local");
    let taken = dir.join("kubernetes.io~lvm/config.toml");
    let install = |exe: PathBuf, more: &[&str]| {
        let mut command = assert_cmd::Command::new(exe);
        command.args(["install", "--plugin-dir", dir.to_str().unwrap()]);
        command.args(["--prefix", local.to_str().unwrap()]);
        command.args(more).assert()
    };
    node.installs(
        &driver(),
        &["--link", "--prefix", local.to_str().unwrap()],
        "linked",
    );
    fs::write(node.config(), MINE).unwrap();
    let refused = install(node.exe(), &["--attach", "false"]).code(1);
    let words = format!("{} says attach = true", node.config().display());
    refused.stderr(says(&words));
    assert!(!taken.exists());

    // From there, or by the name for people that leads there.
    for exe in [node.exe(), driver()] {
        let said = install(exe, &[]).success();
        let words = format!("that of {}, attach = true", node.config().display());
        said.stdout(says(&words));
        assert_eq!(fs::read_to_string(&taken).unwrap(), MINE);
        fs::remove_dir_all(dir.join("kubernetes.io~lvm")).unwrap();
    }
    // The config that `uninstall` kept is there, too.
    fs::rename(node.config(), node.kept_config()).unwrap();
    install(driver(), &[]).success();
    assert_eq!(fs::read_to_string(&taken).unwrap(), MINE);
    assert_eq!(node.kept_text(), MINE);
    fs::remove_dir_all(dir.join("kubernetes.io~lvm")).unwrap();
    // The one that is given counts more.
    let given = node.path("given.toml");
    fs::write(&given, "attach = false\n").unwrap();
    install(driver(), &["--config", given.to_str().unwrap()]).success();
    assert!(same(&taken, &given));
}

#[test]
fn of_two_configs_elsewhere_none_is_taken() {
    let (node, third) = (PluginDir::new(), PluginDir::new());
    let dir = other(&node);
    let local = node.path("local");
    let local = ["--prefix", local.to_str().unwrap()];
    node.install(&driver(), &[&["--link"], &local[..]].concat())
        .success();
    third.install(&driver(), &[]).success();
    fs::write(node.config(), MINE).unwrap();
    let mut install = assert_cmd::Command::new(third.exe());
    install.args(["install", "--plugin-dir", dir.to_str().unwrap()]);
    let refused = install.args(local).assert().code(1);
    refused.stderr(says("say which one it is to have, with --config"));
    assert_eq!(fs::read_dir(dir).unwrap().count(), 0);
}

/// The command of the packages, as root of a namespace where it may write.
const PACKAGED: &str = r#"
set -e
for dir in /usr/libexec /etc/default /var/lib; do mkdir -p $dir; mount -t tmpfs none $dir || exit 77; done
mkdir /usr/libexec/flexvolume-lvm
cp "$TOP/driver" /usr/libexec/flexvolume-lvm/lvm
F() { sh "$TOP/F" "$@"; }
set_dir() { echo "PLUGIN_DIR=$1" > /etc/default/flexvolume-lvm; }
set_dir "$TOP/exec"
"#;

/// Runs the packages' command. The script checks what the command prints.
fn packaged(node: &PluginDir, script: &str) {
    put(&node.path("driver"), fs::read(driver()).unwrap());
    fs::copy(file("install/flexvolume-lvm"), node.path("F")).unwrap();
    fs::write(node.path("mine"), MINE).unwrap();
    let top = node.path("");
    let script = format!("TOP='{}'\n{PACKAGED}{script}", top.display());
    let output = PluginDir::in_namespace("-rm", &script);
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success(), "{script}\n{said}");
}

#[test]
fn the_packages_driver_keeps_mode_and_config_wherever_it_goes() {
    let edited = "cp $TOP/mine $TOP/exec/kubernetes.io~lvm/config.toml";
    // Over the script, which comes back, and has no say in the other directory.
    for (before, change, attach) in [
        (SCRIPT, ":", true),
        (SCRIPT, edited, true),
        (OURS, edited, true),
        (OURS, ":", true),
    ] {
        let node = PluginDir::running(before);
        other(&node);
        packaged(
            &node,
            &format!(
                "F install; {change}; cp $TOP/exec/kubernetes.io~lvm/config.toml $TOP/want
                F uninstall > $TOP/said; F uninstall
                # A command that is printed is one that works.
                grep -q 'next installation takes, wherever' $TOP/said
                if grep -e --config $TOP/said; then exit 1; fi
                set_dir $TOP/other
                F install; F install
                cmp $TOP/want $TOP/other/kubernetes.io~lvm/config.toml
                F uninstall
                set_dir $TOP/exec
                F install
                cmp $TOP/want $TOP/exec/kubernetes.io~lvm/config.toml
                test ! -e /var/lib/flexvolume-lvm/config.toml"
            ),
        );
        let init = Command::new(node.exe()).arg("init").output().unwrap();
        let init = String::from_utf8(init.stdout).unwrap();
        assert!(init.contains(&format!("\"attach\":{attach}")), "{init}");
        let names = fs::read_dir(node.path("other")).unwrap().count();
        assert_eq!(names, 0, "{change}");
    }
}

#[test]
fn the_packages_driver_loses_no_config_where_there_are_two() {
    let node = PluginDir::new();
    other(&node);
    packaged(
        &node,
        "F install; cp $TOP/mine $TOP/exec/kubernetes.io~lvm/config.toml
        # Where it was put is where it has to be taken away.
        set_dir $TOP/other
        for word in install uninstall; do
            if F $word 2> $TOP/said; then exit 1; fi
            grep -q 'name the former there' $TOP/said
            F $word --help > /dev/null
        done
        set_dir $TOP/exec; F uninstall
        # Where kubelet looks is not there.
        set_dir $TOP/none
        if F install; then exit 1; fi
        cmp $TOP/mine /var/lib/flexvolume-lvm/config.toml
        # An older one was left there.
        set_dir $TOP/other
        echo 'attach = false # older' > $TOP/other/.kubernetes.io~lvm.config.toml
        F install
        cmp $TOP/mine $TOP/other/kubernetes.io~lvm/config.toml
        grep -q older /var/lib/flexvolume-lvm/config.toml.old
        # Somebody puts another one there.
        F uninstall
        mkdir $TOP/other/kubernetes.io~lvm
        echo 'attach = false # newer' > $TOP/other/kubernetes.io~lvm/config.toml
        F install
        grep -q newer $TOP/other/kubernetes.io~lvm/config.toml
        cmp $TOP/mine /var/lib/flexvolume-lvm/config.toml.old",
    );
}
