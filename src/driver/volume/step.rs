//! How a call goes on after a step.

/// The result of a function that carries out a decision.
pub enum Step<T> {
    Done(T),
    /// The facts are out of date, for this reason: the look begins again.
    LookAgain(&'static str),
}
