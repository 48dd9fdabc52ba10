//! The first serial port, for the nucleus's last words (panics). `console` owns it otherwise.

/// Writes bytes, polling.
pub fn write(bytes: &[u8]) {
    unimplemented!()
}
