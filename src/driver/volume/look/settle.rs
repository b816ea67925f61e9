//! Looks at a volume level by level, until [`decide`] needs no more facts.

use anyhow::{Error, Result};

use super::Look;
use crate::volume::decide::{Content, Decision, Level, Wish, decide};

impl Look<'_> {
    /// Looks until the decision needs nothing more.
    pub fn settle(&mut self, wish: &Wish) -> Result<Decision> {
        self.settle_up_to(Level::Room, wish)
    }

    /// Like [`Self::settle`], but ends with [`Decision::Look`] if the decision needs a deeper level than `most`, or a
    /// lock.
    pub fn settle_up_to(&mut self, most: Level, wish: &Wish) -> Result<Decision> {
        loop {
            match decide(&self.facts, wish) {
                Decision::Look(level) if level <= most => match level {
                    Level::Uses => self.facts.uses = self.uses()?,
                    Level::Lvm => self.see_lvm(wish),
                    // The caller takes the group's lock, and looks at everything again.
                    Level::Creation => return Ok(Decision::Look(level)),
                    Level::LeaseState => self.facts.locks = Some(self.locks()),
                    Level::Openers => self.facts.openers = Some(self.openers(0)?),
                    Level::Ground => {
                        self.see_failure();
                        self.facts.ground = Some(self.ground(wish)?);
                    }
                    Level::Content => {
                        self.facts.content =
                            Some(self.content().unwrap_or_else(|error| unread(&error)));
                        self.see_astray();
                        self.see_stand_in();
                    }
                    Level::Decrypted => match self.content_inside() {
                        Ok(inside) => {
                            self.facts.decrypted = Some(inside);
                            self.see_astray();
                        }
                        Err(error) => self.facts.content = Some(unread(&error)),
                    },
                    Level::Room => self.look_for_room(wish),
                },
                decision => return Ok(decision),
            }
        }
    }
}

fn unread(error: &Error) -> Content {
    Content::Failed(format!("{error:#}"))
}
