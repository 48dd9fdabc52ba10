//! A key straight from a source of random words, for use before there is a pool.

/// Two words of a source. `None` if it gives none, or the same word twice: then it is taken to be broken, as a processor is
/// whose instruction gives all ones each time.
pub fn key(mut word: impl FnMut() -> Option<u64>) -> Option<[u64; 2]> {
    let [one, other] = [word()?, word()?];
    (one != other).then_some([one, other])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(words: &[u64]) -> Option<[u64; 2]> {
        let mut words = words.iter().copied();
        key(|| words.next())
    }

    #[test]
    fn the_key_is_what_the_source_gives() {
        assert_eq!(from(&[7, 9, 11]), Some([7, 9]));
        assert_eq!(from(&[9, 7]), Some([9, 7]));
        assert_eq!(from(&[0, u64::MAX]), Some([0, u64::MAX]));
    }

    #[test]
    fn a_source_that_fails_makes_no_key() {
        for words in [&[][..], &[7], &[7, 7], &[0, 0], &[u64::MAX, u64::MAX]] {
            assert_eq!(from(words), None, "{words:?}");
        }
    }
}
