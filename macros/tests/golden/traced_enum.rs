#[derive(Traced)]
enum Either<T> {
    Generate(Box<Request>),
    Other { request: T },
}
