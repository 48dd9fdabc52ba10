//! Programs read exactly the bytes that were typed.

use proptest::prelude::*;
use terminal::{Event, Input, MAX_ECHO, Mode, send};

fn typed(input: &mut Input, bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut echo = Vec::new();
    let events: Vec<Event> = bytes.iter().map(|byte| input.receive(*byte, &mut echo)).collect();
    (echo, events.contains(&Event::Interrupt))
}

fn read(input: &mut Input, most: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; most];
    input.read(&mut bytes).map(|count| bytes[..count].to_vec())
}

#[test]
fn lines_are_handed_over_when_finished() {
    let mut input = Input::new();
    assert_eq!(typed(&mut input, b"ab").0, b"ab");
    assert_eq!(read(&mut input, 10), None);
    assert_eq!(typed(&mut input, b"\x7fc\r\nde\r").0, b"\x08 \x08c\r\nde\r\n");
    assert_eq!(read(&mut input, 2).unwrap(), b"ac");
    assert_eq!(read(&mut input, 10).unwrap(), b"\n");
    assert_eq!(read(&mut input, 10).unwrap(), b"de\n");
    assert_eq!(read(&mut input, 10), None);
}

#[test]
fn end_of_input() {
    let mut input = Input::new();
    typed(&mut input, b"ab\x04\x04x\r");
    assert_eq!(read(&mut input, 10).unwrap(), b"ab");
    assert_eq!(read(&mut input, 10).unwrap(), b"");
    assert_eq!(read(&mut input, 10).unwrap(), b"x\n");
}

#[test]
fn corrections() {
    let mut input = Input::new();
    typed(&mut input, "one two\x17x \x17äö\x7f\x15z\r".as_bytes());
    assert_eq!(read(&mut input, 20).unwrap(), b"z\n");
    typed(&mut input, "one two\x17x äö\x7f\r".as_bytes());
    assert_eq!(read(&mut input, 20).unwrap(), "one x ä\n".as_bytes());
}

#[test]
fn interrupt_throws_away() {
    let mut input = Input::new();
    let (echo, interrupted) = typed(&mut input, b"a\rb\x03");
    assert!(interrupted);
    assert!(echo.ends_with(b"^C\r\n"));
    assert_eq!(read(&mut input, 10), None);
}

#[test]
fn keys_are_not_echoed_and_ctrl_c_interrupts() {
    let mut input = Input::new();
    let mut echo = Vec::new();
    typed(&mut input, b"q");
    assert!(!input.set_mode(Mode::Keys, &mut echo));
    assert_eq!(typed(&mut input, b"a\x04\r"), (Vec::new(), false));
    assert_eq!(read(&mut input, 10).unwrap(), b"qa\x04\r");
    assert_eq!(typed(&mut input, b"b\x03"), (b"^C\r\n".to_vec(), true));
    assert_eq!(read(&mut input, 10), None);
    typed(&mut input, b"c");
    input.set_mode(Mode::Raw, &mut echo);
    assert_eq!(typed(&mut input, b"\x03"), (Vec::new(), false));
    assert_eq!(read(&mut input, 10).unwrap(), b"c\x03");
}

#[test]
fn typed_ahead_survives_the_mode() {
    let mut input = Input::new();
    let mut echo = Vec::new();
    input.set_mode(Mode::Raw, &mut echo);
    typed(&mut input, b"cat\rhello\r");
    assert_eq!(read(&mut input, 4).unwrap(), b"cat\r");
    assert!(!input.set_mode(Mode::Cooked, &mut echo));
    assert_eq!(echo, b"hello\r\n");
    assert_eq!(read(&mut input, 10).unwrap(), b"hello\n");
    typed(&mut input, b"ls");
    input.set_mode(Mode::Raw, &mut echo);
    assert_eq!(read(&mut input, 10).unwrap(), b"ls");
    typed(&mut input, b"x\x03");
    assert!(input.set_mode(Mode::Cooked, &mut echo));
}

#[test]
fn new_lines_are_sent_whole() {
    let mut sent = Vec::new();
    assert_eq!(send(b"a\nb", 2, |byte| sent.push(byte)), 1);
    assert_eq!(sent, b"a");
    assert_eq!(send(b"\nb", 3, |byte| sent.push(byte)), 2);
    assert_eq!(sent, b"a\r\nb");
}

#[test]
fn echo_that_nobody_sends_is_bounded() {
    let mut input = Input::new();
    let mut echo = Vec::new();
    for count in 0..10_000 {
        input.receive(b'x', &mut echo);
        if count % 100 == 0 {
            input.receive(0x15, &mut echo);
        }
    }
    input.set_mode(Mode::Raw, &mut echo);
    for _ in 0..10_000 {
        input.receive(b'\r', &mut echo);
    }
    input.set_mode(Mode::Cooked, &mut echo);
    assert!(echo.len() > MAX_ECHO - 4 && echo.len() <= MAX_ECHO, "{}", echo.len());
}

proptest! {
    #[test]
    fn nothing_panics_and_memory_is_bounded(
        steps in prop::collection::vec((any::<u8>(), 0..40usize, any::<bool>()), 0..400),
    ) {
        let mut input = Input::new();
        let mut echo = Vec::new();
        for (byte, count, switch) in steps {
            if switch && byte < 30 {
                let mode = if input.mode() == Mode::Raw { Mode::Cooked } else { Mode::Raw };
                input.set_mode(mode, &mut echo);
            }
            input.receive(byte, &mut echo);
            prop_assert!(echo.len() <= MAX_ECHO);
            if count < 5 {
                let ready = input.ready();
                prop_assert_eq!(read(&mut input, count + 1).is_some(), ready);
            }
        }
    }

    #[test]
    fn printable_lines_are_read_as_typed(lines in prop::collection::vec("[a-zäö ]{0,30}", 0..20)) {
        let mut input = Input::new();
        for line in &lines {
            typed(&mut input, line.as_bytes());
            typed(&mut input, b"\r");
        }
        for line in &lines {
            prop_assert_eq!(read(&mut input, 100).unwrap(), format!("{line}\n").into_bytes());
        }
        prop_assert!(!input.ready());
    }

    #[test]
    fn raw_bytes_are_read_as_typed(bytes in prop::collection::vec(any::<u8>(), 0..200), cut in 1..9usize) {
        let mut input = Input::new();
        input.set_mode(Mode::Raw, &mut Vec::new());
        typed(&mut input, &bytes);
        let mut all = Vec::new();
        while let Some(part) = read(&mut input, cut) {
            all.extend(part);
        }
        prop_assert_eq!(all, bytes);
    }
}
