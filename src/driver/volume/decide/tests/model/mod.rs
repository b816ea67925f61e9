//! A model of calls that meet: every order of the steps of two calls, of another node's, of an operator's,
//! and of a kill after any of them. `decide` is the real one; disk, tags and locks are [`world`]'s. What
//! the steps run is in `steps.txt`, which the driver itself is held to in a guest
//! (`tests/guest/calls/steps.rs`).
//!
//! Not in it: who writes to a device without asking LVM or the kernel for it (`tests/guest/data/meanwhile.rs`), disks
//! that fail, a cryptsetup that is killed before its device has a table, and time: who waits for a lock waits until it
//! is free, and no step is so long that it is looked once more after it.

mod bring_up;
mod call;
mod make;
mod operator;
mod properties;
mod sight;
mod steps;
mod world;

use std::collections::BTreeSet;
use std::sync::Mutex;

use stateright::{Model, Property};

use call::{Actor, At, Did, Turn};
use world::{Node, State};

/// The order of the steps: the driver's, and some in which one thing is otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Driver,
    /// That mkfs is at work is not recorded before.
    RecordAfterMkfs,
    /// A permission to format is taken off when the filesystem is mounted, not before.
    RecordAfterMount,
    /// The volume's lock is given up before the content is looked at and a filesystem is made.
    LockGivenUp,
    /// It is looked first and then waited for the lock, and nobody looks again.
    NoLookAfterWait,
    /// A call that has made the volume keeps the lock of its group.
    GroupKept,
    /// The lock of its group is not waited for, where the volume is new.
    GroupNotAwaited,
    /// LVM activates a volume of a shared group without its lock.
    NoLeases,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Step(usize),
    Tool(usize),
    /// The driver and its tool.
    Kill(usize),
    /// The driver alone: its tool goes on.
    KillDriver(usize),
}

/// The calls and tools that meet.
pub struct Meeting {
    pub begin: State,
    pub order: Order,
    pub properties: Vec<Property<Meeting>>,
    /// The steps that were taken, in any order.
    pub taken: Mutex<BTreeSet<&'static str>>,
}

impl Model for Meeting {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![self.begin.clone()]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        for (n, actor) in state.actors.iter().enumerate() {
            actions.push(Action::Step(n));
            let is_call = actor.does.dir().is_some() && ![At::Begin, At::Done].contains(&actor.at);
            if state.kills > 0 && is_call {
                actions.push(Action::Kill(n));
                if actor.tool.is_some() {
                    actions.push(Action::KillDriver(n));
                }
            }
        }
        actions.extend((0..state.orphans.len()).map(Action::Tool));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut state = state.clone();
        match action {
            Action::Step(me) => {
                self.taken
                    .lock()
                    .unwrap()
                    .insert(state.actors[me].at.into());
                return self.turn(state, me, &mut Did::default());
            }
            Action::Tool(n) => {
                let mut tool = state.orphans.remove(n);
                if state.advance(&mut tool).is_ok() && !tool.effects.is_empty() {
                    state.orphans.insert(n, tool);
                }
            }
            Action::Kill(n) | Action::KillDriver(n) => {
                state.kills = state.kills.saturating_sub(1);
                let tool = state.actors[n].dies();
                if action == Action::KillDriver(n) {
                    state.orphans.extend(tool);
                }
            }
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        self.properties.clone()
    }
}

impl Meeting {
    fn turn(&self, state: State, me: usize, did: &mut Did) -> Option<State> {
        let order = self.order;
        let turn = Turn {
            state,
            me,
            order,
            did,
        };
        turn.step()
    }

    /// One actor alone in this world, until it ends, with what it did. None: it never ends.
    pub fn alone(&self, state: &State, actor: Actor) -> Option<(State, Did)> {
        const MANY: usize = 200;
        let mut did = Did::default();
        let mut state = State {
            actors: vec![actor],
            kills: 0,
            ..state.clone()
        };
        for _ in 0..MANY {
            if state.actors[0].at == At::Done {
                return Some((state, did));
            }
            state = self.turn(state, 0, &mut did)?;
        }
        None
    }

    /// Whether no process of anybody's is at work.
    pub fn is_quiet(state: &State) -> bool {
        let rests = |actor: &Actor| [At::Begin, At::Done].contains(&actor.at);
        state.orphans.is_empty() && state.actors.iter().all(rests)
    }
}

/// Both nodes.
pub const NODES: [Node; 2] = [0, 1];
