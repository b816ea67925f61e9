/// The word in small letters, without dashes, dots and spaces: people write `VG-Name`, `vg_name` and `vgname`.
pub fn plain(word: &str) -> String {
    word.to_lowercase().replace(['-', '_', '.', ' '], "")
}

/// The known word that was probably meant: forgives upper case, dashes and two wrong letters (one in a
/// short word).
pub fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const LONGEST: usize = 32;
    if word.len() > LONGEST {
        return None;
    }
    let word = plain(word);
    let near = known.iter().filter_map(|known| {
        let plain = plain(known);
        let distance = strsim::damerau_levenshtein(&word, &plain);
        let most = if plain.len() <= 4 { 1 } else { 2 };
        (distance <= most).then_some((distance, plain.len(), *known))
    });
    near.min().map(|(_, _, known)| known)
}
