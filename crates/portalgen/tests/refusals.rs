//! Specifications that cannot be: at which letter, and why; and that no text makes the parser or the generators panic.
#![allow(missing_docs)]

mod common;

use portalgen::specification::{MAX_BYTES, MAX_WORDS};
use portalgen::{Code, Letter, Progress, Refusal, Specification, State, Why, aarch64, x86_64};
use proptest::prelude::*;

#[test]
fn each_refusal_has_its_place_and_reason() {
    let long = [b"np".as_slice(), &[b'i'; 1000]].concat();
    let cases: &[(&[u8], usize, Why)] = &[
        (b"", 0, Why::NoStack),
        (b"pn", 0, Why::NoStack),
        (b"sm", 0, Why::NotYet),
        (b"n", 1, Why::NoState),
        (b"ni", 1, Why::NoState),
        (b"npz", 2, Why::Unknown),
        (b"np>>", 3, Why::Unknown),
        (b"npi i", 3, Why::Unknown),
        (b"np3", 2, Why::Unknown),
        (b"npr", 2, Why::Unknown),
        (b"npww", 3, Why::Twice),
        (b"nmw", 2, Why::NotWithWindow),
        (b"npx5w", 4, Why::NotWithWindow),
        (b"npwx5", 3, Why::NotWithWindow),
        (b"npiwa>ii", 4, Why::NotWithWindow),
        (b"npaw", 3, Why::NotWithWindow),
        (b"np>w", 3, Why::NotInReturn),
        (b"npaa", 3, Why::Twice),
        (b"npda", 3, Why::Twice),
        (b"npao", 3, Why::Twice),
        (b"npx", 2, Why::NoSize),
        (b"npx0", 2, Why::NoSize),
        (b"npx9", 2, Why::NoSize),
        (b"npbib", 4, Why::Twice),
        (b"npdg", 3, Why::Twice),
        (b"npck", 3, Why::Twice),
        (b"npcc", 3, Why::Twice),
        (b"npob", 3, Why::Twice),
        (b"npdo", 3, Why::Twice),
        (b"np>oo", 4, Why::Twice),
        (b"nmo", 2, Why::NotWithControl),
        (b"npx5oi", 5, Why::NotWithControl),
        (b"npx6o", 4, Why::NotWithControl),
        (b"npot", 3, Why::NotWithControl),
        (b"npo", 3, Why::OneControl),
        (b"npoi>", 5, Why::OneControl),
        (b"npo>i", 5, Why::OneControl),
        (b"np>o", 4, Why::OneControl),
        (b"npi>io", 6, Why::OneControl),
        (b"np>bb", 4, Why::Twice),
        (b"np>c", 3, Why::NotInReturn),
        (b"np>k", 3, Why::NotInReturn),
        (b"npx8id>", 5, Why::NotInArea),
        (b"npx8g", 4, Why::NotInArea),
        (b"np>x8ib", 6, Why::NotInArea),
        (b"npx8x8i", 6, Why::TooManyWords),
        (b"npiiiiiiiiiii", 12, Why::TooLong),
        (&long, MAX_BYTES, Why::TooLong),
    ];
    for (text, at, why) in cases {
        let name = String::from_utf8_lossy(text);
        assert_eq!(Specification::parse(text), Err(Refusal { at: *at, why: *why }), "{name}");
    }
    let refusal = Refusal { at: 3, why: Why::NotYet };
    assert_eq!(refusal.to_string(), "letter 4: shared stacks are not made");
}

#[test]
fn letters_mean_what_they_say() {
    let specification = Specification::parse(b"nmcix3bdi>it").expect("a specification");
    assert_eq!(specification.state, State::Minimal);
    assert!(specification.needs_trust());
    let call: Vec<_> = specification.call.iter().collect();
    use Letter::{Bytes, Constant, Delegated, Structure, Time, Word};
    assert_eq!(call, [(0, Constant), (1, Word), (2, Structure(3)), (5, Bytes), (6, Delegated), (7, Word)]);
    assert_eq!(specification.result.iter().collect::<Vec<_>>(), [(0, Word), (1, Time)]);
    assert_eq!(
        (specification.call.words(), specification.call.bytes(), specification.call.entry()),
        (8, Some(5), Some(6))
    );
    assert!(!Specification::parse(b"npkiii>i").expect("a specification").needs_trust());
    let large = Specification::parse(b"npx8x8>").expect("a specification");
    assert_eq!((large.call.words(), large.call.in_registers(), large.call.in_area()), (MAX_WORDS, 9, 7));
}

