//! The output of lvs. Everyone who may change the volume group may have set the tags in it.
#![no_main]

use driver::lvm::{Record, Report};
use driver::names::LvId;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|report: &[u8]| {
    let volumes = match Report::parse(report).map(|report| report.volumes("lv")) {
        Ok(Ok(volumes)) => volumes,
        Ok(Err(reason)) => return assert!(!reason.is_empty()),
        Err(_) => return,
    };
    for volume in volumes {
        let id = &volume.id;
        assert_eq!(LvId::parse(&id.to_string()).unwrap(), *id);
        assert_eq!(LvId::from_dm_name(&id.dm_name()).as_ref(), Some(id));
        let record = &volume.record;
        assert_eq!(
            &Record::parse(record.tags.iter().map(String::as_str)),
            record
        );
        // These become operands of --deltag.
        assert!(
            record
                .content_tags()
                .all(|tag| tag.starts_with("flexvolume."))
        );
    }
});
