//! Who takes part: the driver, the floor below it, and the bash script if there is one.

use std::path::PathBuf;

use crate::race::{Argv, Runner, output, race};
use crate::report::Report;

/// The executables and how often they run.
pub struct Contest {
    /// The driver, installed as kubelet finds it.
    pub driver: PathBuf,
    pub floor: PathBuf,
    /// The bash script.
    pub script: Option<PathBuf>,
    /// Rounds of the quick calls.
    pub rounds: usize,
    /// Rounds of the slow ones.
    pub lives: usize,
    /// How many pods start at once.
    pub crowd: usize,
}

impl Contest {
    /// Runs the driver, which must answer with success.
    pub fn driver(&self, args: &[String]) {
        let answer = output(&self.argv_of_driver(args));
        assert!(answer.contains("\"Success\""), "{args:?}: {answer}");
    }

    pub fn argv_of_driver(&self, args: &[String]) -> Argv {
        argv(&self.driver, args)
    }

    pub fn argv_of_floor(&self) -> Argv {
        argv(&self.floor, &[])
    }

    /// The script's own way through the same call.
    pub fn argv_of_script(&self, args: &[String]) -> Option<Argv> {
        self.script.as_ref().map(|script| argv(script, args))
    }

    /// Compares one call. `both`: the script can answer it too.
    pub fn compare(&self, report: &mut Report, name: &str, args: &[String], both: bool) {
        self.driver(args);
        let mut runners = vec![
            Runner::command("driver", self.argv_of_driver(args)),
            Runner::command("floor", self.argv_of_floor()),
        ];
        if both && let Some(argv) = self.argv_of_script(args) {
            runners.push(Runner::command("script", argv));
        }
        report.row(name, &race(&runners, self.rounds));
    }
}

fn argv(program: &std::path::Path, args: &[String]) -> Argv {
    let mut argv = vec![program.to_str().unwrap().to_owned()];
    argv.extend_from_slice(args);
    argv
}
