//! Base64 (RFC 4648, section 4).

/// The bytes that a text stands for; `None` if it stands for none.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    if !text.len().is_multiple_of(4) || text.len() - digits.len() > 2 {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for group in digits.as_bytes().chunks(4) {
        let mut word = 0_u32;
        for (place, digit) in group.iter().enumerate() {
            word |= u32::from(value(*digit)?) << (18 - 6 * place);
        }
        bytes.extend_from_slice(word.to_be_bytes().get(1..group.len())?);
    }
    Some(bytes)
}

fn value(digit: u8) -> Option<u8> {
    match digit {
        b'A'..=b'Z' => Some(digit - b'A'),
        b'a'..=b'z' => Some(digit - b'a' + 26),
        b'0'..=b'9' => Some(digit - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn texts_of_the_specification() {
        let texts =
            [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob"), ("Zm9vYmFy", "foobar")];
        for (text, bytes) in texts {
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decode("+/8="), Some(vec![0xfb, 0xff]));
        for bad in ["Z", "Zg=", "Zg", "Z===", "Zm9!", "===="] {
            assert_eq!(decode(bad), None, "{bad}");
        }
    }
}
