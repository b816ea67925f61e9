//! Reads a TOML table key by key, so that every error can say where it is.

use std::fmt::Display;

use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::file::KEYS;

/// The line, counted from 1, of the byte at `offset`.
pub fn line_of(text: &[u8], offset: usize) -> usize {
    let newlines = text.iter().take(offset).filter(|byte| **byte == b'\n');
    newlines.count().saturating_add(1)
}

/// A word as a TOML key: in quotes if it needs them.
pub fn as_key(word: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !word.is_empty() && word.chars().all(is_bare) {
        word.to_owned()
    } else {
        format!("{word:?}")
    }
}

/// One table of the file.
pub struct Section<'a> {
    file: &'a str,
    text: &'a str,
    /// The table's own name with a dot after it; empty for the whole file.
    path: String,
    /// Where its name is.
    offset: usize,
    table: &'a DeTable<'a>,
    known: Vec<&'static str>,
}

impl<'a> Section<'a> {
    /// The table that is the whole file.
    pub fn whole(file: &'a str, text: &'a str, table: &'a DeTable<'a>) -> Self {
        Self {
            file,
            text,
            path: String::new(),
            offset: 0,
            table,
            known: Vec::new(),
        }
    }

    /// Puts the value of `key`, if it is there, into `slot` as `read` understands it. What `read`
    /// says against it becomes an error with file, line and key.
    pub fn set<T, E: Display>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'a>) -> Result<T, E>,
        slot: &mut T,
    ) -> Result<(), String> {
        self.known.push(key);
        if let Some(value) = self.table.get(key) {
            *slot = read(value.get_ref()).map_err(|e| self.wrong(value.span().start, key, e))?;
        }
        Ok(())
    }

    /// The table `key`, if it is there.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Section<'a>>, String> {
        self.known.push(key);
        match self.table.get_key_value(key) {
            Some((key, value)) => self.enter(key, value).map(Some),
            None => Ok(None),
        }
    }

    /// Every table of this one, with its name. Anything but a table is an error.
    pub fn sections(&self) -> Result<Vec<(&'a str, Section<'a>)>, String> {
        self.table
            .iter()
            .map(|(key, value)| Ok((key.get_ref().as_ref(), self.enter(key, value)?)))
            .collect()
    }

    fn enter(
        &self,
        key: &Spanned<DeString>,
        value: &'a Spanned<DeValue<'a>>,
    ) -> Result<Section<'a>, String> {
        let (offset, key) = (key.span().start, key.get_ref());
        let Some(table) = value.get_ref().as_table() else {
            let why = format!("this is a table, not {}", kind(value.get_ref()));
            return Err(self.wrong(value.span().start, key, why));
        };
        Ok(Section {
            path: format!("{}{}.", self.path, as_key(key)),
            offset,
            table,
            known: Vec::new(),
            ..*self
        })
    }

    /// Fails if there is a key that nobody has asked for.
    pub fn finish(self) -> Result<(), String> {
        let unknown = self
            .table
            .iter()
            .filter(|(key, _)| !self.known.contains(&key.get_ref().as_ref()))
            .min_by_key(|(key, _)| key.span().start);
        let Some((key, value)) = unknown else {
            return Ok(());
        };
        let hint = self.hint(key.get_ref(), value.get_ref());
        Err(self.wrong(
            key.span().start,
            key.get_ref(),
            format!("unknown key; {hint}"),
        ))
    }

    fn hint(&self, key: &str, value: &DeValue) -> String {
        if let Some(near) = nearest(key, &self.known) {
            return format!("did you mean {near:?}?");
        }
        let elsewhere = KEYS.iter().find(|(_, keys)| keys.contains(&key));
        if let Some((place, _)) = elsewhere {
            return format!("it belongs {place}");
        }
        if self.path.starts_with("volume_group.") && value.is_table() {
            return "a volume group's name with a dot in it is written in quotes: \
                    [volume_group.\"my.group\"]"
                .to_owned();
        }
        format!("known here: {}", self.known.join(", "))
    }

    /// The error that the value of `key`, which is at the byte `offset`, is wrong.
    pub fn wrong(&self, offset: usize, key: &str, why: impl Display) -> String {
        let line = line_of(self.text.as_bytes(), offset);
        format!(
            "{}, line {line}, {}{}: {why}",
            self.file,
            self.path,
            as_key(key)
        )
    }

    /// The error that this table is wrong as a whole.
    pub fn wrong_itself(&self, why: impl Display) -> String {
        let line = line_of(self.text.as_bytes(), self.offset);
        let path = self.path.trim_end_matches('.');
        format!("{}, line {line}, {path}: {why}", self.file)
    }
}

