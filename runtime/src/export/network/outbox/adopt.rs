//! Finding what dead processes left in their outboxes.

use super::others::Others;
use super::segment::{Label, Segment};
use crate::complain;
use crate::files;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The end of the names of the outbox's files.
pub(super) const EXTENSION: &str = "otlp.outbox";
/// Files that are taken over at most, since each stays open.
const MOST: usize = 64;
/// How long a file has not been changed that its maker has left unfinished.
const ABANDONED: Duration = Duration::from_secs(60);

/// Whose files are taken over.
#[derive(Clone, Copy, Debug)]
pub(super) enum Whose {
    /// With the directory of a run: all of this run and, of those beside it, what was to go where ours go.
    OfRun,
    /// With a directory of runs: all that lie below it.
    Below,
}

/// Files of dead processes, oldest first, and whether these are all there are.
pub(super) struct Left {
    pub(super) segments: Vec<Segment>,
    pub(super) is_all: bool,
    /// What stays, since it was to go elsewhere or is in another encoding.
    pub(super) others: Others,
}

/// The files that dead processes of this user left.
pub(super) fn left_by_the_dead(whose: Whose, dir: &Path, label: &Label) -> Left {
    let mut paths = Vec::new();
    // What cannot be listed holds nothing that we could take over.
    let to_any = match whose {
        Whose::OfRun => {
            let _ = files_in(dir, &mut paths);
            let of_run = paths.len();
            let _ = dir.parent().map(|runs| files_below(runs, Some(dir), &mut paths));
            of_run
        }
        Whose::Below => {
            let _ = files_below(dir, None, &mut paths);
            paths.len()
        }
    };
    let mut found = Vec::new();
    let mut is_all = true;
    let mut others = Others::default();
    for (at, path) in paths.into_iter().enumerate() {
        if found.len() == MOST {
            is_all = false;
            break;
        }
        match Segment::adopt(path.clone()) {
            Ok(Some(segment)) if at >= to_any && segment.label.endpoint != label.endpoint => {
                others.add(&segment);
            }
            Ok(Some(segment)) if segment.front().is_none() => {
                super::remove(segment);
            }
            Ok(Some(segment)) if segment.label.encoding != label.encoding => others.add(&segment),
            Ok(Some(segment)) => found.push(segment),
            // Its process lives.
            Ok(None) => {}
            // Another process was faster.
            Err(_) if !path.exists() => {}
            Err(error) => {
                let what = format_args!("cannot send what {} holds: {error}", path.display());
                complain::warn("outbox adopt", what);
            }
        }
    }
    found.sort_by_key(|segment| segment.front().map(|entry| entry.since));
    Left { segments: found, is_all, others }
}

/// What dead processes of this user left below a directory of runs, all of which stays.
pub(super) fn all_below(output_dir: &Path) -> Others {
    let mut paths = Vec::new();
    let _ = files_below(output_dir, None, &mut paths);
    let mut others = Others::default();
    for segment in paths.into_iter().filter_map(|path| Segment::adopt(path).ok().flatten()) {
        others.add(&segment);
    }
    others
}

fn files_below(
    output_dir: &Path,
    except: Option<&Path>,
    found: &mut Vec<PathBuf>,
) -> io::Result<()> {
    for run in fs::read_dir(output_dir)?.flatten() {
        let path = run.path();
        if Some(path.as_path()) != except && run.file_type().is_ok_and(|kind| kind.is_dir()) {
            // One that cannot be listed keeps nobody from the others.
            let _ = files_in(&path, found);
        }
    }
    Ok(())
}

fn files_in(dir: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut paths = Vec::new();
    for file in fs::read_dir(dir)?.flatten() {
        let path = file.path();
        let name = file.file_name();
        let Some((_, extension)) = name.to_str().and_then(|name| name.split_once(".otlp.")) else {
            continue;
        };
        let Ok(file) = file.metadata() else { continue };
        if !file.is_file() || !files::is_ours(&file) {
            continue;
        }
        match extension {
            "outbox" => paths.push(path),
            // Its maker died between making it and giving it its name.
            "outbox.new" if is_old(&file) => {
                let _ = fs::remove_file(path);
            }
            _ => {}
        }
    }
    paths.sort();
    found.append(&mut paths);
    Ok(())
}

fn is_old(file: &fs::Metadata) -> bool {
    let age = file.modified().ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > ABANDONED)
}
