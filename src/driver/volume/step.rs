//! What comes next after a part of a call's work.

/// What a function that carries out a decision, or looks under a lock, returns.
pub enum Step<T> {
    Done(T),
    /// What was seen is not good any more, for this reason: all is looked at again.
    LookAgain(&'static str),
}
