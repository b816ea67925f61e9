//! Judges how much room a snapshot has left.

use driver::lvm::Volume;
use driver::volume::{Help, State};

/// How full a thick snapshot is, in percent, if it is filled to 80 % and is not full yet. A full snapshot is lost.
/// `None`: the volume is not such a snapshot.
pub fn nearly_lost(volume: &Volume) -> Option<f64> {
    const NEARLY: u8 = 80;
    let is_its = volume.is_thick_snapshot() && State::of(volume).help != Help::Remove;
    let (_, percent) = volume.filled_to(NEARLY).next().filter(|_| is_its)?;
    Some(percent)
}
