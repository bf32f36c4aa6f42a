//! The instruments: their names, units and buckets. `docs/metrics.md` lists them.

use opentelemetry::metrics::{Histogram, Meter};

/// From a tenth of a millisecond to a hundred seconds: stages of model servers take anything in between.
const STEPS: &[f64] = &[
    0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0,
    10.0, 20.0, 50.0, 100.0,
];
/// As the conventions have it: from ten milliseconds to about eighty seconds, each bound twice the one before.
const DOUBLING: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const FIRST_TOKEN: &[f64] =
    &[0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];
const PER_TOKEN: &[f64] =
    &[0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5];

/// What spans are recorded into. All are made before the first span comes.
pub(super) struct Instruments {
    pub(super) stage_duration: Histogram<f64>,
    pub(super) request_duration: Histogram<f64>,
    pub(super) request_stage_duration: Histogram<f64>,
    pub(super) gen_ai_request_duration: Histogram<f64>,
    pub(super) gen_ai_first_token: Histogram<f64>,
    pub(super) gen_ai_per_token: Histogram<f64>,
}

impl Instruments {
    pub(super) fn of(meter: &Meter) -> Instruments {
        let seconds = |name: &'static str, what: &'static str, bounds: &[f64]| {
            let histogram = meter.f64_histogram(name).with_description(what).with_unit("s");
            histogram.with_boundaries(bounds.to_vec()).build()
        };
        Instruments {
            stage_duration: seconds(
                "stagetrace.stage.duration",
                "Duration of the executions of a stage.",
                STEPS,
            ),
            request_duration: seconds(
                "stagetrace.request.duration",
                "Duration of requests, from begin to finish.",
                STEPS,
            ),
            request_stage_duration: seconds(
                "stagetrace.request.stage.duration",
                "Time that a finished request spent in a stage, all its executions together.",
                STEPS,
            ),
            gen_ai_request_duration: seconds(
                "gen_ai.server.request.duration",
                "Generative AI server request duration such as time-to-last byte or last output token.",
                DOUBLING,
            ),
            gen_ai_first_token: seconds(
                "gen_ai.server.time_to_first_token",
                "Time to generate first token for successful responses.",
                FIRST_TOKEN,
            ),
            gen_ai_per_token: seconds(
                "gen_ai.server.time_per_output_token",
                "Time per output token generated after the first token for successful responses.",
                PER_TOKEN,
            ),
        }
    }
}
