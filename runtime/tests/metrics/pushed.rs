//! Metrics that `opentelemetry-otlp` pushes, as the server gets them.

use crate::support::{LONG, config, flush, scenarios, steps};
use opentelemetry::metrics::MeterProvider;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use prost::Message;
use stagetrace::{init_with, metrics};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};

/// Posts over a connection of its own, which needs no runtime.
#[derive(Debug)]
struct Posting;

impl HttpClient for Posting {
    fn send_bytes<'a, 'f>(
        &'a self,
        request: Request<Bytes>,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let uri = request.uri();
            let mut stream = TcpStream::connect((
                uri.host().unwrap_or_default(),
                uri.port_u16().unwrap_or_default(),
            ))?;
            let (path, body) = (uri.path(), request.body());
            write!(stream, "POST {path} HTTP/1.1\r\ncontent-length: {}\r\n\r\n", body.len())?;
            stream.write_all(body)?;
            let mut status = String::new();
            BufReader::new(stream).read_line(&mut status)?;
            assert!(status.starts_with("HTTP/1.1 200"), "{status}");
            Ok(Response::new(Bytes::new()))
        })
    }
}

/// A server that keeps what is posted: paths and bodies.
fn server() -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1/metrics", listener.local_addr().unwrap());
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut lines = reader.by_ref().lines().map(Result::unwrap);
            let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            let length = lines.next().unwrap();
            let length = length.strip_prefix("content-length: ").unwrap().parse().unwrap();
            assert_eq!(lines.next().unwrap(), "");
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            sender.send((path, body)).unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
        }
    });
    (url, receiver)
}

scenarios! {
    fn an_otlp_exporter_pushes_what_the_spans_say() {
        let (url, posted) = server();
        let exporter = MetricExporter::builder().with_http().with_http_client(Posting);
        // Which one is the default depends on the features that others ask for.
        let exporter = exporter.with_protocol(Protocol::HttpBinary);
        let exporter = exporter.with_endpoint(url).build().unwrap();
        let provider = SdkMeterProvider::builder().with_periodic_exporter(exporter).build();
        let meter = provider.meter("stagetrace");
        let trace = init_with(config(), [metrics::exporter(meter)]).unwrap();
        steps(0, 7);
        flush(LONG).unwrap();
        drop(trace);
        provider.shutdown().unwrap();
        let (path, body) = posted.recv_timeout(LONG).unwrap();
        assert_eq!(path, "/v1/metrics");
        let request = ExportMetricsServiceRequest::decode(&*body).unwrap();
        let scopes = request.resource_metrics.into_iter().flat_map(|of| of.scope_metrics);
        let scope = scopes.into_iter().find(|of| of.scope.as_ref().unwrap().name == "stagetrace");
        let all = scope.unwrap().metrics;
        let metric = |name: &str| all.iter().find(|metric| metric.name == name).unwrap();
        let duration = metric("stagetrace.stage.duration");
        let Some(Data::Histogram(histogram)) = &duration.data else { panic!("{duration:?}") };
        assert_eq!((histogram.data_points[0].count, &*duration.unit), (7, "s"));
        assert_eq!(metric("otel.sdk.span.started").unit, "{span}");
    }
}
