//! The socket: a byte asks, the counts answer, eight bytes each.
//!
//! [`BEGIN_RECORD`] and [`END_RECORD`] do something besides; any other byte only asks.

use crate::emulator::Counts;
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

/// From here on the order of instructions is recorded.
pub const BEGIN_RECORD: u8 = b'(';
/// Until here: before the answer, the record is in its file.
pub const END_RECORD: u8 = b')';

/// Answers each client in a thread of its own, until the emulator ends.
pub fn serve(listener: &UnixListener, counts: impl Fn(u8) -> Counts + Copy + Send + 'static) {
    for client in listener.incoming() {
        // A client that went before it was accepted wants no answer.
        let Ok(client) = client else { continue };
        thread::spawn(move || answer(&client, &client, counts));
    }
}

/// Answers one client until it goes.
fn answer(mut questions: impl Read, mut answers: impl Write, counts: impl Fn(u8) -> Counts) {
    let mut question = [0];
    while questions.read_exact(&mut question).is_ok() {
        if answers.write_all(counts(question[0]).map(u64::to_le_bytes).as_flattened()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::emulator::COUNTS;
    use std::cell::Cell;
    use std::os::unix::net::UnixStream;

    #[test]
    fn each_byte_is_answered_with_the_counts() {
        let next = Cell::new(0x0102_0304_0506_0707);
        let counts = |_| {
            next.set(next.get() + 1);
            let mut counts = [0; COUNTS];
            counts[0] = next.get();
            counts
        };
        let mut answers = Vec::new();
        answer(&b"??"[..], &mut answers, counts);
        let bytes = size_of::<Counts>();
        assert_eq!(answers.len(), 2 * bytes);
        assert_eq!(answers[..9], [8, 7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(answers[bytes..][..9], [9, 7, 6, 5, 4, 3, 2, 1, 0]);
    }

    #[test]
    fn several_clients_are_served() {
        let path = std::env::temp_dir().join(format!("cairn-counter-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || serve(&listener, |_| [7; COUNTS]));
        let mut clients = [UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap()];
        for client in clients.iter_mut().rev() {
            client.write_all(b"?").unwrap();
            let mut answer = [0; size_of::<Counts>()];
            client.read_exact(&mut answer).unwrap();
            assert!(answer.chunks(8).all(|count| count == 7u64.to_le_bytes()));
        }
        std::fs::remove_file(path).unwrap();
    }
}
