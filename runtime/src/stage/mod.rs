//! Declare: what a stage is, and which places in the source record it.

use stagetrace_wire::recording::layout::slot;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) mod level;

/// A named step of a request's life, known when the program is compiled.
///
/// A `Copy` handle to a `static`; `#[derive(Stages)]` makes one constant of it per variant. Two handles are equal if
/// they are the same declaration.
#[derive(Clone, Copy)]
pub struct Stage(&'static StageInfo);

/// The static facts of a [`Stage`].
#[derive(Debug)]
pub struct StageInfo {
    set: &'static str,
    name: &'static str,
    level: u8,
    within: Option<Stage>,
    /// Behind a reference, since constants look into these facts, and may not look into what changes.
    site: Option<&'static StageSite>,
}

/// Where a stage is recorded that no function and no macro stands for: made when it is first asked for.
#[derive(Debug)]
pub struct StageSite(OnceLock<Site>);

impl StageSite {
    /// Not yet made.
    #[allow(clippy::new_without_default, reason = "generated code makes it, in statics")]
    pub const fn new() -> StageSite {
        StageSite(OnceLock::new())
    }
}

impl StageInfo {
    /// A stage of the set `set` (the enum's name; empty without one).
    pub const fn new(
        set: &'static str,
        name: &'static str,
        level: u8,
        within: Option<Stage>,
    ) -> StageInfo {
        StageInfo { set, name, level, within, site: None }
    }

    /// The same, with a place for its spans that no function stands for.
    pub const fn at(self, site: &'static StageSite) -> StageInfo {
        StageInfo { site: Some(site), ..self }
    }
}

impl Stage {
    /// A handle to these facts.
    pub const fn new(info: &'static StageInfo) -> Stage {
        Stage(info)
    }

    /// Itself; lets generated code take an enum's variant and a `Stage` constant alike.
    pub const fn stage(self) -> Stage {
        self
    }

    /// The name under which its spans are exported.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// How detailed it is: 1 important, 2 normal, 3 detail.
    pub const fn level(self) -> u8 {
        self.0.level
    }

    /// The stage it is declared to lie within.
    pub const fn within(self) -> Option<Stage> {
        self.0.within
    }

    /// The name of its stage set; empty if it belongs to none.
    pub const fn set(self) -> &'static str {
        self.0.set
    }

    /// What of it decides at every call, as a constant of generated code.
    pub const fn shape(self) -> u8 {
        self.0.level | if self.0.within.is_some() { shape::WITHIN } else { 0 }
    }

    /// The site of its spans that no function and no macro stands for; `None` if it is not of a set.
    #[inline(always)]
    pub(crate) fn site(self) -> Option<&'static Site> {
        let make = || Site::new(self, SpanKind::Internal, &[], "", "", 0);
        Some(self.0.site?.0.get_or_init(make))
    }

    /// The address of its facts, which is its identity.
    pub(crate) fn address(self) -> *const StageInfo {
        self.0
    }

    /// The stage of an address that [`Stage::address`] gave, null for none.
    ///
    /// # Safety
    /// `address` is null or came from [`Stage::address`].
    pub(crate) unsafe fn from_address(address: *const StageInfo) -> Option<Stage> {
        // SAFETY: the caller promises that it points to a `static`.
        unsafe { address.as_ref() }.map(Stage)
    }

    /// Whether it is `other` or declared to lie within it, at any depth.
    pub(crate) fn lies_within(self, other: Stage) -> bool {
        let mut stage = Some(self);
        while let Some(at) = stage {
            if at == other {
                return true;
            }
            stage = at.within();
        }
        false
    }
}

impl PartialEq for Stage {
    fn eq(&self, other: &Stage) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Stage {}

impl std::hash::Hash for Stage {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        std::ptr::hash(self.0, state);
    }
}

impl fmt::Debug for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.set() {
            "" => write!(f, "Stage({})", self.name()),
            set => write!(f, "Stage({set}::{})", self.name()),
        }
    }
}

/// All stages of one pipeline: an enum with `#[derive(Stages)]`.
pub trait StageSet: Sized + 'static {
    /// The enum's name.
    const NAME: &'static str;
    /// Its stages in order of declaration.
    const STAGES: &'static [Stage];
}

/// Every stage set that is linked into the program.
#[linkme::distributed_slice]
pub static STAGE_SETS: [&'static [Stage]];

/// The role of a span between processes, as OpenTelemetry defines it.
pub use stagetrace_wire::span::SpanKind;

/// The facts of a stage that code is made for: its level, and whether it is declared to lie within another.
pub(crate) mod shape {
    /// It is declared to lie within another stage.
    pub(crate) const WITHIN: u8 = 4;

    /// The level in a shape.
    #[inline(always)]
    pub(crate) const fn level(shape: u8) -> u8 {
        shape & 3
    }
}

/// One place in the source that records spans: what is constant of them.
///
/// Its number is given at its first span, and is the same for every recorder of the process.
#[derive(Debug)]
pub struct Site {
    stage: Stage,
    kind: SpanKind,
    keys: &'static [&'static str],
    function: &'static str,
    file: &'static str,
    line: u32,
    /// The word `META` of a slot without attributes: number and size; 0 before the first span.
    meta: AtomicU64,
    /// Number of a site under which this one is known to lie where it is declared to.
    fits_under: AtomicU64,
}

impl Site {
    /// A place that records `stage`, with the attribute keys that stand inline in its spans, in order.
    pub const fn new(
        stage: Stage,
        kind: SpanKind,
        keys: &'static [&'static str],
        function: &'static str,
        file: &'static str,
        line: u32,
    ) -> Site {
        let (meta, fits_under) = (AtomicU64::new(0), AtomicU64::new(0));
        Site { stage, kind, keys, function, file, line, meta, fits_under }
    }

    /// Its stage.
    pub const fn stage(&self) -> Stage {
        self.stage
    }

    /// The stage that its stage is declared to lie within.
    #[inline(always)]
    pub(crate) fn within(&self) -> Option<Stage> {
        self.stage.within()
    }

    /// Its stage's level.
    #[inline(always)]
    pub(crate) fn level(&self) -> u8 {
        self.stage.level()
    }

    pub(crate) fn kind(&self) -> SpanKind {
        self.kind
    }

    pub(crate) fn keys(&self) -> &'static [&'static str] {
        self.keys
    }

    pub(crate) fn function(&self) -> &'static str {
        self.function
    }

    pub(crate) fn file(&self) -> &'static str {
        self.file
    }

    pub(crate) fn line(&self) -> u32 {
        self.line
    }

    /// Its number; 0 before its first span.
    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.meta() as u32
    }

    /// The word `META` of a slot without attributes; 0 before its first span.
    #[inline(always)]
    pub(crate) fn meta(&self) -> u64 {
        self.meta.load(Ordering::Acquire)
    }

    /// Number of a site whose spans may be parents of this one's, as far as the stages say; 0 for none that is known.
    #[inline(always)]
    pub(crate) fn fits_under(&self) -> u32 {
        self.fits_under.load(Ordering::Relaxed) as u32
    }

    /// Remembers such a site.
    pub(crate) fn set_fits_under(&self, number: u32) {
        self.fits_under.store(u64::from(number), Ordering::Relaxed);
    }

    /// Gives it a number; only the registry does, under its lock.
    pub(crate) fn set_number(&self, number: u32) {
        let meta = u64::from(number) | (slot::WORDS as u64) << 32;
        self.meta.store(meta, Ordering::Release);
    }
}
