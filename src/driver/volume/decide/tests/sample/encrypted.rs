//! An encrypted volume: its header, the kernel's table, and the device inside.

use std::sync::LazyLock;

use serde_json::{Value, from_str, json};

use crate::crypt::{CIPHER, DmTable, Header, LAYOUT, Layout, layout_of};
use crate::names::FsType;
use crate::volume::decide::decision::Decision;
use crate::volume::decide::facts::{Content, Decrypted, Facts, Lvm};
use crate::volume::decide::wish::Wish;
use crate::volume::inside::Inside;

use super::*;

/// The UUID of the LUKS2 header, and then the tags of an encrypted volume.
pub const LUKS: &str = "0b1c2d3e-0000-4000-8000-00000000abcd";
pub const ENCRYPTED: &str =
    "flexvolume.fs=ext4:u,flexvolume.luks=0b1c2d3e-0000-4000-8000-00000000abcd";
pub const ENCRYPTING: &str = "flexvolume.making=luks2:ext4:0b1c2d3e-0000-4000-8000-00000000abcd:u";

/// The tag of a driver that let mkfs choose the UUID of the filesystem inside.
pub const OLD_ENCRYPTING: &str =
    "flexvolume.making=luks2:ext4:0b1c2d3e-0000-4000-8000-00000000abcd";

/// A LUKS2 header with this UUID and so many whole copies.
pub fn header(uuid: &str, whole: usize) -> Content {
    Content::Luks(Header {
        uuid: Some(uuid.to_owned()),
        is_whole: whole == 2,
        layouts: vec![Ok(layout()); whole],
    })
}

/// A LUKS2 header whose two copies are whole, with this change of the JSON in both.
pub fn says(uuid: &str, change: impl Fn(&mut Value)) -> Content {
    let mut content = whole(uuid);
    if let Content::Luks(header) = &mut content {
        header.layouts.fill(Ok(changed(change)));
    }
    content
}

/// The header that a luksFormat leaves if it is killed before it writes the key slots.
pub fn keyless(uuid: &str) -> Content {
    says(uuid, |json| json["keyslots"] = json!({}))
}

/// The header that a luksFormat leaves if it is killed when it has written the key slots into one of the copies.
pub fn half_keyless(uuid: &str) -> Content {
    let mut content = whole(uuid);
    if let Content::Luks(Header { layouts, .. }) = &mut content
        && let Some(older) = layouts.last_mut()
    {
        *older = Ok(changed(|json| json["keyslots"] = json!({})));
    }
    content
}

/// The layout of a header that luksFormat has made. Parsed once, since the proof asks for it in each of its cases.
pub fn layout() -> Layout {
    WHOLE.clone()
}

pub static WHOLE: LazyLock<Layout> =
    LazyLock::new(|| layout_of(LAYOUT.as_bytes(), 16 << 10).unwrap());

/// The decision to open the volume for writing.
pub const OPEN: Decision = Decision::Open { read_only: false };

/// The same layout after a change of its JSON.
pub fn changed(change: impl Fn(&mut Value)) -> Layout {
    let mut json = from_str(LAYOUT).unwrap();
    change(&mut json);
    layout_of(json.to_string().as_bytes(), 16 << 10).unwrap()
}

/// The only segment of a layout, to change it.
pub fn segment(json: &mut Value) -> &mut Value {
    &mut json["segments"]["0"]
}

/// The only key slot of a layout, to change it.
pub fn slot(json: &mut Value) -> &mut Value {
    &mut json["keyslots"]["0"]
}

/// `cryptsetup reencrypt` was cut short: two segments have keys of their own, and one is being moved.
pub fn reencrypting(json: &mut Value) {
    json["segments"]["1"] = segment(json).clone();
    slot(json)["type"] = "reencrypt".into();
    json["config"]["requirements"] = json!({ "mandatory": ["online-reencrypt-v2"] });
}

/// The kernel's table of an open volume.
pub fn table() -> DmTable {
    DmTable {
        target: "crypt".into(),
        cipher: CIPHER.into(),
        has_key: true,
        below: blank().device.map(|device| device.number),
        offset: Some(16 << 20),
        sector_size: 512,
        options: Vec::new(),
    }
}

pub fn whole(uuid: &str) -> Content {
    header(uuid, 2)
}

/// The volume is open, with the header of this UUID.
pub fn opened(facts: &mut Facts, uuid: &str) {
    let mut device = blank().device.unwrap();
    device.number.minor = 2;
    device.path = "/dev/mapper/flexvolume.ab".into();
    device.luks = Some(uuid.to_owned());
    uses(facts).inside = Some(Inside {
        device,
        read_only: false,
    });
    if let Some(Lvm::Volume { volume, .. }) = &mut facts.lvm {
        volume.open = true;
        facts.openers.get_or_insert_default();
    }
}

/// The volume is encrypted, and its header is the recorded one.
pub fn encrypted(facts: &mut Facts) {
    tags(facts, ENCRYPTED);
    facts.content = Some(whole(LUKS));
}

/// The encrypted volume is open, with the recorded filesystem inside.
pub fn encrypted_and_open(facts: &mut Facts) {
    encrypted(facts);
    opened(facts, LUKS);
    holds_inside(facts, Content::Filesystem(found(FsType::Ext4)));
}

pub fn holds_inside(facts: &mut Facts, content: Content) {
    let table = table();
    facts.decrypted = Some(Decrypted { content, table });
}

/// A call was killed during the mkfs inside, or somebody restored LVM's metadata of that moment. The volume is open.
pub fn cut_short_inside(facts: &mut Facts, wish: &mut Wish, inside: Content) {
    wish.encrypted = Some(true);
    encrypted_and_open(facts);
    tags(facts, ENCRYPTING);
    holds_inside(facts, inside);
}
