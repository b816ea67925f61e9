//! How much was played.

use std::fmt;

#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub steps: usize,
    pub mounts: usize,
    pub refusals: usize,
    pub kills: usize,
    pub cuts: usize,
    /// Pods that got the mount options they had asked for, and pods that were refused for one.
    pub granted: usize,
    pub forbidden: usize,
    /// Mounts that another mount namespace kept, and pods that came up while it did.
    pub kept: usize,
    pub beside: usize,
    /// Snapshots of what was mounted.
    pub snapshots: usize,
    /// Calls at once for room in a group, and those that were refused for its reserve.
    pub crowd: usize,
    pub reserved: usize,
    /// Commands that an operator asked, and lines of the log that were read.
    pub asked: usize,
    pub logged: usize,
}

impl Tally {
    fn named(&mut self) -> [(&'static str, &mut usize); 14] {
        [
            ("steps", &mut self.steps),
            ("mounts", &mut self.mounts),
            ("refusals", &mut self.refusals),
            ("kills", &mut self.kills),
            ("power cuts", &mut self.cuts),
            ("mounts with options", &mut self.granted),
            ("options refused", &mut self.forbidden),
            ("mounts kept elsewhere", &mut self.kept),
            ("mounts beside those", &mut self.beside),
            ("snapshots of what is mounted", &mut self.snapshots),
            ("calls in crowds", &mut self.crowd),
            ("refused for the reserve", &mut self.reserved),
            ("commands asked", &mut self.asked),
            ("lines of the log", &mut self.logged),
        ]
    }

    pub fn add(&mut self, mut more: Self) {
        for ((_, all), (_, more)) in self.named().into_iter().zip(more.named()) {
            *all += *more;
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = *self;
        let all = copy
            .named()
            .map(|(name, number)| format!("{number} {name}"));
        f.write_str(&all.join(", "))
    }
}
