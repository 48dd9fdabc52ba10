//! Transports: how generated clients reach their servers.
//!
//! [`Direct`] calls through one entry and reports what happens. [`Connection`] knows how to get its
//! entry: when the server is gone it opens a new one, for a bounded time. A call that was not carried is made until it is.
//! A call that a server died in is made once more, if its interface says that this does no harm; the second time, or
//! else, the client gets `PeerDied`: it may be the call that the server dies of.

use core::sync::atomic::{AtomicUsize, Ordering};

use abi::rights::Kind;
use abi::{Control, Error};
use idl::{Again, AllWords, Answer, Delegated, Failure, Protocol, Shown, Transport, Words};
use protocols::names::{NamesClient, NamesError};

use crate::entry::Owned;
use crate::{Entry, hooks, log, message, op, startup, thread, window};

/// How long a connection tries to reach its server, in nanoseconds.
const PATIENCE: u64 = 5_000_000_000;
/// How long it waits for a name that nobody has: a program that was started just now may publish it.
const PATIENCE_FOR_NOBODY: u64 = 500_000_000;
/// How long it waits between two tries.
const PAUSE: u64 = 5_000_000;

/// One entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Direct(pub Entry);

impl Transport for Direct {
    #[inline(always)]
    fn call(&self, words: Words, control: Control, _: Again) -> Result<Answer, Error> {
        let (words, control) = message::call(self.0, words, control)?;
        message::received(control);
        Ok(Answer { words, control })
    }

    fn call_bytes(&self, message: &mut Answer, _: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        message::call_bytes(self.0, message, send, receive)
    }

    fn call_window(&self, message: &mut Answer, _: Again, send: &[&[u8]], shown: &mut Shown<'_>) -> Result<(), Error> {
        window::call_window(self.0, message, send, shown)
    }

    #[inline(always)]
    fn call_all_words(&self, words: AllWords, _: Again) -> Result<AllWords, Error> {
        message::call_all_words(self.0, words)
    }

    fn prepare_receive(&self) -> Result<(), Error> {
        message::prepare_receive()
    }

    fn discard(&self, delegated: Delegated) {
        drop(Owned::new(delegated.into()));
    }
}

/// Where a connection's entry comes from.
pub trait Source {
    /// Gets a call entry.
    ///
    /// # Errors
    ///
    /// `Revoked`: there is none at present. `Empty`: nobody has such a service, or the component that has it stays dead. `Confined`:
    /// this program may not reach it.
    fn open(&self) -> Result<Entry, Error>;
    /// The name of the service in the message of a connection that gives up.
    fn service(&self) -> &str;
    /// Lets go of one that leads nowhere any more.
    fn close(&self, entry: Entry) {
        drop(Owned::new(entry));
    }
}

/// A server to which the system description, or the program that started us, gave an entry of this name; else one known by
/// name. The entry stays ours: it is re-created when the server restarts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Given(pub &'static str);

impl Source for Given {
    fn open(&self) -> Result<Entry, Error> {
        let Some(entry) = startup::portal(self.0) else { return Name(self.0).open() };
        match op::entry_info(Entry::OWN, entry) {
            Ok((Kind::Call, _)) => Ok(entry),
            _ => Err(Error::Revoked),
        }
    }
    fn service(&self) -> &str {
        self.0
    }
    fn close(&self, entry: Entry) {
        if startup::portal(self.0) != Some(entry) {
            drop(Owned::new(entry));
        }
    }
}

/// The name service. A component may run before there is one, or while it is started again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NameService;

impl Source for NameService {
    fn open(&self) -> Result<Entry, Error> {
        match op::entry_info(Entry::OWN, Entry::NAMES) {
            Ok((Kind::Call, _)) => Ok(Entry::NAMES),
            _ => Err(Error::Revoked),
        }
    }
    fn service(&self) -> &str {
        "names"
    }
    // The entry stays: the parent of this domain replaces it when the name service starts again.
    fn close(&self, _: Entry) {}
}

/// A server known by name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Name<'a>(pub &'a str);

