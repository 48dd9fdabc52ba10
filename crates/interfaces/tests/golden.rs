//! The layouts against their checked-in texts. `GOLDEN=write cargo test -p interfaces` writes them anew.
#![allow(missing_docs)]

use std::{env, fs, path::Path};

use interfaces::{
    Code, LAYOUTS, bus::BusError, console, entropy::EntropyError, file::FileError, names::NamesError, net::NetError,
    nic::NicError, parent::ParentError, pipes::PipeError, process::ProcessError, random::RandomError,
    sigma0::Sigma0Error, status::StatusError, stream::StreamError, time::TimeError, vault::VaultError,
};

fn compare(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(format!("{name}.txt"));
    if env::var_os("GOLDEN").is_some_and(|value| value == "write") {
        fs::write(&path, text).expect("golden text written");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(expected == text, "the contract changed: {} differs from\n{text}", path.display());
}

#[test]
fn layouts() {
    for (name, text) in LAYOUTS {
        compare(name, text);
    }
}

fn codes<E: Code>(all: &[E], name: &str) -> String {
    let mut text = format!("{name}\n");
    for error in all {
        assert_eq!(E::from_code(error.code()).map(E::code), Some(error.code()));
        assert!((1..0xffff_0000).contains(&error.code()));
        text += &format!("    {} {error:?}: {}\n", error.code(), error.text());
    }
    text
}

#[test]
fn errors() {
    let text = [
        codes(BusError::ALL, "BusError"),
        codes(EntropyError::ALL, "EntropyError"),
        codes(FileError::ALL, "FileError"),
        codes(NamesError::ALL, "NamesError"),
        codes(NetError::ALL, "NetError"),
        codes(NicError::ALL, "NicError"),
        codes(ParentError::ALL, "ParentError"),
        codes(PipeError::ALL, "PipeError"),
        codes(ProcessError::ALL, "ProcessError"),
        codes(RandomError::ALL, "RandomError"),
        codes(Sigma0Error::ALL, "Sigma0Error"),
        codes(StatusError::ALL, "StatusError"),
        codes(StreamError::ALL, "StreamError"),
        codes(TimeError::ALL, "TimeError"),
        codes(VaultError::ALL, "VaultError"),
    ]
    .join("\n");
    compare("errors", &text);
}

#[test]
fn the_console_begins_as_a_stream() {
    let stream = interfaces::stream::STREAM_LAYOUT.trim_start_matches("interface Stream\n");
    let console = console::CONSOLE_LAYOUT.trim_start_matches("interface Console\n");
    assert!(console.starts_with(&stream.replace("StreamError", "ConsoleError")), "{console}");
}
