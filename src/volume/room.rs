//! What `decide` says of space: in a volume group, in a thin pool, and by the node's config. As pure
//! as that.

use super::decision::{Create, Decision, Wish};
use super::reason::Reason;
use crate::lvm::Volume;
use crate::names::Bytes;

/// Where there is no such volume. `free`: what its group has, if that matters.
pub fn absent(free: Option<Bytes>, wish: &Wish) -> Decision {
    let Create { allowed, size, .. } = wish.create;
    Decision::Refuse(match size {
        _ if !allowed => Reason::NoVolume(size),
        None => Reason::NoSize,
        Some(_) if wish.read_only => Reason::CreateReadOnly,
        Some(size) => match beyond(size, size, free, &wish.create) {
            Some(reason) => reason,
            None => return Decision::Create(size),
        },
    })
}

/// May it be made this large? It never becomes smaller.
pub fn of_size(volume: &Volume, size: Bytes, wish: &Wish) -> Decision {
    let (has, free) = (volume.size, volume.free);
    let more = Bytes::new(size.get().saturating_sub(has.get()));
    if more.get() == 0 {
        return Decision::Ready;
    }
    // A thin volume takes nothing from the group.
    let takes = volume.pool.is_none();
    let against = beyond(size, more, takes.then_some(free), &wish.create);
    Decision::Refuse(match against {
        Some(reason @ Reason::TooLarge { .. }) => reason,
        _ if takes && free < more => Reason::NoRoom { more, free, has },
        Some(reason) => reason,
        None => return Decision::Extend,
    })
}

/// What the config has against a volume of this size that takes `more` of what its group has free.
fn beyond(size: Bytes, more: Bytes, free: Option<Bytes>, allowed: &Create) -> Option<Reason> {
    let reserve = allowed.reserve;
    if let Some(largest) = allowed.largest.filter(|largest| size > *largest) {
        return Some(Reason::TooLarge { size, largest });
    }
    let left = |free: Bytes| free.get().saturating_sub(more.get());
    let free = free.filter(|free| reserve.get() > 0 && left(*free) < reserve.get())?;
    Some(Reason::Reserve {
        more,
        free,
        reserve,
    })
}

/// What speaks against writing to a volume of this thin pool.
pub fn of_pool(pool: &Volume, wish: &Wish) -> Option<Reason> {
    let limit = wish.pool_limit;
    if let Some((what, percent)) = pool.filled_to(limit).next() {
        return Some(Reason::PoolFull {
            pool: pool.id.clone(),
            what,
            percent,
            limit,
        });
    }
    // "out_of_data", "metadata_read_only", "failed", …: kernel and LVM have seen it break.
    (!pool.health.is_empty() && !pool.health.contains("partial")).then(|| Reason::PoolUnwell {
        pool: pool.id.clone(),
        health: pool.health.clone(),
    })
}
