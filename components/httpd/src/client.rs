//! One connection: reads requests, sends answers.

use alloc::vec::Vec;

use abi::PAGE_BYTES;
use http::{Parsed, Status};
use idl::Failure;
use runtime::op;
use runtime::sync::Mutex;
use runtime::window::Page;
use sockets::{NetError, Refusal, Stream, WHOLE_SEGMENTS};

use crate::answer::{self, Body};
use crate::files::Files;

const SECOND: u64 = 1_000_000_000;
/// How long a connection may be idle.
const IDLE: u64 = 60 * SECOND;
/// How long a request may take to come.
const REQUEST: u64 = 10 * SECOND;
/// How long no byte of an answer may be taken.
const PROGRESS: u64 = 20 * SECOND;
/// Bytes that are read at once.
pub const PIECE: usize = 4000;
/// Requests answered before others have their turn.
const TURN: usize = 16;

/// Pages of a file that are sent at once, at most: as many as the network keeps for a connection.
pub const SENT_AT_ONCE: usize = 4;
/// Buffer for the part of a file that is being sent. The file server writes it; the network reads it.
static PAGES: Mutex<[Page; SENT_AT_ONCE]> = Mutex::new([Page::ZERO; SENT_AT_ONCE]);

/// The next step of a connection.
pub enum Outcome {
    /// An event.
    Wait,
    /// Another turn.
    Again,
    /// Its end.
    Close,
}

/// See the module.
pub struct Client {
    stream: Stream,
    /// Bytes of requests that were not answered yet.
    input: Vec<u8>,
    /// Bytes to send, of which so many were sent.
    output: Vec<u8>,
    sent: usize,
    /// The body that follows them.
    body: Option<Body>,
    /// So many of the last bytes to send came from it.
    from_body: usize,
    /// Pages of a file for which the network had room last, and one more.
    pages: usize,
    /// Everything that came was read: there will be an event before there is more.
    drained: bool,
    /// Another request may follow.
    persistent: bool,
    deadline: u64,
}

impl Client {
    /// A connection that was just accepted.
    pub fn new(stream: Stream) -> Self {
        Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            body: None,
            from_body: 0,
            pages: 1,
            drained: false,
            persistent: true,
            deadline: op::clock() + IDLE,
        }
    }

    /// When it is to be given up, in nanoseconds since boot.
    pub const fn deadline(&self) -> u64 {
        self.deadline
    }

    /// Whether it has asked for nothing.
    pub const fn is_idle(&self) -> bool {
        self.input.is_empty() && self.output.is_empty() && self.body.is_none()
    }

    /// Bytes that it keeps here.
    pub const fn kept(&self) -> usize {
        self.input.capacity() + self.output.capacity()
    }

    /// Keeps no more than it must: bytes of a body that find no room yet are taken again later.
    pub fn keep_little(&mut self) {
        if self.output.is_empty() && self.body.is_none() {
            self.output = Vec::new();
        }
        let unsent = self.output.len() - self.sent;
        if let Some(body) = &mut self.body
            && unsent <= self.from_body
        {
            body.rewind(unsent);
            self.output = Vec::new();
            self.sent = 0;
            self.from_body = 0;
        }
        self.input.shrink_to_fit();
    }

    /// An event came.
    pub fn changed(&mut self) {
        self.drained = false;
    }

    /// Goes on as far as it can without waiting. `piece` is room for what is read.
    pub fn advance(&mut self, files: &mut Files, piece: &mut [u8]) -> Result<Outcome, Refusal> {
        for _ in 0..TURN {
            if !self.send()? {
                return Ok(Outcome::Wait);
            }
            if !self.persistent {
                return Ok(Outcome::Close);
            }
            match http::parse(&self.input) {
                Parsed::Request(request, length) => {
                    self.persistent = request.persistent;
                    self.body = answer::answer(&request, files, &mut self.output);
                    self.from_body = 0;
                    self.input.drain(..length);
                }
                Parsed::Refused(status) => self.refuse(status),
                Parsed::Partial => {
                    if self.drained {
                        return Ok(self.wait_for_request());
                    }
                    match self.stream.read(piece) {
                        Ok(0) => return Ok(Outcome::Close),
                        Ok(count) => {
                            if self.input.is_empty() {
                                self.deadline = op::clock() + REQUEST;
                            }
                            self.input.extend_from_slice(&piece[..count]);
                            self.drained = count < piece.len();
                        }
                        Err(Failure::Refused(NetError::WouldBlock)) => self.drained = true,
                        Err(refusal) => return Err(refusal),
                    }
                }
            }
        }
        Ok(Outcome::Again)
    }

    fn wait_for_request(&mut self) -> Outcome {
        if self.input.is_empty() {
            // An idle connection keeps no memory but this record.
            self.input = Vec::new();
            self.output = Vec::new();
            self.deadline = op::clock() + IDLE;
        }
        Outcome::Wait
    }

    fn refuse(&mut self, status: Status) {
        self.persistent = false;
        self.input.clear();
        answer::refuse(status, &mut self.output);
    }

    /// Sends what there is; whether all of it was sent.
    fn send(&mut self) -> Result<bool, Refusal> {
        loop {
            while self.sent < self.output.len() {
                let end = self.output.len().min(self.sent + WHOLE_SEGMENTS);
                match self.stream.write(&self.output[self.sent..end]) {
                    Ok(count) => {
                        self.sent += count;
                        self.deadline = op::clock() + PROGRESS;
                    }
                    Err(Failure::Refused(NetError::WouldBlock)) => return Ok(false),
                    Err(refusal) => return Err(refusal),
                }
            }
            self.output.clear();
            self.sent = 0;
            self.from_body = 0;
            let Some(body) = &mut self.body else { return Ok(true) };
            let mut pages = PAGES.lock();
            let next = match body.pages(&mut pages[..self.pages]) {
                Ok(Some(bytes)) => match self.stream.write(bytes) {
                    Ok(count) => {
                        body.advance(count);
                        self.pages = (count / PAGE_BYTES + 1).min(SENT_AT_ONCE);
                        self.deadline = op::clock() + PROGRESS;
                        if count < bytes.len() {
                            return Ok(false);
                        }
                        continue;
                    }
                    Err(Failure::Refused(NetError::WouldBlock)) => return Ok(false),
                    Err(refusal) => return Err(refusal),
                },
                Ok(None) => body.next(WHOLE_SEGMENTS, &mut self.output),
                Err(()) => Err(()),
            };
            match next {
                Ok(true) => self.from_body = self.output.len(),
                Ok(false) => self.body = None,
                // Less than was announced: only the end of the connection can show it.
                Err(()) => {
                    self.body = None;
                    self.persistent = false;
                }
            }
        }
    }

    /// There is no room for what it wants kept.
    pub fn turn_away(mut self) {
        if self.is_answered() {
            self.refuse(Status::Unavailable);
            let _ = self.stream.write(&self.output);
            return self.close();
        }
        let _ = self.stream.abort();
    }

    /// Whether nothing of an answer is left to send.
    fn is_answered(&self) -> bool {
        self.output.is_empty() && self.body.is_none()
    }

    /// Ends the connection once everything was sent.
    pub fn close(self) {
        let _ = self.stream.close();
    }

    /// Its time is up: says so if it began a request, and ends it.
    pub fn give_up(mut self) {
        if !self.is_answered() {
            let _ = self.stream.abort();
            return;
        }
        if !self.input.is_empty() {
            self.refuse(Status::RequestTimeout);
            let _ = self.stream.write(&self.output);
        }
        self.close();
    }
}
