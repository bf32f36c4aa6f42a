//! The attributes that the viewer understands, of XTuner, of stagetrace, of OpenTelemetry's
//! conventions, and of other rollout frameworks.

use super::tables::Name;

/// What an attribute says of its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    /// The stage, by a key of this rank; 0 counts most.
    Stage(u8),
    /// The sample, its group, step, attempt, session.
    Ident(usize),
    Task,
    Request,
    Status,
    Reward,
    Pass,
    Finish,
    PromptTokens,
    CompletionTokens,
    /// Seconds until the first token, or thousandths of them.
    FirstToken,
    FirstTokenMs,
    /// Seconds of a batch's time that count for one of its members.
    Share,
    /// `error`: a failure if true.
    Error,
    ErrorType,
    ErrorMessage,
    ExceptionType,
    ExceptionMessage,
    /// A status of HTTP: a failure from 400 on.
    HttpStatus,
    /// How a request of stagetrace ended.
    Outcome,
    /// The span was open when its process died.
    Lost,
    /// The span stands for another one that is still open.
    Pending,
    /// Nothing that rules ask for.
    Other,
}

/// Places in a label.
pub(super) mod ident {
    pub(crate) const ROLLOUT: usize = 0;
    pub(crate) const GROUP: usize = 1;
    pub(crate) const STEP: usize = 2;
    pub(crate) const ATTEMPT: usize = 3;
    pub(crate) const SESSION: usize = 4;
    pub(crate) const COUNT: usize = 5;
}

macro_rules! known {
    ($($key:literal => $fact:expr,)*) => {
        /// The first names of every store, in this order.
        pub(super) const ALL: &[&str] = &["", $($key),*];
        const FACTS: &[Fact] = &[Fact::Other, $($fact),*];
    };
}

known! {
    "xtuner.stage" => Fact::Stage(0),
    "stage" => Fact::Stage(1),
    "stage.name" => Fact::Stage(2),
    "xtuner.rollout_id" => Fact::Ident(ident::ROLLOUT),
    "rollout.id" => Fact::Ident(ident::ROLLOUT),
    "rollout_id" => Fact::Ident(ident::ROLLOUT),
    "rl.rollout.id" => Fact::Ident(ident::ROLLOUT),
    "xtuner.group_id" => Fact::Ident(ident::GROUP),
    "rollout.group_id" => Fact::Ident(ident::GROUP),
    "group_id" => Fact::Ident(ident::GROUP),
    "rl.group.id" => Fact::Ident(ident::GROUP),
    "xtuner.producer_future_step" => Fact::Ident(ident::STEP),
    "rollout.step" => Fact::Ident(ident::STEP),
    "rl.step" => Fact::Ident(ident::STEP),
    "rl.loop.iteration" => Fact::Ident(ident::STEP),
    "xtuner.attempt" => Fact::Ident(ident::ATTEMPT),
    "rollout.attempt" => Fact::Ident(ident::ATTEMPT),
    "rl.attempt" => Fact::Ident(ident::ATTEMPT),
    "xtuner.session_id" => Fact::Ident(ident::SESSION),
    "session.id" => Fact::Ident(ident::SESSION),
    "gen_ai.conversation.id" => Fact::Ident(ident::SESSION),
    "xtuner.task_name" => Fact::Task,
    "rollout.task" => Fact::Task,
    "rl.sample.task.name" => Fact::Task,
    "stagetrace.request.id" => Fact::Request,
    "gen_ai.request.id" => Fact::Request,
    "xtuner.status" => Fact::Status,
    "rollout.status" => Fact::Status,
    "reward.score" => Fact::Reward,
    "rl.reward.score" => Fact::Reward,
    "reward.pass" => Fact::Pass,
    "finish_reason" => Fact::Finish,
    "gen_ai.response.finish_reasons" => Fact::Finish,
    "prompt.tokens" => Fact::PromptTokens,
    "gen_ai.usage.input_tokens" => Fact::PromptTokens,
    "gen_ai.usage.prompt_tokens" => Fact::PromptTokens,
    "completion.tokens" => Fact::CompletionTokens,
    "gen_ai.usage.output_tokens" => Fact::CompletionTokens,
    "gen_ai.usage.completion_tokens" => Fact::CompletionTokens,
    "gen_ai.response.time_to_first_chunk" => Fact::FirstToken,
    "gen_ai.server.time_to_first_token" => Fact::FirstToken,
    "gen_ai.latency.time_to_first_token" => Fact::FirstToken,
    "ttft_ms" => Fact::FirstTokenMs,
    "stagetrace.batch.share" => Fact::Share,
    "error" => Fact::Error,
    "error.type" => Fact::ErrorType,
    "error.message" => Fact::ErrorMessage,
    "exception.type" => Fact::ExceptionType,
    "exception.message" => Fact::ExceptionMessage,
    "http.status_code" => Fact::HttpStatus,
    "http.response.status_code" => Fact::HttpStatus,
    "stagetrace.outcome" => Fact::Outcome,
    "stagetrace.open" => Fact::Lost,
    "stagetrace.pending" => Fact::Pending,
}

/// What an attribute says, by the number of its key.
pub(super) fn fact(key: Name) -> Fact {
    FACTS.get(key.0 as usize).copied().unwrap_or(Fact::Other)
}
