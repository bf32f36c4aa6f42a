//! `within` names another variant.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    SchedulerDispatch,
    #[stage(within = SchedulerDispach)]
    GpuForward,
    #[stage(within = Elsewhere)]
    Decode,
    #[stage(within = Steps::Decode)]
    Encode,
}

fn main() {}
