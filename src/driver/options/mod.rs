//! The options of a volume, as kubelet passes them: the manifest's and kubelet's own.

mod mount_options;
mod passphrase;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::ffi::OsStr;

use anyhow::{Context, Result, anyhow, bail};
use zeroize::Zeroizing;

use crate::names::{
    Bytes, Encryption, FsType, LvId, LvName, ObjectName, VgName, cited, nearest, plain,
};
pub use mount_options::MountOptions;
pub use passphrase::{LONGEST as LONGEST_PASSPHRASE, Passphrase};

const KUBELET: &str = "kubernetes.io/";
/// kubelet passes each value of a Secret as an option whose name begins with this.
const SECRET: &str = "kubernetes.io/secret/";
/// The option with the passphrase of an encrypted volume, from a Secret.
pub const PASSPHRASE: &str = "kubernetes.io/secret/passphrase";

pub const GROUP: &str = "volumegroup";
pub const VOLUME: &str = "volumeID";
pub const FS_TYPE: &str = "kubernetes.io/fsType";
pub const READ_WRITE: &str = "kubernetes.io/readwrite";
pub const NAME: &str = "kubernetes.io/pvOrVolumeName";
const SIZE: &str = "size";
const POOL: &str = "thinpool";
const MOUNT: &str = "mountoptions";
const ENCRYPTION: &str = "encryption";
pub const KNOWN: [&str; 6] = [GROUP, VOLUME, SIZE, POOL, MOUNT, ENCRYPTION];

/// The checked options of one volume. Of its secrets, only the passphrase is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    pub id: LvId,
    pub fs: Option<FsType>,
    /// `readOnly` of the manifest, or `ro` among the mount options.
    pub read_only: bool,
    /// `size`, for a volume that is to be created.
    pub size: Option<Bytes>,
    pub thin_pool: Option<LvName>,
    /// `encryption`, for a volume that is encrypted or is to be encrypted.
    pub encryption: Option<Encryption>,
    /// The passphrase in the Secret that the volume names.
    pub passphrase: Option<Passphrase>,
    pub mount_options: MountOptions,
    /// The name of the `PersistentVolume`, or of the volume in its pod.
    pub volume_name: Option<ObjectName>,
}

impl Options {
    pub fn of(id: LvId, fs: Option<FsType>, read_only: bool) -> Self {
        Self {
            id,
            fs,
            read_only,
            size: None,
            thin_pool: None,
            encryption: None,
            passphrase: None,
            mount_options: MountOptions::default(),
            volume_name: None,
        }
    }

    /// Parses the JSON that kubelet passes. A manifest's option replaces kubelet's own option of the same name. So
    /// kubelet's options are trusted no more than a manifest's.
    pub fn parse(json: &str) -> Result<Self> {
        let (mut pairs, passphrase) = pairs(json)?;
        refuse_near_misses(&pairs)?;
        let encryption = pairs.remove(ENCRYPTION);
        let encryption = read(ENCRYPTION, encryption.as_deref(), Encryption::parse)?;
        // A template may write an empty text for a value that it has not. Such an option is absent. Not so
        // `encryption`: a mistake in the template would make a plain volume.
        let mut take = |name: &str| pairs.remove(name).filter(|text| !text.is_empty());

        let group = required(GROUP, take(GROUP))?;
        let volume = required(VOLUME, take(VOLUME))?;
        let id = volume_id(&group, &volume)?;
        let fs = take(FS_TYPE)
            .map(|name| FsType::parse(&name).context("reading fsType"))
            .transpose()?;
        let said_read_only = is_read_only(take(READ_WRITE).as_deref())?;
        let size = read(SIZE, take(SIZE).as_deref(), Bytes::parse_lvm)?;
        if size == Some(Bytes::default()) {
            bail!("option {SIZE} is 0; leave it out or give the size of the volume");
        }
        let thin_pool = read(POOL, take(POOL).as_deref(), LvName::parse)?;
        let passphrase = passphrase
            .map(|text| Passphrase::from_base64(&text))
            .transpose()
            .context("reading the key passphrase of the volume's Secret")?;
        let mount_options =
            read(MOUNT, take(MOUNT).as_deref(), MountOptions::of_pod)?.unwrap_or_default();
        if said_read_only && mount_options.is_read_write() {
            bail!("option {MOUNT} holds rw, and the volume is readOnly; leave one out");
        }
        let read_only = said_read_only || mount_options.is_read_only();
        let volume_name = read(NAME, take(NAME).as_deref(), ObjectName::of_volume)?;
        Ok(Self {
            size,
            thin_pool,
            encryption,
            passphrase,
            mount_options,
            volume_name,
            ..Self::of(id, fs, read_only)
        })
    }
}

/// What kubelet's option [`READ_WRITE`] says. Without it, the volume may be written.
fn is_read_only(text: Option<&str>) -> Result<bool> {
    match text {
        None | Some("rw") => Ok(false),
        Some("ro") => Ok(true),
        Some(other) => bail!(
            "option {READ_WRITE} is {}, and must be ro or rw",
            cited(other)
        ),
    }
}

/// Parses an option, if it was given.
fn read<T>(name: &str, text: Option<&str>, parse: fn(&str) -> Result<T>) -> Result<Option<T>> {
    let value = text.map(parse).transpose();
    value.with_context(|| format!("reading option {name}"))
}

