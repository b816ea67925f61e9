//! Taking the driver off a node.

use crate::node::{Node, OURS, driver, same, says};
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
