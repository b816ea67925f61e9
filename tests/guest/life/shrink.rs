//! Makes a list of steps that fails shorter.

use std::collections::HashSet;
use std::mem::discriminant;
use std::time::{Duration, Instant};

use super::player::{SLOTS, Step};

/// How long to try.
const LIMIT: Duration = Duration::from_secs(600);

/// Leaves out what it fails without: all that is done to one volume, all steps of one kind, then ever
/// smaller parts.
pub fn shortest(mut steps: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> Vec<Step> {
    let end = Instant::now() + LIMIT;
    let kinds = steps.iter().map(discriminant).collect::<HashSet<_>>();
    let slots = (0..SLOTS).map(|slot| without(move |step| step.slot() == Some(slot)));
    let kinds = kinds
        .into_iter()
        .map(|kind| without(move |step| discriminant(step) == kind));
    for fewer in slots.chain(kinds) {
        let fewer = fewer(&steps);
        if fewer.len() < steps.len() && Instant::now() < end && fails(&fewer) {
            steps = fewer;
        }
    }
    let mut size = steps.len().div_ceil(2);
    loop {
        let mut at = 0;
        let mut shorter = false;
        while at < steps.len() {
            if Instant::now() > end {
                return steps;
            }
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            if fails(&fewer) {
                (steps, shorter) = (fewer, true);
            } else {
                at += size;
            }
        }
        if size == 1 && !shorter {
            return steps;
        }
        if !shorter || size > steps.len() {
            size = size.div_ceil(2);
        }
    }
}

type Fewer = Box<dyn Fn(&[Step]) -> Vec<Step>>;

fn without(is_out: impl Fn(&Step) -> bool + 'static) -> Fewer {
    Box::new(move |steps| steps.iter().filter(|step| !is_out(step)).cloned().collect())
}
