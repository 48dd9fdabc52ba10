//! One connection: reads requests, sends answers.

use alloc::vec::Vec;

use http::{Parsed, Status};
use interface::Failure;
use runtime::op;
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

/// What a connection wants next.
pub enum Outcome {
    /// To be told when something happens.
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
    /// What follows them.
    body: Option<Body>,
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
        self.input.is_empty() && self.output.is_empty()
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
            let Some(body) = &mut self.body else { return Ok(true) };
            match body.next(WHOLE_SEGMENTS, &mut self.output) {
                Ok(true) => {}
                Ok(false) => self.body = None,
                // Less than was announced: only the end of the connection can tell.
                Err(()) => {
                    self.body = None;
                    self.persistent = false;
                }
            }
        }
    }

    /// Ends the connection once everything was sent.
    pub fn close(self) {
        let _ = self.stream.close();
    }

    /// Its time is up: says so if it began a request, and ends it.
    pub fn give_up(mut self) {
        if !self.output.is_empty() || self.body.is_some() {
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
