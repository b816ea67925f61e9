//! What `decide` says of space: in a volume group, in a thin pool, and by the node's config. As pure
//! as that.

use super::decision::{Create, Decision, Wish};
use super::facts::Pool;
use super::reason::Reason;
use crate::lvm::Volume;
use crate::names::Bytes;

/// Where there is no such volume. `free`: what its group has, if that matters. `pool`: where it is to be
/// made.
pub fn absent(free: Option<Bytes>, pool: Option<&Pool>, wish: &Wish) -> Decision {
    let Create { allowed, size, .. } = wish.create;
    Decision::Refuse(match size {
        _ if !allowed => Reason::NoVolume(size),
        None => Reason::NoSize,
        Some(_) if wish.read_only => Reason::CreateReadOnly,
        Some(size) => {
            let space = || against(size, Bytes::default(), free, &wish.create);
            let full = || of_pool(pool?, wish);
            match another_pool(&wish.create).or_else(space).or_else(full) {
                Some(reason) => reason,
                None => return Decision::Create(size),
            }
        }
    })
}

/// Where the config names a pool, how much of it pods get is the node's to say.
fn another_pool(create: &Create) -> Option<Reason> {
    let (pool, asked) = (create.pool.clone()?, create.asked_pool.clone()?);
    (pool != asked).then_some(Reason::AnotherPool { pool, asked })
}

/// May it be made this large? It never becomes smaller.
pub fn of_size(volume: &Volume, size: Bytes, wish: &Wish) -> Decision {
    let has = volume.size;
    if size <= has {
        return Decision::Ready;
    }
    // A thin volume takes nothing from the group.
    let free = volume.pool.is_none().then_some(volume.free);
    match against(size, has, free, &wish.create) {
        Some(reason) => Decision::Refuse(reason),
        None => Decision::Extend,
    }
}

/// What speaks against a volume of this size, where there is one of `has` or none yet. `free`: what
/// its group has, if it takes from that.
fn against(size: Bytes, has: Bytes, free: Option<Bytes>, allowed: &Create) -> Option<Reason> {
    if let Some(largest) = allowed.largest.filter(|largest| size > *largest) {
        return Some(Reason::TooLarge { size, largest });
    }
    let (free, reserve) = (free?, allowed.reserve);
    let more = Bytes::new(size.get().saturating_sub(has.get()));
    if free < more {
        return Some(Reason::NoRoom { more, free, has });
    }
    let left = free.get().saturating_sub(more.get());
    (left < reserve.get()).then_some(Reason::Reserve {
        more,
        free,
        reserve,
    })
}

/// Why volumes of this thin pool may not be written to.
pub fn of_pool(pool: &Pool, wish: &Wish) -> Option<Reason> {
    let limit = wish.pool_limit;
    let pool = match pool {
        Pool::Seen(pool) => pool,
        Pool::Unseen(id) => return Some(Reason::NoPool(id.clone())),
    };
    if let Some((what, percent)) = pool.filled_to(limit).next() {
        return Some(Reason::PoolFull {
            pool: pool.id.clone(),
            size: pool.size,
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
