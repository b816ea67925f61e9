//! Runs several commands in turn, many times, and compares them round by round: what else the
//! machine does at the moment slows all of them down alike, and goes out of the ratio.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// One program with its arguments.
pub type Argv = Vec<String>;

/// One who takes part: prepared if need be, without its being timed, and then timed.
pub struct Runner<'a> {
    pub name: &'static str,
    pub prepare: Box<dyn Fn() + 'a>,
    pub run: Box<dyn Fn() + 'a>,
}

impl<'a> Runner<'a> {
    /// A command that can be run again and again.
    pub fn command(name: &'static str, argv: Argv) -> Self {
        Self::of(name, move || run(&argv))
    }

    pub fn of(name: &'static str, run: impl Fn() + 'a) -> Self {
        Self {
            name,
            prepare: Box::new(|| ()),
            run: Box::new(run),
        }
    }

    pub fn after(mut self, prepare: impl Fn() + 'a) -> Self {
        self.prepare = Box::new(prepare);
        self
    }
}

/// What one of the runners took, in the order of the rounds.
pub struct Times {
    pub name: &'static str,
    pub times: Vec<Duration>,
}

impl Times {
    pub fn median(&self) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied().unwrap_or_default()
    }

    /// The median of the ratios of this one's time to the other's in the same round.
    pub fn to(&self, other: &Self) -> f64 {
        let mut ratios: Vec<f64> = self
            .times
            .iter()
            .zip(&other.times)
            .map(|(own, other)| own.as_secs_f64() / other.as_secs_f64())
            .collect();
        ratios.sort_unstable_by(f64::total_cmp);
        ratios.get(ratios.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

/// Lets all run once in each round, and another one first each time.
pub fn race(runners: &[Runner], rounds: usize) -> Vec<Times> {
    let mut all: Vec<Times> = runners
        .iter()
        .map(|runner| Times {
            name: runner.name,
            times: Vec::new(),
        })
        .collect();
    // The first round fills caches and does not count.
    for round in 0..=rounds {
        for turn in 0..runners.len() {
            let at = (round + turn) % runners.len();
            (runners[at].prepare)();
            let started = Instant::now();
            (runners[at].run)();
            if round > 0 {
                all[at].times.push(started.elapsed());
            }
        }
    }
    all
}

/// Runs a command, which must succeed. What it prints is not read: a pipe would be timed too.
pub fn run(argv: &[String]) {
    let status = command(argv)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let done = status.as_ref().is_ok_and(std::process::ExitStatus::success);
    assert!(done, "{argv:?}: {status:?}: {}", explain(argv));
}

/// Runs a command again and again until it succeeds, as kubelet does, and says how often it failed.
pub fn insist(argv: &[String]) -> usize {
    const MOST: usize = 20;
    for failed in 0..MOST {
        let output = command(argv).output().unwrap();
        if output.status.success() {
            return failed;
        }
        eprintln!("{}", String::from_utf8_lossy(&output.stdout).trim());
        // kubelet's first wait: pkg/util/goroutinemap/exponentialbackoff.
        std::thread::sleep(Duration::from_millis(500));
    }
    panic!("{argv:?} never succeeds");
}

/// Runs a command, which must succeed, and returns what it printed.
pub fn output(argv: &[String]) -> String {
    let output = command(argv).stderr(Stdio::inherit()).output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    assert!(output.status.success(), "{argv:?}: {stdout}");
    stdout
}

fn explain(argv: &[String]) -> String {
    command(argv).output().map_or_else(
        |error| error.to_string(),
        |again| {
            let text = [again.stdout, again.stderr].concat();
            format!("again: {}", String::from_utf8_lossy(&text))
        },
    )
}

/// A command without input.
pub fn command(argv: &[String]) -> Command {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .stdin(Stdio::null())
        .env("LVM_SUPPRESS_FD_WARNINGS", "1")
        .env("LC_ALL", "C");
    command
}

/// `words!["a", b]`: an argv of what can be turned into text.
#[macro_export]
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$($word.to_string()),*] };
}
