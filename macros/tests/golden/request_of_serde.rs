#[request(skip_null, crate = facade::stagetrace)]
#[derive(Serialize, Deserialize)]
pub(crate) struct Always {
    id: String,
}

#[request]
#[cfg_attr(feature = "serde", derive(Serialize))]
struct Conditional {
    id: String,
}
