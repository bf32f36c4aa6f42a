//! Names that are none.

use stagetrace::Stages;

#[derive(Stages)]
enum Steps {
    #[stage(name = "GPU forward")]
    One,
    #[stage(name = "")]
    Two,
    #[stage(name = "2nd")]
    Three,
    #[stage(name = gpu_forward)]
    Four,
    #[stage(name = "a_name_that_is_much_longer_than_any_table_or_viewer_would_want_to_show")]
    Five,
    Étape,
}

fn main() {}
