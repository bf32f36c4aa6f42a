//! The macros for code without stages: `span!` and `event!`.

/// Begins a [`Span`](crate::Span) that is not entered: `span!("name", "key" = value, ..)`.
///
/// The name and the keys are constants. `parent = position` after the name makes it a child of that position; else it is
/// a child of the current span, or begins a trace of its own. `level = 1` to `3` says how detailed it is, 2 if not said.
/// Values are only evaluated if the span is recorded; up to eight stand in the span's own record.
///
/// ```
/// use stagetrace::span;
///
/// let load = span!("load_weights", "bytes" = 975_376);
/// load.in_scope(|| {
///     let read = span!("read", level = 3, "path" = "weights.bin");
///     drop(read);
/// });
/// ```
///
/// In the place of the name, `stage = STAGE` takes a declared stage, an enum's variant or a constant, with its name and
/// level: for a stage that no function encloses.
#[macro_export]
macro_rules! span {
    (stage = $stage:expr $(, parent = $parent:expr)? $(, $key:literal = $value:expr)* $(,)?) => {{
        const STAGE: $crate::Stage = ($stage).stage();
        $crate::__span!(STAGE, [$($parent)?], $($key = $value),*)
    }};
    ($name:expr $(, parent = $parent:expr)? $(, level = $level:literal)? $(, $key:literal = $value:expr)* $(,)?) => {{
        static INFO: $crate::__private0::StageInfo = $crate::__private0::StageInfo::new(
            "",
            $name,
            $crate::__span_level!($($level)?),
            $crate::__private0::core::option::Option::None,
        );
        const STAGE: $crate::Stage = $crate::Stage::new(&INFO);
        $crate::__span!(STAGE, [$($parent)?], $($key = $value),*)
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! __span {
    ($stage:expr, [$($parent:expr)?], $($key:literal = $value:expr),*) => {{
        static SITE: $crate::__private0::Site = $crate::__private0::Site::new(
            $stage,
            $crate::__private0::SpanKind::Internal,
            &[$($key),*],
            $crate::__private0::core::module_path!(),
            $crate::__private0::core::file!(),
            $crate::__private0::core::line!(),
        );
        $crate::__stagetrace_on_off! {
            on {
                $crate::Span::begin(
                    &SITE,
                    $crate::__span_parent!($($parent)?),
                    |begin| begin.with(($(&$value,)*)),
                )
            }
            // Checked, and never evaluated; not a closure, since the user's expressions may hold `?` and `.await`.
            off {
                if false {
                    $crate::Span::begin(
                        &SITE,
                        $crate::__span_parent!($($parent)?),
                        |begin| begin.with(($(&$value,)*)),
                    )
                } else {
                    $crate::Span::none()
                }
            }
        }
    }};
}

/// Adds an event to the current span: `event!("name", "key" = value, ..)`.
///
/// Without a recorded span it is counted and dropped. A span keeps 128 events by default.
///
/// ```
/// stagetrace::event!("cache miss", "key" = "weights", "bytes" = 4096);
/// ```
#[macro_export]
macro_rules! event {
    ($name:expr $(, $key:literal = $value:expr)* $(,)?) => {
        $crate::__stagetrace_on_off! {
            on { $crate::add_event($name, &[$(($key, &$value)),*]) }
            off { if false { $crate::add_event($name, &[$(($key, &$value)),*]) } }
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __span_level {
    () => {
        2
    };
    ($level:literal) => {
        const {
            assert!(1 <= $level && $level <= 3, "a level is 1, 2 or 3");
            $level
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __span_parent {
    () => {
        $crate::Position::NULL
    };
    ($parent:expr) => {
        $parent
    };
}
