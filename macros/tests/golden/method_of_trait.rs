impl<T> Engine for Cpu<T> {
    #[stage(DiffStage::GpuForward, self)]
    fn sync(&mut self) -> &mut T {
        &mut self.state
    }

    #[stage(DiffStage::GpuForward, request)]
    async fn later(self, request: Request) -> Self {
        self
    }
}
