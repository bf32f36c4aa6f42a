//! The bytes of a file, as they stand or unpacked.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use flate2::read::MultiGzDecoder;

/// A file that is read from any place on. What is packed with gzip is unpacked meanwhile.
#[derive(Debug)]
pub(super) struct Input {
    file: File,
    /// `None` of a file that is not packed.
    gzip: Option<Gzip>,
}

/// A file that is being unpacked.
#[derive(Debug)]
struct Gzip {
    decoder: MultiGzDecoder<Raw>,
    /// Bytes that were unpacked.
    at: u64,
    damage: Option<Damage>,
}

/// Why a packed file ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Damage {
    /// Its writer was killed, or is writing it now.
    Torn,
    /// What is wrong with it.
    Corrupt(String),
}

/// The packed bytes, from where they were read last: others move the file's position.
#[derive(Debug)]
struct Raw {
    file: File,
    at: u64,
}

/// Most bytes that are unpacked of one file: a small one may stand for any number.
const MAX_UNPACKED: u64 = 64 << 30;
/// Most bytes of memory that are asked for before they are read.
const MAX_RESERVED: usize = 1 << 20;
/// Bytes that are passed over at a time.
const SKIP: u64 = 1 << 20;

impl Input {
    pub(super) fn new(file: File) -> Self {
        Self { file, gzip: None }
    }

    /// Bytes of the file as it stands.
    pub(super) fn stored_len(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// What the file as it stands begins with.
    pub(super) fn head(&mut self, most: usize) -> io::Result<Vec<u8>> {
        let mut head = Vec::with_capacity(most);
        self.file.seek(SeekFrom::Start(0))?;
        (&self.file).take(most as u64).read_to_end(&mut head)?;
        Ok(head)
    }

    /// Begins anew: with a file that begins so.
    pub(super) fn begin(&mut self, head: &[u8]) -> io::Result<()> {
        let is_packed = head.starts_with(b"\x1f\x8b");
        self.gzip = match is_packed {
            true => Some(Gzip::new(&self.file)?),
            false => None,
        };
        Ok(())
    }

    pub(super) fn is_packed(&self) -> bool {
        self.gzip.is_some()
    }

    /// Why the last reading ended before the file did.
    pub(super) fn damage(&self) -> Option<&Damage> {
        self.gzip.as_ref()?.damage.as_ref()
    }

    /// Adds what the file holds from there on, up to so many bytes. Fewer are the last ones.
    pub(super) fn read(&mut self, from: u64, most: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        match &mut self.gzip {
            Some(gzip) => {
                if from < gzip.at {
                    *gzip = Gzip::new(&self.file)?;
                }
                gzip.read(from, most, into)
            }
            None => {
                self.file.seek(SeekFrom::Start(from))?;
                into.reserve(most.min(MAX_RESERVED));
                (&self.file).take(most as u64).read_to_end(into)
            }
        }
    }
}

impl Gzip {
    fn new(file: &File) -> io::Result<Self> {
        let raw = Raw { file: file.try_clone()?, at: 0 };
        Ok(Self { decoder: MultiGzDecoder::new(raw), at: 0, damage: None })
    }

    fn read(&mut self, from: u64, most: usize, into: &mut Vec<u8>) -> io::Result<usize> {
        let mut passed = Vec::new();
        while self.at < from {
            let step = (from - self.at).min(SKIP);
            passed.clear();
            if self.unpack(step, &mut passed)? == 0 {
                return Ok(0);
            }
        }
        self.unpack(most as u64, into)
    }

    fn unpack(&mut self, most: u64, into: &mut Vec<u8>) -> io::Result<usize> {
        if self.damage.is_some() {
            return Ok(0);
        }
        let before = into.len();
        let result = self.decoder.by_ref().take(most).read_to_end(into);
        let got = into.len() - before;
        self.at += got as u64;
        self.damage = match result {
            Ok(_) if self.at > MAX_UNPACKED => {
                Some(Damage::Corrupt(format!("more than {} GiB unpacked", MAX_UNPACKED >> 30)))
            }
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Some(Damage::Torn),
            Err(error) => match error.kind() {
                io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
                    Some(Damage::Corrupt(error.to_string()))
                }
                _ => return Err(error),
            },
        };
        Ok(got)
    }
}

impl Read for Raw {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.at))?;
        let got = self.file.read(into)?;
        self.at += got as u64;
        Ok(got)
    }
}
