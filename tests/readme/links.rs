//! Links lead somewhere, every page is in the book, and versions are this one.

use super::*;
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_link_leads_to_a_file_or_a_heading() {
    let mut pages = vec![];
    for dir in ", docs/, docs/developers/, install/, tests/, .github/".split(", ") {
        pages.extend(names_in(dir, ".md").map(|name| format!("{dir}{name}")));
    }
    assert!(pages.len() > 18, "{pages:?}");
    for name in pages {
        let (text, dir) = (page(&name), Path::new(&name).parent().unwrap());
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap();
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            if file.starts_with("https:") {
                println!("{name}: {link} (not fetched)");
                continue;
            }
            let file = if file.is_empty() {
                PathBuf::from(&name)
            } else {
                dir.join(file)
            };
            let path = top().join(&file);
            assert!(path.exists(), "{name}: {link}");
            if !heading.is_empty() {
                let text = fs::read_to_string(path).unwrap();
                let mut headings = text.lines().filter(|line| line.starts_with('#'));
                let is_there = headings.any(|line| anchor(line) == heading);
                assert!(is_there, "{name}: {link}");
            }
        }
    }
}

/// Else the text after the block is shown as a part of the block.
#[test]
fn nothing_follows_the_end_of_a_block_of_code_on_its_line() {
    for dir in ["", "docs/", "docs/developers/", "tests/"] {
        for name in names_in(dir, ".md") {
            let text = page(&format!("{dir}{name}"));
            let is_fence = |line: &&str| line.trim_start().starts_with("```");
            let fences: Vec<&str> = text.lines().filter(is_fence).collect();
            for pair in fences.chunks(2) {
                let is_end = |line: &&str| line.trim() == "```";
                assert!(pair.last().is_some_and(is_end), "{name}: {pair:?}");
            }
        }
    }
}

#[test]
fn every_alert_leads_to_a_heading_of_a_page() {
    let alerts = page("examples/monitoring/alerts.yaml");
    let pages = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/");
    let urls = alerts.split("runbook_url: \"").skip(1);
    let urls: Vec<&str> = urls.map(|rest| rest.split('"').next().unwrap()).collect();
    assert_eq!(urls.len(), alerts.matches("- alert:").count());
    for url in urls {
        let (file, heading) = url
            .strip_prefix(pages)
            .and_then(|rest| rest.split_once('#'))
            .unwrap_or_else(|| panic!("{url}: the pages are in {pages}"));
        let text = page(&format!("docs/{file}"));
        // Each word of a refusal is a heading of this page.
        let heading = heading.replace("{{ $labels.reason }}", "no-room");
        assert!(text.lines().any(|line| anchor(line) == heading), "{url}");
    }
}

#[test]
fn every_page_is_in_the_book() {
    let summary = page("docs/SUMMARY.md");
    for dir in ["", "developers/"] {
        for name in names_in(&format!("docs/{dir}"), ".md") {
            let is_there = name == "SUMMARY.md" || summary.contains(&format!("({dir}{name})"));
            assert!(is_there, "docs/{dir}{name} is not in docs/SUMMARY.md");
        }
    }
}

#[test]
fn every_picture_has_the_words_of_the_source_beside_it() {
    for name in names_in("docs/pictures", ".dot") {
        let picture = page(&format!("docs/pictures/{}", name.replace(".dot", ".svg")));
        let picture = picture.replace("&#39;", "'").replace("&#45;", "-");
        let source = page(&format!("docs/pictures/{name}"));
        let labels = source.split("label=\"").skip(1);
        let labels = labels.map(|label| label.split('"').next().unwrap());
        let labels: Vec<&str> = labels.flat_map(|label| label.split("\\n")).collect();
        assert!(labels.len() > 2, "{name}: {labels:?}");
        for words in labels {
            let is_drawn = picture.contains(words.trim());
            assert!(is_drawn, "{name}: {words} is not drawn: draw it anew");
        }
    }
}

#[test]
fn the_readme_is_read_in_one_go() {
    let readme = page("README.md");
    assert!(readme.lines().count() <= 150, "{}", readme.lines().count());
    assert!(readme.lines().all(|line| line.chars().count() <= 110));
}

#[test]
fn downloads_in_the_pages_are_of_this_version() {
    for (name, files) in [
        ("README.md", 1),
        ("docs/start.md", 4),
        ("docs/daemonset.md", 2),
    ] {
        let text = page(name).replace("flexvolume-lvm_", "flexvolume-lvm-");
        let named = text.split("flexvolume-lvm-").skip(1);
        let named: Vec<&str> = named
            .filter(|rest| rest.starts_with(char::is_numeric))
            .collect();
        assert_eq!(named.len(), files, "{name}");
        for file in named {
            assert!(
                file.starts_with(env!("CARGO_PKG_VERSION")),
                "{name}: {file:.20}"
            );
        }
    }
}

/// Each asset of the .deb in Cargo.toml is in the table of files, with its mode.
#[test]
fn the_page_for_packagers_has_each_file_of_the_package() {
    let page = page("docs/developers/packaging.md");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .map(|line| line.split(" | ").collect())
        .collect();
    let is_on_page = |to: &str, mode: &str| {
        rows.iter().any(|row| {
            let place = row[0].trim_matches(['|', ' ', '`']);
            let is_it = place == to || place.ends_with('/') && to.starts_with(place);
            is_it && row.last() == Some(&&*format!("{mode} |"))
        })
    };
    let cargo = super::page("Cargo.toml");
    let (_, assets) = cargo.split_once("assets = [").unwrap();
    let assets = assets.lines().skip(1).take_while(|line| *line != "]");
    let assets: Vec<Vec<&str>> = assets.map(|line| line.split('"').collect()).collect();
    assert!(assets.len() > 9, "{assets:?}");
    for asset in assets {
        let (to, mode) = (asset[3], asset[5]);
        let to = if to.ends_with('/') && !asset[1].contains('*') {
            let (_, name) = asset[1].rsplit_once('/').unwrap();
            format!("{to}{name}")
        } else {
            to.to_owned()
        };
        assert!(is_on_page(&to, mode), "{to}, {mode}");
    }
}

/// `tests/run.sh msrv` shows that the sources compile with this Rust.
#[test]
fn the_rust_of_the_readme_is_that_of_cargo() {
    let rust = format!("Rust {} or newer", env!("CARGO_PKG_RUST_VERSION"));
    assert!(page("README.md").contains(&rust), "{rust}");
}

/// The anchor that a heading gets, as GitHub makes it.
fn anchor(line: &str) -> String {
    let title = line.trim_start_matches('#').trim().to_lowercase();
    let kept = title
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}
