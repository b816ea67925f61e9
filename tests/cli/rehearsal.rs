//! Rehearsals by `check` that end before LVM is asked. The others are in `tests/guest/people/shell.rs`.

use std::fs;

use crate::Machine;
use crate::people::prints;

#[test]
fn a_call_that_cannot_be_rehearsed_is_refused_at_once() {
    let machine = Machine::new();
    let file = machine.path("pod.yaml");
    let path = file.to_str().unwrap();
    prints(
        &machine,
        &["check", "vg/x", "-f", path],
        "cannot be used with",
        2,
    );
    prints(&machine, &["check", "-o", "size"], "-o takes KEY=VALUE", 2);
    prints(
        &machine,
        &["check", "-f", path],
        "pod.yaml: No such file",
        1,
    );
    fs::write(
        &file,
        "kind: Pod\nspec: {volumes: [{name: a, emptyDir: {}}]}\n",
    )
    .unwrap();
    prints(
        &machine,
        &["check", "-f", path],
        "pod.yaml has no flexVolume of a driver",
        1,
    );
    fs::write(&file, "a: [\n").unwrap();
    prints(&machine, &["check", "-f", path], "pod.yaml: line ", 1);
}