/// The known key that was probably meant: upper case, dashes and two wrong letters are forgiven,
/// in a short word one.
fn nearest(word: &str, known: &[&'static str]) -> Option<&'static str> {
    let plain = |word: &str| word.to_ascii_lowercase().replace(['-', '_', '.', ' '], "");
    let word = plain(word);
    let most = if word.chars().count() <= 4 { 1 } else { 2 };
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(&word, &plain(known)), *known))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, known)| known)
}

/// The type of a value, for "…, not an integer".
pub fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a text in quotes",
        DeValue::Integer(_) => "a number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const MISTAKES: [(&str, &str); 50] = [
        (
            "atach = true",
            "config.toml, line 1, atach: unknown key; did you mean \"attach\"?",
        ),
        (
            "\n\nfs-group = true",
            "line 3, fs-group: unknown key; did you mean \"fs_group\"?",
        ),
        (
            "colour = 1",
            "line 1, colour: unknown key; known here: attach, selinux_relabel, ",
        ),
        (
            "query = 30",
            "line 1, query: unknown key; it belongs into the table [limits]",
        ),
        (
            "[limits]\nlog = \"none\"",
            "line 2, limits.log: unknown key; it belongs at the beginning",
        ),
        (
            "[limits]\n\nqueri = 1",
            "line 3, limits.queri: unknown key; did you mean \"query\"?",
        ),
        (
            "limits.query = 0",
            "line 1, limits.query: whole seconds from 1 to 86400, not 0",
        ),
        (
            "limits.lock = 86401",
            "line 1, limits.lock: whole seconds from 1 to 86400, not 86401",
        ),
        (
            "limits.lock = -1",
            "limits.lock: whole seconds from 1 to 86400, not -1",
        ),
        (
            "limits.lock = 1.5",
            "limits.lock: whole seconds from 1 to 86400, not 1.5",
        ),
        (
            "limits.lock = \"1\"",
            "limits.lock: whole seconds from 1 to 86400, not a text in quotes",
        ),
        (
            "limits = 3",
            "line 1, limits: this is a table, not a number",
        ),
        (
            "attach = \"no\"",
            "line 1, attach: true or false, without quotes, not a text in quotes",
        ),
        ("attach =", "line 1, at \"attach =\": "),
        ("attach = yes", "line 1, at \"attach = yes\": "),
        ("[limits\nquery = 3", "line 1, at \"[limits\": "),
        (
            "log = \"none\"\nattach = true\nattach = false",
            "line 3, at \"attach = false\": duplicate key",
        ),
        ("node_name = \"a b\"", "node_name: a node's name is letters"),
        ("kubelet_dirs = []", "kubelet_dirs: at least one directory"),
        (
            "kubelet_dirs = [\n\"/a\",\n\"\"]",
            "kubelet_dirs: \"\" is no absolute path",
        ),
        (
            "kubelet_dirs = [\"/\"]",
            "kubelet_dirs: \"/\" must be a path below /",
        ),
        ("kubelet_dirs = \"/a\"", "kubelet_dirs: a list of texts"),
        (
            "kubelet_dirs = [1]",
            "kubelet_dirs: a text in quotes, not a number",
        ),
        (
            "tool_dirs = [\"bin\"]",
            "tool_dirs: \"bin\" is no absolute path",
        ),
        (
            "tool_dirs = [\"/a/../b\"]",
            "tool_dirs: \"/a/../b\" must be a path below /",
        ),
        (
            "tool_dirs = [\"/a\\u0000\"]",
            "tool_dirs: \"/a\\0\" holds a control character",
        ),
        (
            "default_fs = \"zfs\"",
            "default_fs: \"zfs\" is no filesystem of this driver; it knows ext2, ext3, ",
        ),
        ("default_fs = \"\"", "default_fs: \"\" is no filesystem"),
        (
            "stale_backups = true",
            "stale_backups: a text in quotes, not true or false",
        ),
        (
            "stale_backups = \"yes\"",
            "stale_backups: \"refuse\" or \"ignore\", not \"yes\"",
        ),
        (
            "thin_pool_limit = 0",
            "thin_pool_limit: whole percent from 1 to 100, not 0",
        ),
        (
            "thin_pool_limit = 101",
            "thin_pool_limit: whole percent from 1 to 100, not 101",
        ),
        (
            "thin_pool_limit = 357",
            "thin_pool_limit: whole percent from 1 to 100, not 357",
        ),
        (
            "log = \"lvm.log\"",
            "log: \"syslog\", \"none\" or the absolute path of a file",
        ),
        (
            "log = \"/var/log/\"",
            "log: \"syslog\", \"none\" or the absolute path of a file",
        ),
        (
            "log = \"/exec/example.com~lvm/log\"",
            "log: \"/exec/example.com~lvm/log\" is in the driver's own",
        ),
        (
            "filesystem.Ext4 = {}",
            "line 1, filesystem.Ext4: \"Ext4\" is no filesystem",
        ),
        (
            "[filesystem.zfs]\nx = 1",
            "line 1, filesystem.zfs: \"zfs\" is no filesystem of this driver; it knows ext2, ",
        ),
        (
            "filesystem.xfs.mkfs_option = []",
            "filesystem.xfs.mkfs_option: unknown key; did you mean \"mkfs_options\"?",
        ),
        (
            "filesystem.xfs.mount_options = \"bind\"",
            "line 1, filesystem.xfs.mount_options: ",
        ),
        (
            "filesystem.xfs.mount_options = \"noatime,ro\"",
            "said by the volume (readOnly), not by \"ro\"",
        ),
        (
            "\n[volume_group]",
            "line 2, volume_group: name at least one group",
        ),
        (
            "volume_group.data = 1",
            "volume_group.data: this is a table, not a number",
        ),
        (
            "[volume_group.\"a b\"]\ncreate = true",
            "line 1, volume_group.\"a b\": \"a b\" is no name for a volume group: ",
        ),
        (
            "[volume_group.my.group]",
            "volume_group.my.group: unknown key; a volume group's name with a dot",
        ),
        (
            "[volume_group.data]\nattach = true",
            "volume_group.data.attach: unknown key; it belongs at the beg",
        ),
        (
            "[volume_group.data]\nthin_pool = \"\"",
            "line 2, volume_group.data.thin_pool: ",
        ),
        (
            "[volume_group.data]\nmax_size = 10",
            "max_size: a size in quotes and with its unit, such as \"10g\"",
        ),
        (
            "[volume_group.data]\nmax_size = \"0\"",
            "max_size: it would allow no volume at all",
        ),
        (
            "[volume_group.data]\nreserve = \"5%\"",
            "line 2, volume_group.data.reserve: ",
        ),
    ];

    #[test]
    fn a_mistake_is_named_with_its_line_and_key() {
        for (text, want) in MISTAKES {
            let error = Config::parse(text, "config.toml").expect_err(text);
            assert!(error.contains(want), "{text}\n got {error}\nwant {want}");
            assert!(error.starts_with("config.toml"), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
