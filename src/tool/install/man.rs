//! Man pages, made of what clap knows of the commands, and of the config that `install` writes.

use std::fmt::Write;
use std::path::PathBuf;

use clap::{Arg, ArgAction, Command};

use super::put;
use crate::output::wrapped;
use driver::names::Shown;

/// When this version was released, as CHANGELOG.md has it.
const DATE: &str = "2026-11-23";
/// Of a line of roff.
const WIDTH: usize = 76;

/// A page for the driver, for each command to any depth, and for the config, with its place below `man`.
pub fn pages(command: Command) -> Vec<(PathBuf, String)> {
    let mut command = command.disable_help_subcommand(true);
    // It names each subcommand `flexvolume-lvm-status`.
    command.build();
    let mut pages = vec![(PathBuf::from("man5/flexvolume-lvm.toml.5"), config())];
    of_command(&command, None, &mut pages);
    pages
}

fn of_command(command: &Command, above: Option<&str>, pages: &mut Vec<(PathBuf, String)>) {
    let name = name(command);
    let tools = || command.get_subcommands().filter(|tool| !tool.is_hide_set());
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let mut page = Page::new(name, 8, &about);
    page.heading("SYNOPSIS");
    page.synopsis(command);
    page.heading("DESCRIPTION");
    let long = command.get_long_about().map(ToString::to_string);
    page.text(&long.unwrap_or(about));
    let shown = |arg: &&Arg| !arg.is_hide_set();
    let (words, options): (Vec<&Arg>, Vec<&Arg>) = command
        .get_arguments()
        .filter(shown)
        .partition(|arg| arg.is_positional());
    page.arguments("ARGUMENTS", &words);
    page.arguments("OPTIONS", &options);
    if tools().next().is_some() {
        page.heading("COMMANDS");
        for tool in tools() {
            let about = tool.get_about().map(ToString::to_string);
            page.item(&reference(self::name(tool), 8), &about.unwrap_or_default());
        }
    }
    let more = command.get_after_long_help().map(ToString::to_string);
    page.sections(&more.unwrap_or_default());
    page.heading("SEE ALSO");
    let others = above.into_iter().chain(tools().map(self::name));
    let others = others.map(|name| reference(name, 8));
    let all: Vec<String> = others
        .chain([reference("flexvolume-lvm.toml", 5)])
        .collect();
    page.raw(&all.join(",\n"));
    pages.push((PathBuf::from(format!("man8/{name}.8")), page.0));
    for tool in tools() {
        of_command(tool, Some(name), pages);
    }
}

fn name(command: &Command) -> &str {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
}

fn reference(name: &str, section: u8) -> String {
    format!("\\fB{}\\fR({section})", escaped(name))
}

/// The page of the config: the file that `install` writes, its prose and its keys.
fn config() -> String {
    let mut page = Page::new("flexvolume-lvm.toml", 5, "config of flexvolume-lvm");
    page.heading("SYNOPSIS");
    page.item(
        &bold("config.toml"),
        "beside the driver's executable, in <plugin dir>/kubernetes.io~lvm",
    );
    page.heading("DESCRIPTION");
    page.text(
        "`flexvolume-lvm install` writes this file, with every key explained. \
         `flexvolume-lvm check --config` names all mistakes in it.",
    );
    let mut prose = String::new();
    let mut has_keys = false;
    for line in put::CONFIG.lines() {
        if line == "#" || line.starts_with("# ") {
            prose.push_str(line.trim_start_matches(['#', ' ']));
            prose.push('\n');
            continue;
        }
        let line = line.trim_start_matches('#');
        if line.is_empty() {
            if !prose.is_empty() {
                page.raw(".PP");
                page.text(&prose);
            }
        } else if line.starts_with('[') {
            page.heading(line);
            page.text(&prose);
        } else {
            if !has_keys {
                page.heading("KEYS");
            }
            page.item(&bold(line), &prose);
        }
        has_keys |= !line.is_empty();
        prose.clear();
    }
    page.heading("SEE ALSO");
    page.raw(&reference("flexvolume-lvm", 8));
    page.0
}

struct Page(String);

