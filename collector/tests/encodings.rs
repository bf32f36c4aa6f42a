//! Every form of OTLP, with every compression, brings the same spans.

mod support;

use stagetrace_collector::Collector;
use support::{PROTOCOLS, encoded, gzip, send, span, zstd};

#[tokio::test]
async fn each_form_with_each_compression_brings_the_same_spans() {
    let collector = Collector::start().await.unwrap();
    let spans = [span(1, "first"), span(2, "second")];
    for protocol in PROTOCOLS {
        let plain = encoded(protocol, &spans);
        let compressions: [(&str, Vec<u8>); 5] = [
            ("", plain.clone()),
            ("gzip", gzip(&plain)),
            ("zstd", zstd(&plain)),
            ("GZIP", gzip(&plain)),
            // Two members after one another are one body.
            ("gzip", [gzip(&plain[..9]), gzip(&plain[9..])].concat()),
        ];
        for (name, body) in compressions {
            let answer = send(&collector, protocol, name, &body).await.unwrap();
            assert_eq!(answer.status, 200, "{protocol:?} with {name:?}: {answer:?}");
            assert_eq!(collector.spans()[..], spans, "{protocol:?} with {name:?}");
            let [request] = &collector.requests()[..] else { panic!("one request") };
            assert_eq!(request.protocol, Some(protocol));
            let compression = Some(name.to_lowercase()).filter(|name| !name.is_empty());
            assert_eq!(request.compression, compression.as_deref());
            assert_eq!((request.sent_bytes, request.body_bytes), (body.len(), Some(plain.len())));
            assert_eq!((request.spans, &request.error), (2, &None));
            collector.clear();
        }
    }
}

#[tokio::test]
async fn spans_that_a_sender_repeats_are_there_again() {
    let collector = Collector::start().await.unwrap();
    for protocol in PROTOCOLS {
        let twice = [span(1, "repeated"), span(1, "repeated")];
        send(&collector, protocol, "", &encoded(protocol, &twice)).await.unwrap();
        assert_eq!(collector.clear()[..], twice, "{protocol:?}");
    }
}
