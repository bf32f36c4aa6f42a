//! OTLP in protobuf: a message that is a whole file, or many, each with its length before it, as the
//! OpenTelemetry Collector's file exporter writes them.

use std::io;

use super::input::Input;
use super::line::{MAX_LINE, too_long};
use super::parse::Reader;
use super::report::FileReport;
use crate::store::Store;

/// A file of messages, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Frames {
    read: u64,
}

/// Bytes of a length: big-endian.
const LENGTH: usize = 4;

impl Frames {
    /// Whether a file that begins so holds messages with lengths: no message, and no text, begins with
    /// such a byte, but every length below 128 MiB does.
    pub(super) fn is_of(head: &[u8]) -> bool {
        head.first().is_some_and(|byte| *byte < 8)
    }

    /// Bytes that were read.
    pub(super) fn read(self) -> u64 {
        self.read
    }

    /// Reads what is whole, up to a length of the file.
    pub(super) fn read_on(
        &mut self,
        input: &mut Input,
        len: u64,
        reader: &mut Reader,
        store: &mut Store,
        report: &mut FileReport,
    ) -> io::Result<()> {
        report.torn_line = None;
        let mut bytes = Vec::new();
        while self.read < len {
            bytes.clear();
            input.read(self.read, LENGTH, &mut bytes)?;
            if bytes.is_empty() {
                return Ok(());
            }
            let Ok(length) = bytes.as_slice().try_into().map(u32::from_be_bytes) else { break };
            let start = self.read + LENGTH as u64;
            let end = start + u64::from(length);
            if end > len {
                break;
            }
            if length as usize > MAX_LINE {
                report.add_damaged(too_long());
            } else {
                bytes.clear();
                if input.read(start, length as usize, &mut bytes)? < length as usize {
                    break;
                }
                match reader.message(&bytes, start, store) {
                    Ok(held) => report.add_line(held),
                    Err(damage) => report.add_damaged(damage),
                }
            }
            self.read = end;
        }
        report.torn_line = (self.read < len).then_some(report.lines + 1);
        Ok(())
    }
}
