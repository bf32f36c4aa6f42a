//! A recording with one of everything.

use super::{Handmade, IN_A_TRACE, RANDOM, Record, keyed, side, site, text};
use stagetrace_wire::recording::layout::{header, outcome, side as kind, slot};
use stagetrace_wire::recording::value::Tag;

/// A recording with one of everything.
pub(crate) fn one_of_everything() -> Handmade {
    let entries = [
        r#"{"stage":{"set":"DiffStage","name":"schedule","level":1,"within":null}}"#.to_owned(),
        r#"{"stage":{"set":"DiffStage","name":"gpu_forward","level":1,"within":"schedule"}}"#
            .to_owned(),
        site(1, "gpu_forward", &["steps", "guidance", "model"]),
        site(2, "generate", &["gen_ai.request.model"]),
        site(3, "upload", &[]),
    ];
    let root = Record {
        begin: 1_000,
        site: 2,
        flags: slot::ROOT,
        known: IN_A_TRACE | RANDOM,
        root: 7,
        inline: vec![Some((Tag::Str, text("req-1"))), Some((Tag::Str, text("digits")))],
        ..Record::open(0x10)
    };
    let finished = Record {
        begin: 500,
        end: 900,
        site: 2,
        flags: slot::ROOT,
        known: IN_A_TRACE | RANDOM,
        root: 6,
        outcome: outcome::OK,
        inline: vec![Some((Tag::Str, text("req-0"))), Some((Tag::Str, text("digits")))],
        ..Record::open(0x20)
    };
    let forward = Record {
        begin: 1_100,
        end: 1_900,
        parent: 0x10,
        root: 7,
        sides: 4,
        outcome: outcome::ERROR,
        inline: vec![Some((Tag::I64, vec![20])), Some((Tag::F64, vec![7.5f64.to_bits()])), None],
        ..Record::ended(0x11)
    };
    let open = Record { begin: 1_950, parent: 0x10, root: 7, ..Record::open(0x12) };
    let gpu = Record {
        begin: 1_200,
        end: 1_700,
        site: 3,
        parent: 0x11,
        root: 7,
        flags: slot::NANOSECONDS | slot::MISPLACED,
        known: IN_A_TRACE | slot::REMOTE,
        marks: slot::EXPORTED,
        ..Record::ended(0x13)
    };
    let thrown_away = Record { marks: slot::DISCARDED, ..Record::ended(0x14) };
    let link = [&[0xbbbb, 0x2, 0x99, 1][..], &keyed(&[("share", Tag::F64, vec![0])])].concat();
    let event = [text("oom"), keyed(&[("bytes", Tag::I64, vec![1 << 20])])].concat();
    let failure = [text("ForwardError"), text("out of memory")].concat();
    let late = keyed(&[
        ("model", Tag::Str, text("digits")),
        ("steps", Tag::I64, vec![10]),
        ("shape", Tag::I64s, vec![2, 28, 28]),
    ]);
    Handmade::new(6)
        .table(1, &entries.iter().map(String::as_str).collect::<Vec<_>>())
        .slab(2, &[root, finished])
        .chunk(3, &[forward.words(), side(0x11, 1_150, kind::ATTRIBUTES, &late), open.words()])
        .small_chunks(
            4,
            &[
                &[side(0x11, 1_800, kind::EVENT, &event), side(0x11, 1_700, kind::LINK, &link)],
                &[],
                &[gpu.words(), side(0x11, 1_890, kind::FAILURE, &failure), thrown_away.words()],
            ],
        )
        .word(header::DROPPED, 3)
        .word(header::ACKNOWLEDGED, 2 << 48 | 4096)
}
