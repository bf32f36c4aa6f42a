//! How a span goes into OTLP, in either encoding: their writers have the same names and methods, and no type in common.

/// Defines `SiteHeads`, what is constant of a site's spans in the encoding whose writers are in scope, and with it how a
/// span is begun and written.
macro_rules! site_heads {
    () => {
        /// What is constant of a site's spans, encoded.
        #[derive(Debug)]
        struct SiteHeads {
            span: SpanHead,
            keys: Vec<KeyHead>,
            function: AttributeHead,
            plain: SpanTemplate,
        }

        impl SiteHeads {
            fn new(site: &Site) -> SiteHeads {
                let span = SpanHead::new(site.stage().name(), site.kind());
                let function = AttributeHead::new(Key::FUNCTION, ValueRef::Str(site.function()));
                let always = match site.function() {
                    "" => Vec::new(),
                    _ => vec![function.clone()],
                };
                SiteHeads {
                    plain: SpanTemplate::new(span.clone(), always),
                    keys: site.keys().iter().map(|key| KeyHead::new(key)).collect(),
                    span,
                    function,
                }
            }

            /// What a span begins with.
            fn start<'a>(&'a self, span: &SpanView<'a>) -> SpanStart<'a> {
                SpanStart {
                    trace_id: span.trace_id,
                    span_id: span.span_id,
                    parent_span_id: span.parent,
                    trace_state: span.trace_state(),
                    flags: span.flags(),
                    title: (&self.span).into(),
                    start_unix_nano: span.begin,
                    end_unix_nano: span.end,
                }
            }

            /// Writes the rest of it.
            fn write(&self, mut writer: SpanWriter<'_>, span: &SpanView<'_>) {
                let dropped = span.attributes(|key, value| match key {
                    Key::OfSite(at) => {
                        if let Some(key) = self.keys.get(at) {
                            writer.attribute(key, value);
                        }
                    }
                    Key::Function => {
                        writer.encoded(&self.function);
                    }
                    Key::Text(key) => {
                        writer.attribute(key, value);
                    }
                });
                if span.has_details() {
                    finish_with_details(writer, span, dropped);
                } else {
                    let (code, message) = span.status();
                    writer.events(dropped).links(0).finish(0, code, message);
                }
            }
        }

        #[cold]
        fn finish_with_details(writer: SpanWriter<'_>, span: &SpanView<'_>, dropped: u32) {
            let mut events = writer.events(dropped);
            for event in span.events() {
                let mut item = events.event(event.name, event.time);
                let limit = span.limits.attributes_per_event;
                for (key, value) in event.attributes().take(limit) {
                    item.attribute(key, value);
                }
                item.dropped_attributes(event.attributes().count().saturating_sub(limit) as u32);
            }
            let mut links = events.links(span.dropped_events);
            for link in span.links() {
                let mut item = links.link(link.trace_id, link.span_id, "", link.flags);
                let limit = span.limits.attributes_per_link;
                for (key, value) in link.attributes().take(limit) {
                    item.attribute(key, value);
                }
                item.dropped_attributes(link.attributes().count().saturating_sub(limit) as u32);
            }
            let (code, message) = span.status();
            links.finish(span.dropped_links, code, message);
        }
    };
}

pub(super) use site_heads;
