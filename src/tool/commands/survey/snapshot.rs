//! Judges how much room a snapshot has left.

use driver::lvm::Volume;

/// How full a snapshot is, in percent, if it is nearly full. A full snapshot is lost.
pub fn nearly_lost(volume: &Volume) -> Option<f64> {
    const NEARLY: u8 = 80;
    let is_its = volume.is_thick_snapshot() && !volume.has_overflowed();
    let (_, percent) = volume.filled_to(NEARLY).next().filter(|_| is_its)?;
    Some(percent)
}
