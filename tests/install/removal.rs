//! Taking the driver off a node.

use crate::node::{Node, OURS, SCRIPT, driver, same, says};
use std::fs;
use std::process::Command;

#[test]
fn an_edited_config_outlives_the_driver() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.config(), "attach = false\n# mine\n").unwrap();
    node.undo().success().stdout(says("because it was edited"));
    assert!(!node.dir().exists());
    let kept = node.path("exec/.kubernetes.io~lvm.config.toml");
    assert!(fs::read_to_string(kept).unwrap().contains("# mine"));
}

#[test]
fn undo_leaves_a_directory_that_holds_other_files() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    fs::write(node.dir().join("notes"), "").unwrap();
    node.undo().code(1).stderr(says("notes was not put there"));
    assert!(node.exe().exists() && node.config().exists());
}

#[test]
fn removal_is_refused_while_volumes_are_mounted() {
    let places = [
        "pods/1234/volumes/kubernetes.io~lvm/data",
        "plugins/kubernetes.io/flexvolume/kubernetes.io/lvm/mounts/data",
    ];
    for (place, command) in places
        .into_iter()
        .flat_map(|place| [(place, "install --undo"), (place, "uninstall")])
    {
        let node = Node::new();
        node.install(&node.driver("a", OURS), &[]).success();
        let target = node.path(place);
        fs::create_dir_all(&target).unwrap();
        let script = format!(
            "mount -t tmpfs none '{}' || exit 77; exec '{}' {command} --plugin-dir '{}'",
            target.display(),
            driver().display(),
            node.plugins().display()
        );
        let output = Command::new("unshare")
            .args(["-rm", "bash", "-c", &script])
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        // Containers often forbid unshare or the mount.
        if output.status.code() == Some(77) || text.starts_with("unshare:") {
            eprintln!("not tested here: {text}");
        } else {
            assert_eq!(output.status.code(), Some(1), "{text}");
            assert!(
                text.contains("are mounted; delete their pods first"),
                "{text}"
            );
        }
        assert!(node.exe().exists());
    }
}

#[test]
fn uninstall_takes_everything_away_and_can_be_repeated() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    node.install(&node.driver("b", OURS), &[]).success();
    node.lvm("uninstall")
        .assert()
        .success()
        .stdout(says("removed"));
    assert_eq!(fs::read_dir(node.plugins()).unwrap().count(), 0);
    node.lvm("uninstall")
        .assert()
        .success()
        .stdout(says("nothing"));
}

#[test]
fn uninstall_keeps_somebody_elses_driver_beside() {
    let node = Node::with_script();
    node.install(&node.driver("a", OURS), &[]).success();
    node.lvm("uninstall")
        .assert()
        .success()
        .stdout(says("the driver before this one"));
    assert!(!node.dir().exists());
    let kept = node.path("exec/.kubernetes.io~lvm.previous");
    assert!(same(&kept, &node.path("script")));
}

