//! The worked example of the book's chapter on labels. A host test compares its parts with what the chapter shows.

use abi::level::{ONE, THREE, TWO};
use abi::{Error, op as numbers};
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use runtime::Entry;
use runtime::entry::Owned;
use runtime::op::{self, LabelFrom};
use runtime::server::{self, ServeWord};

use crate::flows::{child, does};
use crate::table::child::{on_semaphore, operation};

const FRAMES: u64 = 64;

/// The number that the diary reported last.
static REPORTED: AtomicU64 = AtomicU64::new(0);
const ENTRY: u64 = 1942;
const NOTHING: u64 = 1;

// [server]
/// The index of the diary's label.
static LABEL: AtomicUsize = AtomicUsize::new(0);

/// Keeps a diary, which it gives to those that may observe it.
struct Diary;

impl ServeWord for Diary {
    fn serve(_badge: u64, _words: [u64; 5]) -> u64 {
        let label = Entry(LABEL.load(Ordering::Relaxed));
        match op::label_caller(label) {
            Ok((true, _may_change)) => REPORTED.store(ENTRY, Ordering::Relaxed),
            _ => REPORTED.store(NOTHING, Ordering::Relaxed),
        }
        0
    }
}
// [end]

/// The objects of the example.
struct World {
    secret: u64,
    send: Owned,
    receive: Owned,
    diary: Owned,
    radio: Owned,
    theirs: Owned,
    everybodys: Owned,
    account: Owned,
    plain: Owned,
}

impl World {
    fn new() -> Result<Self, Error> {
        // [labels]
        // A handle names a compartment. Its maker owns it: our S(secret) is ★.
        let secret = op::label_handle()?;
        // We accept the taint of domains that see the secret. Only an owner can do that.
        op::label_receive(secret, THREE)?;

        // S = {secret 3, 1} of a domain that has seen the secret, and R = {secret 3, 2} of one that accepts it.
        let send = Owned::new(op::label_new(LabelFrom::Level(ONE))?);
        op::label_put(send.entry(), secret, THREE)?;
        let receive = Owned::new(op::label_new(LabelFrom::Level(TWO))?);
        op::label_put(receive.entry(), secret, THREE)?;
        // [end]

        // [portals]
        // The diary has the label {secret 3, 1}; portals to its server have the label {3}: they ask for nothing.
        LABEL.store(send.entry().0, Ordering::Relaxed);
        let diary = Owned::new(server::word_service::<Diary>()?);
        // Portals with the label {secret 1, 3}: a domain that is tainted by the secret cannot call through them.
        let open = Owned::new(op::label_new(LabelFrom::Level(THREE))?);
        op::label_put(open.entry(), secret, ONE)?;
        let radio = Owned::new(server::word_service_labelled::<Diary>(open.entry())?);
        // [end]

        // [account]
        // Objects that an account pays for have its label.
        let account = Owned::new(op::account_new_labelled(Entry::OWN, FRAMES, 0, send.entry())?);
        let theirs = Owned::new(op::semaphore_new(account.entry(), 0)?);
        let everybodys = Owned::new(op::semaphore_new(Entry::OWN, 0)?);
        // [end]

        let plain = Owned::new(op::account_new(Entry::OWN, FRAMES)?);
        Ok(Self { secret, send, receive, diary, radio, theirs, everybodys, account, plain })
    }

    fn end(&self) -> Result<(), Error> {
        let (secret, send) = (self.secret, self.send.entry());
        // [afterwards]
        // {secret 2, 1} is the greatest lower bound of {secret 3, 1} and {2}.
        let two = Owned::new(op::label_new(LabelFrom::Level(TWO))?);
        op::label_combine(send, two.entry(), true)?;
        let mut levels = [0; 2];
        op::label_read(send, 0, |handle, level| levels = [handle, level])?;
        check(levels == [secret, TWO])?;
        // We give the ownership up, by the name of the handle. Then we can lower what we accept, and raise it no more.
        op::label_send(secret, ONE)?;
        check(op::label_levels(secret)? == [ONE, THREE])?;
        op::label_receive(secret, TWO)?;
        check(op::label_receive(secret, THREE) == Err(Error::NotOwned))
        // [end]
    }
}

fn check(is_so: bool) -> Result<(), Error> {
    if is_so { Ok(()) } else { Err(Error::BadArgument) }
}

/// The outcome of an action of a domain with these labels, or with the usual ones.
fn tries(account: &Owned, labels: Option<[Entry; 2]>, action: Action<'_>) -> Result<String, String> {
    let text = |error: Error| error.text();
    let child = child(account, labels).map_err(text)?;
    let step = match action {
        Action::Calls(service) => {
            let portal = op::portal_new(child.domain.entry(), service.entry(), 0, Entry(0), 0).map_err(text)?;
            on_semaphore(portal, [0; 6])
        }
        Action::Signals(semaphore) => {
            on_semaphore(child.give(semaphore.entry()).map_err(text)?, [numbers::V, 0, 0, 0, 0, 0])
        }
        Action::Cleans(handle) => operation(numbers::LABEL, [numbers::LABEL_SEND, handle, ONE, 0, 0, 0]),
    };
    REPORTED.store(0, Ordering::Relaxed);
    let status = does(&child, &[step])?;
    Ok(match (REPORTED.load(Ordering::Relaxed), Error::from_status(status)) {
        (0, Ok(())) => "done".into(),
        (ENTRY, Ok(())) => "the entry".into(),
        (_, Ok(())) => "nothing".into(),
        (_, Err(error)) => format!("{error:?}"),
    })
}

/// An action of a domain.
enum Action<'a> {
    Calls(&'a Owned),
    Signals(&'a Owned),
    /// It takes its own taint away.
    Cleans(u64),
}

/// Runs the example: gives the outcome of each action.
pub fn run() -> Result<String, String> {
    let text = |error: Error| error.text();
    let world = World::new().map_err(text)?;
    let labels = Some([world.send.entry(), world.receive.entry()]);
    let tainted = |action| tries(&world.account, labels, action);
    let reported = [
        tainted(Action::Calls(&world.diary))?,
        tainted(Action::Calls(&world.radio))?,
        tainted(Action::Signals(&world.theirs))?,
        tainted(Action::Signals(&world.everybodys))?,
        tainted(Action::Cleans(world.secret))?,
        tries(&world.plain, None, Action::Calls(&world.diary))?,
    ];
    let end = world.end().map_or_else(|error| format!("{error:?}"), |()| "done".into());
    Ok(format!("{}, {end}", reported.join(", ")))
}
