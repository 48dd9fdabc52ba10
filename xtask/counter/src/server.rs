//! The socket: a byte asks, eight bytes answer.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::thread;

/// Answers each client in a thread of its own, until the emulator ends.
pub fn serve(listener: &UnixListener, count: impl Fn() -> u64 + Copy + Send + 'static) {
    for client in listener.incoming() {
        // A client that went before it was accepted wants no answer.
        let Ok(client) = client else { continue };
        thread::spawn(move || answer(&client, &client, count));
    }
}

/// Answers one client until it goes.
fn answer(mut questions: impl Read, mut answers: impl Write, count: impl Fn() -> u64) {
    let mut question = [0];
    while questions.read_exact(&mut question).is_ok() {
        if answers.write_all(&count().to_le_bytes()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::os::unix::net::UnixStream;

    #[test]
    fn each_byte_is_answered_with_the_count() {
        let next = Cell::new(0x0102_0304_0506_0707);
        let count = || {
            next.set(next.get() + 1);
            next.get()
        };
        let mut answers = Vec::new();
        answer(&b"??"[..], &mut answers, count);
        assert_eq!(answers, [8, 7, 6, 5, 4, 3, 2, 1, 9, 7, 6, 5, 4, 3, 2, 1]);
    }

    #[test]
    fn several_clients_are_served() {
        let path = std::env::temp_dir().join(format!("cairn-counter-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        thread::spawn(move || serve(&listener, || 7));
        let mut clients = [UnixStream::connect(&path).unwrap(), UnixStream::connect(&path).unwrap()];
        for client in clients.iter_mut().rev() {
            client.write_all(b"?").unwrap();
            let mut answer = [0; 8];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(u64::from_le_bytes(answer), 7);
        }
        std::fs::remove_file(path).unwrap();
    }
}
