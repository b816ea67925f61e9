//! The config changes while pods run.

use crate::prelude::*;

in_both_modes! {
    the_config_is_edited_while_pods_run
    what_a_pod_asks_wrongly_is_explained_in_the_event_word_for_word
}

fn the_config_is_edited_while_pods_run(mode: Mode) {
    let (_running, case, driver, volume) = scene("edited", mode);
    let other = Volume::new(&case, "other");
    let running = Pod::answering(&driver, "running", &volume);
    running.says("written");
    let tags = volume.tags();
    assert!(tags.starts_with("flexvolume.fs=ext4:"), "{tags}");

    // A mistake keeps new volumes from coming up, and none from going down.
    driver.configure(mode, "default_fz = \"xfs\"");
    let refused = Pod::writing(&driver, "refused", &other, "never");
    let text = refusal(mode, &refused.name, "default_fz");
    assert!(text.contains(&format!("{case}~lvm/config.toml")), "{text}");
    assert!(text.contains("line 2"), "{text}");
    running.answers(&driver, &volume);
    all_end(&driver, mode, &volume, &[running]);
    refused.ends();

    driver.configure(mode, "default_fs = \"xfs\"");
    let next = Pod::finding(&driver, "next", &volume);
    all_end(&driver, mode, &volume, &[next]);
    assert_eq!(volume.tags(), tags, "made once, not again");
    let life = match mode {
        Mode::Attach => "attach waitforattach mountdevice mount unmount unmountdevice detach",
        Mode::MountOnly => "mount unmount",
    };
    driver.assert_order(&format!("{life} {life}"));
}

fn what_a_pod_asks_wrongly_is_explained_in_the_event_word_for_word(mode: Mode) {
    let (_running, _, driver, volume) = scene("wrong", mode);
    // kubelet takes the text as a format, so a percent sign is a trap.
    let wrong = volume.clone().with("size", "32%s");
    let pod = Pod::writing(&driver, "web", &wrong, "never");
    let text = refusal(mode, &pod.name, "reason: ");
    assert_word_for_word(&driver, &text, "option size");
    assert_eq!(volume.tags(), "", "nothing was made on it");
    pod.ends();
    // Another filesystem is found by a later call than a wrong option.
    let driver = Driver::new(&mode.case("other"), mode);
    run("mkfs.ext4", &["-q", &volume.device()]);
    let pod = Pod::writing(&driver, "web", &volume.clone().fs("xfs"), "never");
    let text = warning(&pod.name, "reason: ");
    assert_word_for_word(&driver, &text, " holds ext4, not xfs; ");
    all_end(&driver, mode, &volume, &[pod]);
}

/// Checks that kubelet's event ends with the driver's reason, and that the reason contains these words.
fn assert_word_for_word(driver: &Driver, text: &str, words: &str) {
    let failures = driver.failures();
    let reason = failures.first().expect("a call has failed");
    assert!(reason.contains(words), "{reason}");
    // The log has the percent sign itself.
    let reason = reason.replace('%', "％");
    assert!(text.ends_with(&reason), "{text:?} holds not {reason:?}");
}

#[test]
fn a_node_leaves_attach_mode_while_pods_run() {
    change_mode(Mode::Attach, Mode::MountOnly);
}

#[test]
fn a_node_enters_attach_mode_while_pods_run() {
    change_mode(Mode::MountOnly, Mode::Attach);
}

fn change_mode(from: Mode, to: Mode) {
    let (_running, _, driver, volume) = scene("changing", from);
    let one = Pod::answering(&driver, "one", &volume);
    one.says("written");
    let two = inline_is_shared(from).then(|| Pod::finding(&driver, "two", &volume));

    driver.configure(to, "");
    one.answers(&driver, &volume);
    let beside = inline_is_shared(to).then(|| Pod::finding(&driver, "three", &volume));
    for pod in [Some(one), two, beside].iter().flatten() {
        pod.ends();
    }
    volume.is_unmounted();

    let four = Pod::finding(&driver, "four", &volume);
    all_end(&driver, to, &volume, &[four]);
    driver.assert_no_failure();
}
