//! The table of what LVM says has each letter that LVM can report, and each once.

use std::collections::BTreeSet;

use super::sample::letter;
use crate::lvm::sample;
use crate::volume::decide::states::{May, State};

const PAGE: &str = include_str!("../../../../../docs/developers/lvm-states.md");

/// `data::states` sees that the page has each letter of the manual.
#[test]
fn each_letter_on_the_page_of_lvms_states_is_in_the_table() {
    let spans = PAGE.split('`').skip(1).step_by(2);
    let letters = spans.filter_map(|span| span.strip_prefix("lv_attr "));
    let letters = letters.filter_map(|span| span.split_once(' '));
    let mut number = 0;
    for (place, which) in letters.collect::<BTreeSet<_>>() {
        let place: usize = place.parse().unwrap();
        if ![1, 5, 9].contains(&place) {
            continue;
        }
        let mut volume = sample();
        letter(&mut volume, place, which.parse().unwrap());
        // LVM says no more of a merge that runs.
        volume.merge_failed.clear();
        let State { may, says, .. } = State::of(&volume);
        assert!(!says.starts_with("lv_attr"), "{place} {which}");
        assert_eq!(may == May::Make, says.is_empty(), "{place} {which}");
        number += 1;
    }
    assert!(number == 45, "{number}");
}
