//! The kernel's table of mounts, whose paths and sources anybody on the host may choose.
#![no_main]

use std::fmt::Write;
use std::path::Path;

use driver::mount::{KubeletPath, Row, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let table = Table::parse(&text);
    assert!(table.rows().len() <= text.split('\n').count());
    let mut written = String::new();
    for row in table.rows() {
        assert_eq!(table.by_id(row.id).map(|first| first.id), Some(row.id));
        assert!(table.on_top_of(row.parent).any(|on_top| on_top == row));
        let _ = (
            KubeletPath::of(&row.mount_point),
            row.is_whole(),
            row.is_read_only(),
        );
        write(row, &mut written);
    }
    assert_eq!(Table::parse(&written), table, "{written:?}");
});

/// Writes a row as the kernel does: Linux, fs/proc_namespace.c, `show_mountinfo`.
fn write(row: &Row, to: &mut String) {
    let path = |path: &Path| -> String {
        let escape = |c: char| match c {
            ' ' | '\t' | '\n' | '\\' | '#' => format!("\\{:03o}", u32::from(c)),
            other => other.to_string(),
        };
        path.to_str().unwrap().chars().map(escape).collect()
    };
    let group =
        |name: &str, id: Option<u64>| id.map_or_else(String::new, |id| format!("{name}:{id} "));
    writeln!(
        to,
        "{} {} {} {} {} {} {}{}- {} {} {}",
        row.id,
        row.parent,
        row.device,
        path(&row.root),
        path(&row.mount_point),
        row.options,
        group("shared", row.peers),
        group("master", row.master),
        row.fs_type,
        path(&row.source),
        row.super_options
    )
    .unwrap();
}
