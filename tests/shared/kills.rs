//! A call is killed at one of its steps. Then it is repeated, or its pod has gone and kubelet makes the
//! call that ends it. Afterwards the other node can have the volume, with its data.
//!
//! A run takes a sample of the steps, which `FLEXVOLUME_LVM_SEED` chooses;
//! `tests/run.sh --full shared` takes all.

use std::env::{var, var_os};
use std::time::SystemTime;

use crate::pair::{Guest, line};
use crate::prelude::*;

/// How many steps of each call a sample takes.
const SAMPLE: usize = 1;

const STEPS: &str = "/run/steps";

/// A call that is killed.
struct Scene {
    mode: Mode,
    call: &'static str,
    /// It brings the volume up, and does not take it off.
    is_up: bool,
    /// It makes the volume.
    makes: bool,
}

impl Scene {
    const fn new(mode: Mode, call: &'static str, is_up: bool, makes: bool) -> Self {
        Self {
            mode,
            call,
            is_up,
            makes,
        }
    }
}

const SCENES: [Scene; 6] = [
    Scene::new(Mode::MountOnly, "mount", true, false),
    Scene::new(Mode::MountOnly, "mount", true, true),
    Scene::new(Mode::MountOnly, "unmount", false, false),
    Scene::new(Mode::Attach, "waitforattach", true, false),
    Scene::new(Mode::Attach, "mountdevice", true, false),
    Scene::new(Mode::Attach, "unmountdevice", false, false),
];

#[test]
fn a_call_killed_at_any_step_leaves_the_volume_to_the_other_node() {
    let pair = pair();
    let now = SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let seed = var("FLEXVOLUME_LVM_SEED").map_or(now, |seed| seed.parse().unwrap());
    println!("FLEXVOLUME_LVM_SEED={seed}");
    let only = var("FLEXVOLUME_LVM_CALLS").ok();
    put_stand_ins(&pair.a);
    for scene in SCENES {
        if only.as_ref().is_none_or(|only| only.contains(scene.name())) {
            scene.play(&pair.a, &pair.b, usize::try_from(seed).unwrap());
        }
    }
    pair.a.sh("sed -i /tool_dirs/d /run/*/exec/*/config.toml");
}

/// Puts stand-ins before the tools of a node's driver.
fn put_stand_ins(node: &Guest) {
    let script = include_str!("steps.sh");
    node.sh(&format!(
        "mkdir -p {STEPS} && cd {STEPS} && cat > stand-in << 'END' && chmod 755 stand-in\n{script}\nEND
        for tool in find cut lvs vgs lvchange lvcreate lvmlockctl sanlock blkid dmsetup wipefs mkfs.ext4 \
            e2fsck mount; do ln -s stand-in $tool; done
        echo none > plan; echo 0 > count
        sed -i \"1i tool_dirs = ['{STEPS}', '/usr/sbin', '/usr/bin']\" /run/*/exec/*/config.toml"
    ));
}

impl Scene {
    fn play(&self, a: &Guest, b: &Guest, seed: usize) {
        let &Self { mode, call, .. } = self;
        let volume = |n: usize| {
            Volume::named(&format!(
                "{}-{}",
                self.name(),
                if self.makes { n } else { 0 }
            ))
        };
        if !self.makes {
            let volume = Volume::new(a, &volume(0).lv);
            b.up(mode, &volume).is_success();
            b.write(mode, &volume, call);
            b.down(mode, &volume);
        }
        self.prepare(a, &volume(0));
        let found = a.sh(&format!("{STEPS}/find {}", self.line(&volume(0))));
        self.end(a, &volume(0), 0);
        let steps: Vec<&str> = found.lines().collect();
        println!(
            "{}: {} steps: {}",
            self.name(),
            steps.len(),
            steps.join(", ")
        );
        let full = var_os("FLEXVOLUME_LVM_FULL").is_some();
        let most = if full { steps.len() } else { SAMPLE };
        for n in 0..most {
            // Far apart.
            let step = steps[(seed + n * steps.len() / most) % steps.len()];
            let volume = volume(n + 1);
            // A tool that goes on alone could make the volume after its pod's end.
            let is_repeated =
                (seed + n).is_multiple_of(2) || (self.makes && step.contains("driver"));
            println!("{}: {step}, repeated: {is_repeated}", self.name());
            self.prepare(a, &volume);
            let cut = a.sh(&format!("{STEPS}/cut '{step}' {}", self.line(&volume)));
            println!("{cut}");
            // A killed lvcreate may leave sanlock's leases suspended. `obstacles` has what an operator is told
            // then; here all is lost after 24 seconds.
            a.sh("dmsetup resume vg-lvmlock");
            if is_repeated {
                let words = self.words(&volume);
                until_done(a, mode, &words);
            }
            self.end(a, &volume, n);
            assert!(!a.has(&volume), "node a has it");
            let id = format!("vg/{}", volume.lv);
            if !self.makes || is_repeated {
                b.sh(&format!("lvchange -ay {id} && lvchange -an {id}"));
            }
            if self.makes {
                b.sh(&format!("lvs {id} || exit 0; lvremove --yes {id}"));
            }
        }
        if !self.makes {
            b.up(mode, &volume(0)).is_success();
            assert_eq!(b.read(mode, &volume(0)), call);
            b.down(mode, &volume(0));
        }
    }

    fn name(&self) -> &str {
        if self.makes { "create" } else { self.call }
    }

    /// Makes the state that the call needs.
    fn prepare(&self, node: &Guest, volume: &Volume) {
        if !self.is_up {
            node.up(self.mode, volume).is_success();
            if self.mode == Mode::Attach {
                let pod = pod_dir(self.mode, volume);
                node.call(self.mode, &["unmount", &pod]).is_success();
            }
        }
    }

    fn words(&self, volume: &Volume) -> Vec<String> {
        let (pod, global) = (pod_dir(self.mode, volume), global_dir(self.mode, volume));
        let (device, json) = (volume.device(), volume.json());
        let operands = match self.call {
            "mount" => vec![pod, json],
            "waitforattach" => vec![device, json],
            "mountdevice" => vec![global, device, json],
            "unmountdevice" => vec![global],
            _ => vec![pod],
        };
        [vec![self.call.to_owned()], operands].concat()
    }

    fn line(&self, volume: &Volume) -> String {
        let words = self.words(volume);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        line(self.mode, &words)
    }

    /// The calls of kubelet when the pod has gone: either of the two.
    fn end(&self, node: &Guest, volume: &Volume, n: usize) {
        let (pod, global) = (pod_dir(self.mode, volume), global_dir(self.mode, volume));
        let name = format!("{}-of-pod", volume.lv);
        let words: &[&str] = match (self.mode, self.call, n % 4) {
            (Mode::MountOnly, ..) => &["unmount", &pod],
            (Mode::Attach, "waitforattach", 0 | 1) => &["detach", &name, "node-a"],
            (Mode::Attach, ..) => &["unmountdevice", &global],
        };
        until_done(node, self.mode, words);
    }
}

/// Makes a call until it succeeds, as kubelet does; or until an operator has to remove what an lvcreate
/// that was killed did not wipe.
fn until_done(node: &Guest, mode: Mode, words: &[impl AsRef<str>]) {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    eventually(&format!("{words:?}"), || {
        let reply = node.call(mode, &words);
        println!("{}: {} {}", words[0], reply.status, reply.message);
        reply.status == "Success" || reply.message.contains("Run `lvremove")
    });
}
