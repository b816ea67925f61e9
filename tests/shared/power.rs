//! A node loses its power.

use std::time::{Duration, Instant};

use crate::prelude::*;

/// How long sanlock waits before another node gets a dead node's lock: eight times its timeout, and a minute for the
/// watchdog.
const LEASE: Duration = Duration::from_secs(84);

#[test]
fn the_other_node_gets_the_volume_when_the_lease_has_run_out_and_not_before() {
    let pair = pair();
    let (mode, volume) = (Mode::Attach, Volume::new(&pair.a, "power"));
    pair.a.up(mode, &volume).is_success();
    pair.a.write(mode, &volume, "synced");
    let sealed = Volume::new(&pair.a, "power-sealed").encrypted();
    pair.a.up(mode, &sealed).is_success();
    pair.a.write(mode, &sealed, "sealed");
    pair.b.up(mode, &volume).is_failure(&["host 1 (node-a)"]);
    // Just after a renewal: on a busy machine these come late.
    let renewed = "sanlock client status -D | grep -o renewal_last_success=.*";
    pair.a.sh(&format!(
        "was=$({renewed}); while [ \"$({renewed})\" = \"$was\" ]; do sleep 0.1; done"
    ));
    let cut = Instant::now();
    pair.a.cut_power();
    eventually("silence", || {
        let reply = pair.b.up(mode, &volume);
        reply.is_failure(&["host 1 (node-a)"]);
        reply.message.contains("gave its last sign of life")
    });
    eventually("the end of the lease", || {
        let reply = pair.b.up(mode, &volume);
        reply.status == "Success" || {
            reply.is_failure(&["vg/power"]);
            false
        }
    });
    // The lease was renewed less than three seconds before the power cut.
    let waited = cut.elapsed();
    assert!(waited + Duration::from_secs(3) > LEASE, "{waited:?}");
    println!("lease and mount took {waited:?}");
    assert_eq!(pair.b.read(mode, &volume), "synced");
    pair.b.write(mode, &volume, "from b");
    pair.b.up(mode, &sealed).is_success();
    assert_eq!(pair.b.read(mode, &sealed), "sealed");
    pair.b.down(mode, &sealed);

    pair.a.boot();
    pair.a.join();
    // sanlock looks at other nodes with its own first renewal.
    eventually("node-b is known there", || {
        let reply = pair.a.up(mode, &volume);
        reply.is_failure(&["vg/power"]);
        reply.message.contains("host 2 (node-b)")
    });
    pair.b.down(mode, &volume);
    pair.a.up(mode, &volume).is_success();
    assert_eq!(pair.a.read(mode, &volume), "from b");

    // And now both.
    pair.a.write(mode, &volume, "before");
    pair.a.cut_power();
    pair.b.cut_power();
    at_once(|| pair.a.boot(), || pair.b.boot());
    at_once(|| pair.a.join(), || pair.b.join());
    pair.b.up(mode, &volume).is_success();
    assert_eq!(pair.b.read(mode, &volume), "before");
    pair.b.down(mode, &volume);
}