#[test]
fn the_control_word_that_callers_must_expect() {
    use abi::expect::{ALL_FIVE, AREA, ENTRIES, MORE_WORDS};
    for (text, expected) in [
        ("np", Some(0)),
        ("npkx5>x5", Some(ALL_FIVE)),
        ("npciii>it", Some(0b1110)),
        ("npitici>i", Some(0b10101)),
        ("npkox5>ox5", None),
        ("npx5i", Some(ALL_FIVE | MORE_WORDS)),
        ("np>x8", Some(MORE_WORDS)),
        ("npkx8i>i", Some(ALL_FIVE | MORE_WORDS)),
        ("npx8ii", Some(ALL_FIVE | MORE_WORDS | AREA)),
        ("np>x8x2", Some(MORE_WORDS | AREA)),
        ("npib", Some(0b11 | AREA)),
        ("np>b", Some(AREA)),
        ("npd", Some(1 | ENTRIES)),
        ("np>d", Some(ENTRIES)),
        ("npg>i", Some(0b11 | ENTRIES)),
        ("npi>g", Some(1 | ENTRIES)),
        ("npbd>x6", Some(0b11 | MORE_WORDS | AREA | ENTRIES)),
    ] {
        let specification = Specification::parse(text.as_bytes()).expect("a specification");
        assert_eq!(specification.expects(), expected, "{text}");
    }
}

#[test]
fn a_specification_is_reported_as_it_was_written() {
    for text in common::TABLE {
        let reported = Specification::parse(text).expect("a specification").text();
        assert_eq!(reported[..text.len()], *text);
        assert!(reported[text.len()..].iter().all(|byte| *byte == 0));
    }
    let short = Specification::parse(b"nm").expect("a specification").text();
    assert_eq!(&short[..4], b"nm>\0");
}

macro_rules! lengths {
    ($isa:ident, $specification:ident, $room:ident) => {
        let lengths = [$room, 4096].map(|room| {
            let mut bytes = vec![0xaa; room];
            let mut code = Code::new(&mut bytes, common::CODE);
            let extent = $isa::Generator::new(&common::NUCLEUS).write(&mut code, &$specification, &common::TARGETS);
            assert_eq!(code.fits(), extent.length + 8 <= room);
            extent.length
        });
        prop_assert_eq!(lengths[0], lengths[1]);
        // The nucleus has places of 1,024 bytes. Code for x86-64 that opens a window may be longer, and is refused then.
        let most = if stringify!($isa) == "x86_64" && $specification.call.window().is_some() { 1200 } else { 1024 };
        prop_assert!(lengths[0] + 8 <= most, "{} bytes", lengths[0]);
    };
}

macro_rules! in_steps {
    ($isa:ident, $specification:ident, $effort:ident) => {
        let generator = $isa::Generator::new(&common::NUCLEUS);
        let [mut whole, mut parts] = [(); 2].map(|()| vec![0xaa; 1200]);
        let extent = generator.write(&mut Code::new(&mut whole, common::CODE), &$specification, &common::TARGETS);
        let mut progress = Progress::NONE;
        let mut steps = 0;
        while !progress.is_done() {
            let mut code = Code::new(&mut parts, common::CODE).go_on(progress.extent.length);
            generator.write_steps(&mut code, &$specification, &common::TARGETS, &mut progress, $effort);
            // The largest work of a step, whatever else was done.
            let more = if $specification.call.window().is_some() { 24 } else { 16 };
            prop_assert!(code.effort() < $effort + more, "{} at once", code.effort());
            steps += 1;
        }
        prop_assert!(steps > 2 || $effort > 4);
        prop_assert_eq!(progress.extent, extent);
        prop_assert_eq!(whole, parts);
    };
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(text in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = Specification::parse(&text);
    }

    #[test]
    fn likely_texts_are_refused_within_or_made(text in "[ns][pm][icxbdgkotwa1-8>]{0,16}", room in 0_usize..1200) {
        match Specification::parse(text.as_bytes()) {
            Err(Refusal { at, why }) => prop_assert!(at < text.len() || why == Why::OneControl),
            Ok(specification) => {
                // Where there is too little room nothing is written beyond it, and the length is the same.
                lengths!(x86_64, specification, room);
                lengths!(aarch64, specification, room);
            }
        }
    }

    #[test]
    fn code_is_the_same_however_it_is_divided(text in "np[icxbdgkotwa1-8]{0,8}>[ixbdgota1-8]{0,8}", effort in 1_usize..20) {
        if let Ok(specification) = Specification::parse(text.as_bytes()) {
            in_steps!(x86_64, specification, effort);
            in_steps!(aarch64, specification, effort);
        }
    }
}
