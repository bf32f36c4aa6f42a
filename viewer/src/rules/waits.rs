//! Which stages wait.

/// Whether a stage waits, by its name: one of its words is about queues or waiting.
pub(crate) fn waits(stage: &str) -> bool {
    let words = stage.split(|character: char| !character.is_alphanumeric());
    let is_about = |word: &str| {
        let word = word.to_ascii_lowercase();
        matches!(word.as_str(), "queue" | "queued" | "queueing" | "queuing" | "wait" | "waiting")
            || ["queue", "waiting"].iter().any(|end| word.ends_with(end))
    };
    words.into_iter().any(is_about)
}

#[cfg(test)]
mod tests {
    use super::waits;

    #[test]
    fn stages_of_queues_wait() {
        for stage in ["queue", "gpu_queue_wait", "prefill_waiting", "Engine.Queued", "RequestQueue"]
        {
            assert!(waits(stage), "{stage}");
        }
        for stage in ["forward", "await_nothing", "waiter", "enqueued_by", "", "世界"] {
            assert!(!waits(stage), "{stage}");
        }
    }
}