impl Page {
    /// With its title and its NAME.
    fn new(name: &str, section: u8, about: &str) -> Self {
        let title = name.to_uppercase();
        let mut page = Self(format!(
            ".TH {} {section} {DATE} \"flexvolume\\-lvm {}\" Administration\n.nh\n.ad l\n",
            escaped(&title),
            env!("CARGO_PKG_VERSION")
        ));
        page.heading("NAME");
        page.text(&format!("{name} - {about}"));
        page
    }

    fn raw(&mut self, line: &str) {
        self.0.push_str(line);
        self.0.push('\n');
    }

    fn heading(&mut self, title: &str) {
        self.raw(&format!(".SH \"{}\"", escaped(title)));
    }

    /// Paragraphs, with an empty line between two.
    fn text(&mut self, text: &str) {
        let paragraphs = text.split("\n\n").map(str::trim);
        for (n, paragraph) in paragraphs.filter(|text| !text.is_empty()).enumerate() {
            if n > 0 {
                self.raw(".PP");
            }
            let words: Vec<&str> = paragraph.split_whitespace().collect();
            for line in wrapped_roff(&formatted(&words.join(" "))) {
                self.raw(&line);
            }
        }
    }

    /// `head` is roff.
    fn item(&mut self, head: &str, text: &str) {
        self.raw(".TP");
        self.raw(head);
        self.text(text);
    }

    fn synopsis(&mut self, command: &Command) {
        let called = command.get_bin_name().unwrap_or(name(command));
        self.raw(&format!("\\fB{}\\fR", escaped(called)));
        let mut args: Vec<&Arg> = command.get_arguments().collect();
        args.sort_by_key(|arg| arg.is_positional());
        for arg in args {
            let is_help = matches!(
                arg.get_action(),
                ArgAction::Help | ArgAction::HelpShort | ArgAction::HelpLong | ArgAction::Version
            );
            if arg.is_hide_set() || is_help {
                continue;
            }
            let short = arg.get_short().map(|short| format!("-{short}"));
            let name = short.or_else(|| Some(format!("--{}", arg.get_long()?)));
            let name = name.map_or_else(String::new, |name| bold(&name));
            let both = format!("{name}{}", value(arg, "\\ ", name.is_empty()));
            let more = if is_many(arg) { "..." } else { "" };
            self.raw(&if arg.is_required_set() {
                format!("{both}{more}")
            } else {
                format!("[{both}]{more}")
            });
        }
        if command.has_subcommands() {
            self.raw("\\fIcommand\\fR\n[\\fIargument\\fR]...");
        }
    }

    fn arguments(&mut self, title: &str, args: &[&Arg]) {
        if args.is_empty() {
            return;
        }
        self.heading(title);
        for arg in args {
            let short = arg.get_short().map(|short| format!("-{short}"));
            let long = arg.get_long().map(|long| format!("--{long}"));
            let names = short.into_iter().chain(long).map(|name| bold(&name));
            let names: Vec<String> = names.collect();
            let head = format!(
                "{}{}",
                names.join(", "),
                value(arg, " ", arg.is_positional())
            );
            let help = arg.get_long_help().or(arg.get_help());
            let help = help.map(ToString::to_string);
            let mut help = help.unwrap_or_default();
            let values = arg.get_default_values().iter();
            let defaults: Vec<_> = values.map(|value| value.shown().to_string()).collect();
            if !defaults.is_empty() && arg.get_action().takes_values() {
                let _ = write!(help, " [default: {}]", defaults.join(", "));
            }
            let values = arg.get_possible_values();
            let values = values.iter().filter(|_| arg.get_action().takes_values());
            let names: Vec<&str> = values
                .clone()
                .map(clap::builder::PossibleValue::get_name)
                .collect();
            if !names.is_empty() && values.clone().all(|value| value.get_help().is_none()) {
                let _ = write!(help, " [possible values: {}]", names.join(", "));
            }
            self.item(&head, &help);
            let mut explained = values
                .filter_map(|value| Some((value.get_name(), value.get_help()?)))
                .peekable();
            if explained.peek().is_some() {
                self.raw(".RS");
                for (name, help) in explained {
                    self.item(&bold(name), &help.to_string());
                }
                self.raw(".RE");
            }
        }
    }

