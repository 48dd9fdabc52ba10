//! From the bytes of a trace to the story of a window.
//!
//! The whole trace is followed, so that at the start of the window it is known which calls are open; only what
//! happens in the window is kept.

use super::recorder::Recorder;
use super::story::Story;
use super::window::Window;
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use trace::{Record, Records};

impl Story {
    /// The story in these bytes, in this window.
    pub fn read(bytes: &[u8], window: &Window) -> Result<Self> {
        let records = in_order(&bytes[..window.end().min(bytes.len())])?;
        let cpus = records.iter().map(|(_, record)| record.cpu).collect::<BTreeSet<_>>();
        let mut recorder = Recorder::new(cpus.into_iter().collect());
        let mut opened = false;
        for (at, record) in &records {
            if !opened && window.begins_with(*at, record, &recorder.story.domains) {
                opened = true;
                recorder.open(record.time);
            }
            let number = at / trace::BYTES;
            recorder.report(record).with_context(|| format!("record {number} of the trace ({:?})", record.kind))?;
        }
        if !opened {
            bail!("{}", window.why_empty());
        }
        if window.needs_end() && !recorder.over {
            bail!("the trace ends before the machine stops: it was reset, or the nucleus panicked");
        }
        recorder.close();
        Ok(recorder.story)
    }
}

/// All records, each with the byte at which it stands, by time. They stand so but for those of different CPUs at about
/// the same time; records of the same time stay as they stand.
fn in_order(bytes: &[u8]) -> Result<Vec<(usize, Record)>> {
    let mut records = Records::new(bytes);
    let mut all = Vec::with_capacity(bytes.len() / trace::BYTES);
    loop {
        let at = records.position();
        match records.next() {
            Some(record) => all.push((at, record?)),
            None => break,
        }
    }
    all.sort_by_key(|(_, record)| record.time);
    Ok(all)
}