impl Source for Name<'_> {
    fn open(&self) -> Result<Entry, Error> {
        match NamesClient(Direct(Entry::NAMES)).open(self.0) {
            Ok(delegated) => Ok(delegated.into()),
            // Before there is a name service, too, and while it is started again.
            Err(Failure::Transport(Error::Empty)) => Err(Error::Revoked),
            Err(Failure::Transport(error)) => Err(error),
            // Of a server that dies just now the entry cannot be delivered.
            Err(Failure::Refused(NamesError::Gone)) | Err(Failure::Protocol(Protocol::NotDelivered)) => {
                Err(Error::Revoked)
            }
            Err(Failure::Refused(NamesError::NotFound | NamesError::BadName)) => Err(Error::Empty),
            Err(Failure::Refused(NamesError::Confined)) => Err(Error::Confined),
            Err(_) => Err(Error::Unknown),
        }
    }
    fn service(&self) -> &str {
        self.0
    }
}

/// An entry that is opened when first used and again when its server died.
#[derive(Debug)]
pub struct Connection<S: Source> {
    source: S,
    /// 0 = not open.
    entry: AtomicUsize,
    /// The entry before this one, if any. It is kept until the next one fails: another activation may
    /// still be about to call through its index.
    retired: AtomicUsize,
    /// See [`Self::epoch`].
    epoch: AtomicUsize,
}

impl Connection<Name<'static>> {
    /// To the server of this name.
    pub const fn named(name: &'static str) -> Self {
        Self::new(Name(name))
    }
}

impl<S: Source> Connection<S> {
    /// To what the source opens.
    pub const fn new(source: S) -> Self {
        Self { source, entry: AtomicUsize::new(0), retired: AtomicUsize::new(0), epoch: AtomicUsize::new(0) }
    }

    /// Starts with an entry that is open already.
    pub const fn opened(source: S, entry: Entry) -> Self {
        Self { source, entry: AtomicUsize::new(entry.0), retired: AtomicUsize::new(0), epoch: AtomicUsize::new(0) }
    }

    /// How often the server was found dead: a client that left something with it can see whether that is gone.
    pub fn epoch(&self) -> usize {
        self.epoch.load(Ordering::Acquire)
    }

    /// Where it comes from.
    pub const fn source(&self) -> &S {
        &self.source
    }
}

/// Whether the server may be reached again later.
const fn is_passing(error: Error) -> bool {
    matches!(error, Error::PeerDied | Error::Revoked | Error::Empty)
}

impl<S: Source> Connection<S> {
    /// The same connection, tried once.
    pub const fn once(&self) -> Once<'_, S> {
        Once(self)
    }

    /// The entry, opened if it is not. Does not wait.
    pub fn entry(&self) -> Result<Entry, Error> {
        match self.entry.load(Ordering::Acquire) {
            0 => {
                let entry = self.source.open()?;
                // Opening used up the receive index, and the call that waits may need one.
                let _ = message::prepare_receive();
                match self.entry.compare_exchange(0, entry.0, Ordering::AcqRel, Ordering::Acquire) {
                    Ok(_) => Ok(entry),
                    Err(other) => {
                        self.source.close(entry);
                        Ok(Entry(other))
                    }
                }
            }
            index => Ok(Entry(index)),
        }
    }

    /// This entry leads nowhere any more.
    fn retire(&self, entry: Entry) {
        if self.entry.compare_exchange(entry.0, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            self.epoch.fetch_add(1, Ordering::AcqRel);
            match self.retired.swap(entry.0, Ordering::AcqRel) {
                0 => {}
                index => self.source.close(Entry(index)),
            }
        }
    }

    /// Runs a call until it is carried, or time is up; once more, if a server died in it and `again` allows it.
    #[inline]
    fn insist<R>(&self, again: Again, mut call: impl FnMut(Direct) -> Result<R, Error>) -> Result<R, Error> {
        let mut died = again != Again::Harmless;
        let index = self.entry.load(Ordering::Acquire);
        if index != 0 {
            match call(Direct(Entry(index))) {
                Err(error) if is_passing(error) => {
                    self.retire(Entry(index));
                    if again == Again::Meaningless || error == Error::PeerDied && core::mem::replace(&mut died, true) {
                        return Err(Error::PeerDied);
                    }
                }
                result => return result,
            }
        }
        self.insist_longer(died, &mut call)
    }

    /// `died`: the next server that dies in it was the last.
    #[cold]
    fn insist_longer<R>(&self, mut died: bool, call: &mut dyn FnMut(Direct) -> Result<R, Error>) -> Result<R, Error> {
        // To open does no harm; but it may be that which a server dies of.
        let mut died_opening = false;
        let mut since = op::clock();
        loop {
            let entry = self.entry();
            let (result, died) = match entry {
                Ok(entry) => (call(Direct(entry)), &mut died),
                Err(error) => {
                    if error == Error::Confined {
                        say(self.source.service(), "is not on the list of what this program may reach");
                    }
                    (Err(error), &mut died_opening)
                }
            };
            let error = match result {
                Err(error) if is_passing(error) => error,
                result => return result,
            };
            if let Ok(entry) = entry {
                self.retire(entry);
            }
            let now = op::clock();
            if error == Error::PeerDied {
                if core::mem::replace(died, true) {
                    report_given_up(self.source.service(), error);
                    return Err(error);
                }
                // It was there, for however long.
                since = now;
            } else {
                let is_nobody = entry == Err(Error::Empty);
                if now.saturating_sub(since) >= if is_nobody { PATIENCE_FOR_NOBODY } else { PATIENCE } {
                    report_given_up(self.source.service(), error);
                    return Err(error);
                }
            }
            thread::sleep(PAUSE)?;
        }
    }
}