    /// What stands below the options in --help: `Examples:` and the like, with two columns below.
    fn sections(&mut self, text: &str) {
        /// Of an entry; what continues one has more.
        const INDENT: &str = "  ";
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let entry = line
                .strip_prefix(INDENT)
                .filter(|entry| !entry.starts_with(' '));
            if let Some(entry) = entry {
                let (head, what) = entry.split_once(INDENT).unwrap_or((entry, ""));
                let mut what = what.trim().to_owned();
                while let Some(more) = lines.next_if(|line| line.starts_with("   ")) {
                    let _ = write!(what, " {}", more.trim());
                }
                if what.is_empty() {
                    self.raw(&format!("{}\n.br", bold(head)));
                } else {
                    self.item(&bold(head), &what);
                }
            } else if line.ends_with(':')
                && lines.peek().is_some_and(|next| next.starts_with(INDENT))
            {
                let (title, more) = line.split_once([',', ':']).unwrap_or((line, ""));
                self.heading(
                    match title {
                        "Exit codes" => "EXIT STATUS",
                        other => other,
                    }
                    .to_uppercase()
                    .as_str(),
                );
                if !more.is_empty() {
                    self.text(line);
                    self.raw(".PP");
                }
            } else if !line.is_empty() {
                let mut paragraph = line.to_owned();
                while let Some(more) = lines.next_if(|line| !line.is_empty()) {
                    let _ = write!(paragraph, " {more}");
                }
                self.raw(".PP");
                self.text(&paragraph);
            }
        }
    }
}

/// An argument's value as it is typed, behind its name.
fn value(arg: &Arg, space: &str, is_alone: bool) -> String {
    let range = arg.get_num_args().unwrap_or_default();
    if !range.takes_values() {
        return String::new();
    }
    let names = arg.get_value_names().unwrap_or_default().iter();
    let names: Vec<&str> = names.map(clap::builder::Str::as_str).collect();
    let value = format!("\\fI{}\\fR", escaped(&names.join(" ")));
    match (is_alone, range.min_values()) {
        (true, _) => value,
        (false, 0) => format!("{space}[{value}]"),
        (false, _) => format!("{space}{value}"),
    }
}

fn is_many(arg: &Arg) -> bool {
    let most = arg.get_num_args().unwrap_or_default().max_values();
    most > 1 || matches!(arg.get_action(), ArgAction::Append) && !arg.is_positional()
}

fn bold(text: &str) -> String {
    format!("\\fB{}\\fR", escaped(text))
}

/// A text for people: what stands between backquotes is bold.
fn formatted(text: &str) -> String {
    let mut parts = text.split('`');
    let mut all = escaped(parts.next().unwrap_or_default());
    while let (Some(quoted), Some(after)) = (parts.next(), parts.next()) {
        let _ = write!(all, "{}{}", bold(quoted), escaped(after));
    }
    all
}

/// Every character as itself, and in ASCII: a terminal may have no other.
fn escaped(text: &str) -> String {
    let mut all = String::new();
    for c in text.chars() {
        match c {
            '\\' => all.push_str("\\e"),
            '-' => all.push_str("\\-"),
            '\'' => all.push_str("\\(aq"),
            '"' => all.push_str("\\(dq"),
            '`' => all.push_str("\\(ga"),
            '~' => all.push_str("\\(ti"),
            '^' => all.push_str("\\(ha"),
            '…' => all.push_str("..."),
            other => all.push(other),
        }
    }
    all
}

/// Lines of roff, none of which is taken for a request.
fn wrapped_roff(text: &str) -> Vec<String> {
    let lines = wrapped(text, WIDTH).into_iter();
    lines
        .map(|line| {
            if line.starts_with('.') {
                format!("\\&{line}")
            } else {
                line
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_date_is_that_of_the_version_in_the_changelog() {
        let changes = include_str!("../../../CHANGELOG.md");
        let title = format!("\n## [{}] - {DATE}\n", env!("CARGO_PKG_VERSION"));
        assert!(changes.contains(&title), "{title}");
    }
}
