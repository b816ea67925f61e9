//! The commands that a page prints.

/// The text of a page below this heading.
pub fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n## {heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// What docs/on-call.md says about the word of a refusal.
pub fn about<'a>(page: &'a str, word: &str) -> &'a str {
    let (_, rest) = page.split_once(&format!("\n### {word}\n")).unwrap();
    rest.split("\n##").next().unwrap()
}

/// The code blocks of this language, without the indentation of a list.
pub fn blocks(text: &str, language: &str) -> Vec<String> {
    let begin = format!("{language}\n");
    let parts = text.split("```").skip(1).step_by(2);
    let blocks = parts.filter_map(|part| part.strip_prefix(&begin));
    let as_printed = blocks.map(|block| {
        let indent = block.len() - block.trim_start_matches(' ').len();
        let lines = block.lines().map(|line| line.get(indent..));
        lines
            .flat_map(|line| [line.unwrap_or_default(), "\n"])
            .collect()
    });
    as_printed.collect()
}

/// Makes a link in `dir` with the driver's name for people. Returns the line with which a shell finds it.
pub fn named(node: &crate::node::Node, dir: &str) -> String {
    std::fs::create_dir_all(dir).unwrap();
    std::os::unix::fs::symlink(node.exe(), format!("{dir}/flexvolume-lvm")).unwrap();
    format!("PATH={dir}:$PATH; ")
}
