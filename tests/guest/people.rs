//! What people have beside the call-outs: completion, a rehearsal, columns, the journal.

use crate::prelude::*;

#[test]
fn anybody_completes_the_names_of_active_volumes() {
    let node = Node::new(Mode::MountOnly);
    let group = Group::new("typed");
    for lv in ["data-1", "db", "off"] {
        group.linear(lv, "32m");
    }
    group.pool();
    group.thin("thin", "1g");
    group.lv("lvchange", &["-an"], "off");
    let exe = node.exe();
    let fits = |words: &[&str]| {
        let mut nobody = assert_cmd::Command::new("setpriv");
        nobody.args([
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            text(&exe),
        ]);
        nobody
            .args(["complete", "--", "flexvolume-lvm"])
            .args(words);
        let output = nobody.output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{output:?}"
        );
        let lines = String::from_utf8(output.stdout).unwrap();
        lines
            .lines()
            .map(|line| line.trim_end().to_owned())
            .collect::<Vec<_>>()
    };
    let volumes = ["typed/data-1", "typed/db", "typed/thin"];
    assert_eq!(fits(&["adopt", "typed/"]), volumes);
    assert_eq!(
        fits(&["status", "typed"]),
        [&["typed"][..], &volumes].concat()
    );
    assert_eq!(fits(&["check", "typed/db", "typed/da"]), volumes[..1]);
    assert_eq!(
        fits(&["mount", "/mnt", "-o", "volumegroup=ty"]),
        ["volumegroup=typed"]
    );
    assert_eq!(
        fits(&["mount", "-o", "volumeID=d"]),
        ["volumeID=data-1", "volumeID=db"]
    );
    assert_eq!(
        fits(&["waitforattach", "/dev/mapper/typed-t"]),
        ["/dev/mapper/typed-thin"]
    );
    // As is a config, which needs no LVM.
    node.prints(&["config", "check"], "has no mistakes", 0);
}
