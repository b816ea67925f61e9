//! Calls that come at once, in a group of which a part is to stay free.

use std::fs;

use super::World;
use crate::life::player::Ill;
use crate::prelude::*;

const MIB: u64 = 1 << 20;
/// The group, which has extents of 4 MiB.
const SIZE: u64 = 60 * MIB;
const RESERVE: u64 = 24 * MIB;
/// Pods that want a new volume of this size, of which not all find room.
const PODS: usize = 4;
const NEW: u64 = 16 * MIB;
/// Pods that have a volume of this size and want so much more, of which one finds room.
const GROWING: usize = 2;
const HAVE: u64 = 12 * MIB;
const MORE: u64 = 8 * MIB;

impl World {
    fn crowds_group(&self) -> String {
        format!("life{}g2", self.number)
    }

    pub(super) fn crowds_policy(&self) -> String {
        format!(
            "[volume_group.{}]\ncreate = true\nreserve = \"{RESERVE}b\"\n",
            self.crowds_group()
        )
    }

    pub(super) fn crowd(&mut self, grow: bool) {
        if self.ill.contains(&Ill::Gone) || self.pool_scarred {
            return;
        }
        let (node, attach) = (&self.node, self.attach);
        let group = Group::of_size(&self.crowds_group(), SIZE);
        let (count, more) = if grow { (GROWING, MORE) } else { (PODS, NEW) };
        let volume =
            |n: usize| Volume::new(&group, &format!("crowd{n}")).with("size", &format!("{NEW}b"));
        let pod = |n: usize| format!("crowd{n}");
        if grow {
            for n in 0..count {
                group.linear(&format!("crowd{n}"), &format!("{HAVE}b"));
                node.up(&pod(n), &volume(n));
            }
        }
        let call = |n: usize| match (grow, attach) {
            (true, _) => node.grow(&pod(n), &volume(n), HAVE + MORE),
            (false, true) => node.call(&["attach", &volume(n).json(), &host_name()]),
            (false, false) => node.mount(&pod(n), &volume(n)),
        };
        let call = &call;
        let replies: Vec<Reply> = std::thread::scope(|scope| {
            let calls: Vec<_> = (0..count).map(|n| scope.spawn(move || call(n))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let free = run(
            "vgs",
            &[
                "--noheadings",
                "--nosuffix",
                "--units",
                "b",
                "-o",
                "vg_free",
                &group.name,
            ],
        );
        let free: u64 = free.parse().unwrap();
        assert!(free >= RESERVE, "{free} bytes are left: {replies:?}");
        let refused = replies.iter().filter(|reply| reply.status != "Success");
        let refused: Vec<&Reply> = refused.collect();
        for reply in &refused {
            reply.is_failure(&["of which the node's config keeps"]);
        }
        let room = free - RESERVE >= more;
        assert!(
            refused.is_empty() || !room,
            "{free} bytes are left: {replies:?}"
        );
        assert!(refused.len() < count, "{replies:?}");
        for (n, reply) in replies.iter().enumerate() {
            let dir = node.pod_dir(&pod(n), &volume(n));
            if grow || !attach && reply.status == "Success" {
                node.down(&pod(n), &volume(n));
            } else {
                let _ = fs::remove_dir(dir);
            }
            if grow {
                node.down_globally(&volume(n));
            }
        }
        self.tally.crowd += count;
        self.tally.reserved += refused.len();
    }
}