#[test]
fn removal_is_refused_in_a_container_which_cannot_see_the_mounts_of_the_host() {
    let node = Node::new();
    node.install(&node.driver("a", OURS), &[]).success();
    let output = Command::new("unshare")
        .args(["-rpf", "--mount-proc"])
        .args(node.argv("uninstall"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    if text.starts_with("unshare:") {
        eprintln!("not tested here: {text}");
    } else {
        assert!(text.contains("runs in a container"), "{text}");
    }
    assert!(node.exe().exists());
}

#[test]
fn what_is_not_this_driver_is_not_removed() {
    let refuses = |node: &Node, command: &str, name: &str| {
        let before = fs::read(node.exe()).unwrap();
        let args = command.split(' ').skip(1);
        node.lvm(command.split(' ').next().unwrap())
            .args(args)
            .assert()
            .code(1)
            .stderr(says("lvm is not this driver; move it away, then try again"));
        assert_eq!(fs::read(node.exe()).unwrap(), before, "{name}");
    };
    let script = Node::with_script();
    refuses(&script, "uninstall", "the bash script");

    let copied = Node::new();
    fs::create_dir_all(copied.dir()).unwrap();
    fs::copy("/bin/true", copied.exe()).unwrap();
    refuses(&copied, "uninstall", "any program");

    let replaced = Node::new();
    replaced.install(&replaced.driver("a", OURS), &[]).success();
    fs::rename(replaced.driver("script", SCRIPT), replaced.exe()).unwrap();
    for command in ["install --undo", "uninstall"] {
        refuses(&replaced, command, command);
        assert!(replaced.config().exists(), "{command}");
    }
    fs::remove_file(replaced.exe()).unwrap();
    replaced.lvm("uninstall").assert().success();
    assert!(!replaced.dir().exists());
}

#[test]
fn every_edited_config_is_kept_and_the_next_first_install_names_them() {
    let node = Node::new();
    let driver = node.driver("a", OURS);
    let kept = |end: &str| node.path(&format!("exec/.kubernetes.io~lvm.config.toml{end}"));
    let rounds = [
        ("first", "", "installed"),
        (
            "second",
            ".1",
            "config.toml, the edited config of an earlier installation",
        ),
        // The same text needs no second copy.
        (
            "first",
            "",
            "config.toml.1, the edited config of an earlier installation",
        ),
        (
            "third",
            ".2",
            "config.toml.1, the edited config of an earlier installation",
        ),
    ];
    for (text, end, said) in rounds {
        node.install(&driver, &[]).success().stdout(says(said));
        let text = format!("attach = false # {text}\n");
        fs::write(node.config(), &text).unwrap();
        let line = format!("{}, because it was edited", kept(end).display());
        node.lvm("uninstall").assert().success().stdout(says(&line));
        assert_eq!(fs::read_to_string(kept(end)).unwrap(), text, "{end}");
    }
    let texts = ["", ".1", ".2"].map(|end| fs::read_to_string(kept(end)).unwrap());
    assert_eq!(
        texts.map(|text| text[17..].to_owned()),
        ["first\n", "second\n", "third\n"]
    );
    assert_eq!(fs::read_dir(node.plugins()).unwrap().count(), 3);
}

#[test]
fn undo_of_an_upgrade_says_where_an_edited_config_went() {
    let node = Node::with_script();
    let driver = node.driver("a", OURS);
    let kept = node.path("exec/.kubernetes.io~lvm.config.toml");
    node.install(&driver, &["--attach", "false"]).success();
    node.undo().success();
    assert!(!kept.exists(), "nobody edited it");

    node.install(&driver, &["--attach", "false"]).success();
    fs::write(node.config(), "attach = false # mine\n").unwrap();
    let line = format!("{}, because it was edited", kept.display());
    node.undo().success().stdout(says(&line));
    assert!(fs::read_to_string(&kept).unwrap().contains("# mine"));
    assert!(!node.config().exists());
    assert!(same(&node.exe(), &node.path("script")));
}

#[test]
fn every_driver_before_this_one_is_kept() {
    let node = Node::with_script();
    let driver = node.driver("a", OURS);
    node.install(&driver, &[]).success();
    node.lvm("uninstall").assert().success();
    fs::create_dir(node.dir()).unwrap();
    fs::rename(node.driver("other", SCRIPT), node.exe()).unwrap();
    node.install(&driver, &[]).success();
    node.lvm("uninstall")
        .assert()
        .success()
        .stdout(says("lvm.previous.1, the driver before this one"));
    assert!(same(
        &node.path("exec/.kubernetes.io~lvm.previous"),
        &node.path("script")
    ));
}

#[test]
fn there_is_nothing_to_take_away_where_the_plugin_directory_does_not_exist() {
    let node = Node::new();
    node.undo().success().stdout(says("to undo: there is no"));
    node.lvm("uninstall")
        .assert()
        .success()
        .stdout(says("to remove: there is no"));
    assert!(!node.plugins().exists());
}