#[cold]
fn report_given_up(service: &str, error: Error) {
    let what = match error {
        Error::PeerDied => "died again in this call",
        Error::Empty => "does not exist, or the component that has it stays dead",
        _ => "could not be reached for 5 s",
    };
    say(service, what);
}

/// Says which service it was, which the error does not: on standard error output, or in the kernel log if nobody reads that.
#[cold]
fn say(service: &str, what: &str) {
    if !hooks::report(format_args!("{}: the service `{service}` {what}\n", startup::name())) {
        log!("the service `{service}` {what}");
    }
}

/// A connection that is tried once: a server that is not there is not waited for.
#[derive(Debug)]
pub struct Once<'a, S: Source>(&'a Connection<S>);

impl<S: Source> Once<'_, S> {
    fn try_once<R>(&self, call: impl FnOnce(Direct) -> Result<R, Error>) -> Result<R, Error> {
        let entry = self.0.entry()?;
        let outcome = call(Direct(entry));
        if outcome.as_ref().is_err_and(|error| is_passing(*error)) {
            self.0.retire(entry);
        }
        outcome
    }
}

impl<S: Source> Transport for Once<'_, S> {
    #[inline]
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        self.try_once(|entry| entry.call(words, control, again))
    }

    fn call_bytes(&self, message: &mut Answer, again: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        self.try_once(|entry| entry.call_bytes(message, again, send, receive))
    }

    fn call_window(
        &self,
        message: &mut Answer,
        again: Again,
        send: &[&[u8]],
        shown: &mut Shown<'_>,
    ) -> Result<(), Error> {
        self.try_once(|entry| entry.call_window(message, again, send, shown))
    }

    #[inline]
    fn call_all_words(&self, words: AllWords, again: Again) -> Result<AllWords, Error> {
        self.try_once(|entry| entry.call_all_words(words, again))
    }

    fn prepare_receive(&self) -> Result<(), Error> {
        message::prepare_receive()
    }

    fn discard(&self, delegated: Delegated) {
        drop(Owned::new(delegated.into()));
    }
}

impl<S: Source> Transport for Connection<S> {
    #[inline]
    fn call(&self, words: Words, control: Control, again: Again) -> Result<Answer, Error> {
        self.insist(again, |entry| entry.call(words, control, again))
    }

    fn call_bytes(&self, message: &mut Answer, again: Again, send: &[&[u8]], receive: &mut [u8]) -> Result<(), Error> {
        self.insist(again, |entry| entry.call_bytes(message, again, send, receive))
    }

    fn call_window(
        &self,
        message: &mut Answer,
        again: Again,
        send: &[&[u8]],
        shown: &mut Shown<'_>,
    ) -> Result<(), Error> {
        self.insist(again, |entry| entry.call_window(message, again, send, shown))
    }

    #[inline]
    fn call_all_words(&self, words: AllWords, again: Again) -> Result<AllWords, Error> {
        self.insist(again, |entry| entry.call_all_words(words, again))
    }

    fn prepare_receive(&self) -> Result<(), Error> {
        message::prepare_receive()
    }

    fn discard(&self, delegated: Delegated) {
        drop(Owned::new(delegated.into()));
    }
}

impl<S: Source> Drop for Connection<S> {
    fn drop(&mut self) {
        for index in [*self.entry.get_mut(), *self.retired.get_mut()] {
            if index != 0 {
                self.source.close(Entry(index));
            }
        }
    }
}
