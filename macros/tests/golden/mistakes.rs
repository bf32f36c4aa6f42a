#[stage(DiffStage::GpuForward, reqest, nmae = "x")]
const fn forward(request: &Request) {}

#[derive(Stages)]
enum Stages {
    #[stage(level = 9)]
    Decode(u32),
}

#[derive(Traced)]
struct Untraced<T> {
    id: T,
}
