#[request(name = "generate", stages = DiffStage)]
#[derive(Clone)]
pub struct Request {
    #[traced(id)]
    pub id: String,
}
