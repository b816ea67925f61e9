//! Taking the driver off a node.

use crate::plugin_dir::{OURS, PluginDir, SCRIPT, driver, same, says};
use crate::support::needs_root;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

#[test]
fn everything_goes_and_it_can_be_repeated() {
    let node = PluginDir::new();
    for _ in 0..2 {
        node.uninstall().success().stdout(says("nothing"));
        node.install(&driver(), &[]).success();
        node.uninstall().success().stdout(says("removed"));
        assert!(node.names().is_empty(), "{:?}", node.names());
    }
    fs::remove_dir(node.plugins()).unwrap();
    node.uninstall().success().stdout(says("there is no"));
    assert!(!node.plugins().exists());
}

#[test]
fn a_link_comes_back_as_a_link() {
    let node = PluginDir::running(SCRIPT);
    fs::rename(node.exe(), node.path("elsewhere")).unwrap();
    symlink("../../elsewhere", node.exe()).unwrap();
    for name in ["a", "b"] {
        node.install(&node.driver(name, OURS), &[]).success();
        assert!(!node.exe().is_symlink());
    }
    node.uninstall().success().stdout(says("restored"));
    let target = fs::read_link(node.exe()).unwrap();
    assert_eq!(target, Path::new("../../elsewhere"));
}

#[test]
fn an_edited_config_is_kept_and_the_next_installation_takes_it() {
    const MINE: &str = "attach = false # mine\n";
    needs_root!();
    for node in [PluginDir::new(), PluginDir::running(SCRIPT)] {
        let driver = node.driver("a", OURS);
        node.install(&driver, &["--attach", "false"]).success();
        fs::write(node.config(), MINE).unwrap();
        for _ in 0..2 {
            node.uninstall()
                .success()
                .stdout(says("which the next installation takes"));
            assert!(!node.config().exists());
            assert_eq!(node.kept_text(), MINE);
            node.refuses(
                &driver,
                &["--attach", "true"],
                "lvm.config.toml says attach = false",
            );
            assert!(!node.config().exists());
            node.installs(&driver, &[], "lvm.config.toml, attach = false");
            assert_eq!(fs::read_to_string(node.config()).unwrap(), MINE);
            assert!(!node.kept_config().exists());
        }
    }
}

#[test]
fn a_directory_that_holds_other_files_stays() {
    let node = PluginDir::new();
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.dir().join("notes"), "").unwrap();
    node.uninstall()
        .code(1)
        .stderr(says("notes was not put there"));
    assert!(node.exe().exists() && node.config().exists());
}

#[test]
fn it_is_refused_while_volumes_are_mounted_and_in_a_container() {
    let pods = "pods/1234/volumes/kubernetes.io~lvm/data";
    let global = "plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data";
    let mounted = "are mounted; delete their pods";
    for (options, mount, place, words) in [
        ("-rm", "tmpfs none", pods, mounted),
        ("-rm", "tmpfs none", global, mounted),
        ("-rmpf", "proc proc", "/proc", "runs in a container"),
    ] {
        let node = PluginDir::new();
        node.install(&node.driver("a", OURS), &[]).success();
        let target = node.path(place);
        fs::create_dir_all(&target).unwrap();
        let script = format!(
            "mount -t {mount} '{}' || exit 77; exec '{}' uninstall --plugin-dir '{}'",
            target.display(),
            driver().display(),
            node.plugins().display()
        );
        let output = PluginDir::in_namespace(options, &script);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains(words), "{text}");
        assert!(node.exe().exists());
    }
}

#[test]
fn only_this_driver_is_removed() {
    let any_program = PluginDir::running(SCRIPT);
    crate::support::put(&any_program.exe(), fs::read("/bin/true").unwrap());
    let replaced = PluginDir::new();
    replaced.install(&replaced.driver("a", OURS), &[]).success();
    fs::rename(replaced.driver("script", SCRIPT), replaced.exe()).unwrap();
    for node in [&PluginDir::running(SCRIPT), &any_program, &replaced] {
        let before = (fs::read(node.exe()).unwrap(), node.names());
        node.uninstall()
            .code(1)
            .stderr(says("lvm is not this driver; move it away, then try again"));
        assert_eq!((fs::read(node.exe()).unwrap(), node.names()), before);
    }
    fs::remove_file(replaced.exe()).unwrap();
    replaced.uninstall().success();
    assert!(replaced.names().is_empty());

    let moved = PluginDir::running(SCRIPT);
    moved.install(&moved.driver("a", OURS), &[]).success();
    fs::rename(moved.driver("other", SCRIPT), moved.exe()).unwrap();
    moved.uninstall().code(1);
    fs::remove_file(moved.exe()).unwrap();
    moved.uninstall().success();
    assert!(same(&moved.exe(), &moved.path("before")));
}

#[test]
fn a_name_for_people_comes_and_goes_with_the_driver() {
    let node = PluginDir::new();
    let local = node.path("local");
    let prefix = ["--prefix", local.to_str().unwrap()];
    let link = local.join("sbin/flexvolume-lvm");
    let run = |command: &str, more: &[&str]| {
        let mut args = node.argv(command);
        args.extend(prefix.iter().chain(more).map(Into::into));
        let mut command = assert_cmd::Command::new(&args[0]);
        command.args(&args[1..]).assert()
    };
    run("install", &[]).success();
    assert!(!link.is_symlink(), "nobody asked for it");
    for _ in 0..2 {
        run("install", &["--link"]).success().stdout(says("linked"));
        assert_eq!(fs::read_link(&link).unwrap(), node.exe());
    }
    let version = assert_cmd::Command::new(&link).arg("--version").assert();
    version.success().stdout(says("flexvolume-lvm "));
    run("uninstall", &[]).success();
    assert!(!link.is_symlink() && fs::read_dir(&local).unwrap().count() == 1);
    // Somebody else's stays, a file or a link.
    for (is_file, words) in [
        (true, "nothing was changed: "),
        (false, "does not lead to this driver"),
    ] {
        let _ = fs::remove_file(&link);
        if is_file {
            fs::write(&link, "theirs").unwrap();
        } else {
            symlink("elsewhere", &link).unwrap();
        }
        run("install", &["--link"]).failure().stderr(says(words));
        assert!(!node.exe().exists());
        run("uninstall", &[]).success();
        let left = if is_file {
            fs::read_to_string(&link).unwrap().into()
        } else {
            fs::read_link(&link).unwrap()
        };
        assert_eq!(
            left,
            Path::new(if is_file { "theirs" } else { "elsewhere" })
        );
    }
    // The link has no place: what was done is printed.
    fs::remove_dir_all(local.join("sbin")).unwrap();
    fs::write(local.join("sbin"), "").unwrap();
    let half = run("install", &["--link"])
        .code(1)
        .stdout(says("installed"));
    half.stderr(says("the driver is installed, and has no link for people"));
}
