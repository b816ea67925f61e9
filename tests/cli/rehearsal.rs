//! Rehearsals by `check` that end before LVM is asked. The others are in `tests/guest/people/shell.rs`.

use crate::Machine;
use crate::people::prints;

#[test]
fn a_call_that_cannot_be_rehearsed_is_refused_at_once() {
    let machine = Machine::new();
    prints(&machine, &["check", "-o", "size"], "-o takes KEY=VALUE", 2);
    let two = ["check", "vg/a", "vg/b", "-o", "size=1g"];
    prints(&machine, &two, "name one volume, as VG/LV", 1);
}
