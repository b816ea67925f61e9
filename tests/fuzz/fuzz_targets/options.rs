//! The JSON with a pod's options, as far as kubelet lets a pod's author write it.
#![no_main]

use driver::names::LvId;
use driver::options::{MountOptions, Options, holds_secret};
use libfuzzer_sys::fuzz_target;

const SECRET: &str = r#""kubernetes.io/secret/password":"c2VjcmV0""#;

fuzz_target!(|json: &str| {
    let parsed = Options::parse(json);
    if let Ok(options) = &parsed {
        only_safe_words(options);
    }
    hides_a_secret(json, parsed.ok());
});

/// Checks all that may become a word of a command line.
fn only_safe_words(options: &Options) {
    let id = &options.id;
    assert_eq!(LvId::from_dm_name(&id.dm_name()).as_ref(), Some(id));
    let pool = options.thin_pool.iter().map(|pool| pool.as_str());
    for name in pool.chain([id.vg().as_str(), id.lv().as_str()]) {
        assert!(!name.starts_with('-') && !name.is_empty() && name != "." && name != "..");
        assert!(
            name.bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+_.-".contains(&b))
        );
    }
    let mount = &options.mount_options;
    // A pod may ask to read only, without the mount option.
    assert!(options.read_only || !mount.is_read_only());
    assert!(!(mount.is_read_only() && mount.is_read_write()));
    let joined = mount.joined().unwrap_or_default();
    assert!(joined.bytes().all(|b| b.is_ascii_graphic()) && !joined.starts_with('-'));
    assert_eq!(&MountOptions::of_pod(&joined).unwrap(), mount);
    let mut names = options.volume_name.iter();
    assert!(!names.any(|name| name.to_string().contains(char::is_control)));
}

/// The same options with a secret among them mean the same, and nothing shows the secret.
fn hides_a_secret(json: &str, without: Option<Options>) {
    let Some((lead, rest)) = json.split_once('{') else {
        return;
    };
    let comma = if rest.trim_start().starts_with('}') {
        ""
    } else {
        ","
    };
    let with = format!("{lead}{{{SECRET}{comma}{rest}");
    assert!(holds_secret(&with));
    if json.contains("c2VjcmV0") {
        return;
    }
    match (Options::parse(&with), without) {
        (Ok(with), Some(without)) => assert_eq!(with, without),
        (Err(error), None) => assert!(!format!("{error:#}{error:?}").contains("c2VjcmV0")),
        (with, without) => panic!("with the secret {with:?}, without it {without:?}"),
    }
}