/// Parses a person's `KEY=VALUE`. The keys `fsType` and `readwrite` are no options of a manifest: for them, returns
/// kubelet's names.
pub fn by_hand(pair: &str) -> Result<(String, String)> {
    let (key, value) = pair
        .split_once('=')
        .context("-o takes KEY=VALUE, such as -o volumegroup=VG")?;
    let key = match key {
        "fsType" => FS_TYPE,
        "readwrite" => READ_WRITE,
        key => match field(key) {
            Some("fsType") => bail!("-o {} is not an option: write -o fsType=TYPE", cited(key)),
            Some("readOnly") => bail!("-o {} is not an option: write -o readwrite=ro", cited(key)),
            _ => key,
        },
    };
    Ok((key.to_owned(), value.to_owned()))
}

type Pairs = BTreeMap<String, String>;

/// The pairs in kubelet's JSON, which is one flat object of strings. Removes all secrets from the pairs, and returns
/// the passphrase beside the pairs.
fn pairs(json: &str) -> Result<(Pairs, Option<Zeroizing<String>>)> {
    const FORM: &str =
        r#"they must be one object of strings, such as {"volumegroup":"vg","volumeID":"data"}"#;
    if !json.trim_start().starts_with('{') {
        bail!("the options are not a JSON object; {FORM}");
    }
    let mut pairs: Pairs = serde_json::from_str(json).map_err(|e| {
        // serde's message about a wrong type quotes the value, which could be a secret.
        if e.is_data() {
            anyhow!(
                "one of the options is not a string (column {}); {FORM}",
                e.column()
            )
        } else {
            anyhow!("the options are not valid JSON ({e}); {FORM}")
        }
    })?;
    let passphrase = pairs.remove(PASSPHRASE).map(Zeroizing::new);
    let secrets = pairs.extract_if(.., |name, _| name.starts_with(SECRET));
    // Wipes the memory of the other secrets.
    secrets.for_each(|(_, secret)| drop(Zeroizing::new(secret)));
    Ok((pairs, passphrase))
}

/// Whether an argument of the call contains a secret, or a part of one. kubelet logs the arguments of a call that does
/// not exit with 0.
#[allow(clippy::disallowed_methods)] // It shows nothing.
pub fn holds_secret(argument: impl AsRef<OsStr>) -> bool {
    let argument = argument.as_ref();
    // The length comes first, to save time: each call checks all of its words, and most are shorter.
    argument.len() >= SECRET.len() && argument.to_string_lossy().contains(SECRET)
}

/// Refuses a misspelt option, and a field of the volume that was put among the options. If these were ignored, the
/// volume would be another than the manifest asks for.
fn refuse_near_misses(pairs: &BTreeMap<String, String>) -> Result<()> {
    for (name, value) in pairs.iter().filter(|(name, _)| !is_known(name)) {
        if let Some(field) = field(name) {
            bail!(
                "{} is not an option: write `{field}` beside `driver` and `options`, not among the \
                 options",
                cited(name)
            );
        }
        if let Some(meant) = nearest(name, &KNOWN) {
            bail!("unknown option {}; did you mean {meant}?", cited(name));
        }
        if is_about_secrets(name, value) {
            bail!(
                "unknown option {}: a volume is encrypted by the option `encryption: luks2`, and its passphrase comes \
                 from the volume's `secretRef` or from the `key_file` of config.toml",
                cited(name)
            );
        }
    }
    Ok(())
}

/// Whether an option is the driver's or kubelet's. Only other names are checked for misspellings: to check every name
/// would take half the time of a call without LVM.
fn is_known(name: &str) -> bool {
    KNOWN.contains(&name) || name.starts_with(KUBELET)
}

/// Whether this option is about encryption or a key. Its author wants an encrypted volume, and would get a plain one if
/// the option were ignored.
fn is_about_secrets(name: &str, value: &str) -> bool {
    const SIGNS: [&str; 6] = [
        "crypt",
        "luks",
        "cipher",
        "passphrase",
        "password",
        "keyfile",
    ];
    let (name, value) = (plain(name), plain(value));
    name.starts_with("enc")
        || SIGNS.iter().any(|sign| name.contains(sign))
        || ["luks", "dmcrypt", "aesxts"]
            .iter()
            .any(|sign| value.starts_with(sign))
}

/// The field of a volume, beside its options, that a person meant by this name. `None`: no field. Source: Kubernetes'
/// `FlexVolumeSource`.
fn field(name: &str) -> Option<&'static str> {
    match plain(name).as_str() {
        "fstype" | "filesystem" => Some("fsType"),
        "readonly" | "readwrite" => Some("readOnly"),
        "secretref" => Some("secretRef"),
        _ => None,
    }
}

fn required(name: &str, value: Option<String>) -> Result<String> {
    value.with_context(|| {
        format!("option {name} is missing; `lvs` shows the names of groups and volumes")
    })
}

fn volume_id(group: &str, volume: &str) -> Result<LvId> {
    // Some people write the volume's device, or VG/LV, here.
    if let Ok(id) = LvId::named(volume) {
        bail!(
            "option {VOLUME} is {}, and must be the logical volume's name alone: set {VOLUME} to \
             {:?} and {GROUP} to {:?}",
            cited(volume),
            id.lv().as_str(),
            id.vg().as_str()
        );
    }
    let vg = VgName::parse(group).with_context(|| format!("reading option {GROUP}"))?;
    let lv = LvName::parse(volume).with_context(|| format!("reading option {VOLUME}"))?;
    Ok(LvId::new(vg, lv))
}
