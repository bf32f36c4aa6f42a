//! Proxies on the way to a collector, as the environment names them.

use crate::collector;
use crate::support::{LONG, flush, problems, scenarios, step, wait_until, written};
use stagetrace::{TraceConfig, TraceGuard, init};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// A proxy that lets everybody through to one server, whichever they ask for.
struct Proxy {
    address: SocketAddr,
    /// How each connection began.
    heads: Arc<Mutex<Vec<String>>>,
}

impl Proxy {
    fn to(server: SocketAddr) -> Proxy {
        Proxy::answering("HTTP/1.1 200 Connection established\r\n\r\n", Some(server))
    }

    /// One that answers this to who asks for a tunnel.
    fn answering(answer: &'static str, server: Option<SocketAddr>) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let heads = Arc::default();
        let seen = Arc::clone(&heads);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let seen = Arc::clone(&seen);
                std::thread::spawn(move || serve(client.unwrap(), answer, server, &seen));
            }
        });
        Proxy { address, heads }
    }

    fn url(&self) -> String {
        format!("http://user:s3cret@{}", self.address)
    }

    /// How the first connection began.
    fn head(&self) -> String {
        self.heads.lock().unwrap()[0].clone()
    }
}

fn serve(
    mut client: TcpStream,
    answer: &str,
    server: Option<SocketAddr>,
    seen: &Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if client.read(&mut byte).unwrap_or(0) == 0 {
            return;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).unwrap();
    let is_tunnel = text.starts_with("CONNECT ");
    seen.lock().unwrap().push(text.clone());
    if is_tunnel {
        client.write_all(answer.as_bytes()).unwrap();
    }
    let Some(server) = server else { return };
    let mut server = TcpStream::connect(server).unwrap();
    if !is_tunnel {
        server.write_all(text.as_bytes()).unwrap();
    }
    let (mut from_client, mut to_server) =
        (client.try_clone().unwrap(), server.try_clone().unwrap());
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    let _ = client.shutdown(Shutdown::Both);
}

/// Starts tracing as these variables say.
fn start(variables: &[(&str, &str)]) -> TraceGuard {
    let lookup = |name: &str| {
        let more = [("OTEL_BSP_SCHEDULE_DELAY", "20"), ("OTEL_EXPORTER_OTLP_TIMEOUT", "1000")];
        let mut all = variables.iter().chain(&more);
        all.find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned())
    };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exporters");
    init(TraceConfig::from_lookup(lookup).unwrap().output_dir(dir).outbox_max_bytes(0)).unwrap()
}

const USER: &str = "\r\nproxy-authorization: Basic dXNlcjpzM2NyZXQ=\r\n";

scenarios! {
    fn grpc_goes_through_a_tunnel() {
        let collector = collector();
        let proxy = Proxy::to(collector.address());
        let _trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("HTTP_PROXY", &proxy.url()),
        ]);
        step(0);
        flush(LONG).unwrap();
        assert_eq!(collector.spans().len(), 1);
        let head = proxy.head();
        assert!(head.starts_with("CONNECT collector.example:4317 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(USER), "{head}");
        let request = &collector.requests()[0];
        assert_eq!(request.header("proxy-authorization"), None, "that is the proxy's");
    }

    fn http_in_clear_is_passed_on_by_the_proxy() {
        let collector = collector();
        let proxy = Proxy::to(collector.address());
        let _trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318"),
            ("http_proxy", &proxy.url()),
        ]);
        step(0);
        flush(LONG).unwrap();
        assert_eq!(collector.spans().len(), 1);
        let head = proxy.head();
        let expected = "POST http://collector.example:4318/v1/traces HTTP/1.1\r\n";
        assert!(head.starts_with(expected) && head.contains(USER), "{head}");
        assert!(head.contains("\r\nhost: collector.example:4318\r\n"), "{head}");
    }

    fn what_is_near_needs_no_proxy() {
        let collector = collector();
        let proxy = Proxy::answering("HTTP/1.1 500 No\r\n\r\n", None);
        let _trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.endpoint()),
            ("ALL_PROXY", &proxy.url()),
        ]);
        step(0);
        wait_until(|| collector.spans().len() == 1);
        assert!(proxy.heads.lock().unwrap().is_empty());
    }

    fn a_proxy_that_refuses_is_named_without_what_it_was_told() {
        let answer = "HTTP/1.1 407 \x1b[31ms3cret\r\nx: s3cret\r\n\r\ns3cret";
        let proxy = Proxy::answering(answer, None);
        let trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4317"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("ALL_PROXY", &proxy.url()),
        ]);
        step(0);
        let problems = problems(flush(LONG));
        let why = format!("the proxy {} answers with HTTP status 407", proxy.address);
        assert!(problems[0].1.contains(&why), "{problems:?}");
        let all = format!("{problems:?} {:?}", stagetrace::status());
        assert!(!all.contains("s3cret"), "{all}");
        assert_eq!(written(&trace).len(), 1);
    }

    fn a_proxy_that_is_gone_is_named() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let gone = listener.local_addr().unwrap();
        drop(listener);
        let _trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318"),
            ("HTTP_PROXY", &format!("{gone}")),
        ]);
        step(0);
        let problems = problems(flush(LONG));
        let why = format!("the proxy {gone} cannot be reached: ");
        assert!(problems[0].1.contains(&why), "{problems:?}");
        assert!(problems[0].1.contains("onnection refused"), "{problems:?}");
        let remedy = "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY names the proxy, and NO_PROXY ";
        assert!(problems[0].1.contains(remedy), "{problems:?}");
    }

    fn a_proxy_that_cannot_be_used_warns_and_nothing_is_sent() {
        let trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector.example:4318"),
            ("ALL_PROXY", "socks5://user:s3cret@proxy:1080"),
        ]);
        step(0);
        assert_eq!((flush(LONG).unwrap().sinks.len(), written(&trace).len()), (1, 1));
        let warnings = stagetrace::status().warnings;
        let expected = "ALL_PROXY: the proxy is not http://: nothing is sent, the local files are written";
        assert_eq!(warnings[0].to_string(), expected);
    }
}

#[cfg(feature = "tls")]
mod encrypted {
    use super::*;
    use crate::tls::Certificates;

    fn goes_through_a_tunnel(name: &str, protocol: &str) {
        let (certificates, collector) = (Certificates::new(name), collector());
        let port = certificates.serve("collector.example", false, &collector);
        let proxy = Proxy::to(([127, 0, 0, 1], port).into());
        let _trace = start(&[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://collector.example"),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", protocol),
            ("OTEL_EXPORTER_OTLP_CERTIFICATE", certificates.path("ca.pem").to_str().unwrap()),
            ("HTTPS_PROXY", &proxy.url()),
        ]);
        step(0);
        flush(LONG).unwrap();
        assert_eq!(collector.spans().len(), 1);
        let head = proxy.head();
        assert!(head.starts_with("CONNECT collector.example:443 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(USER), "{head}");
        assert_eq!(collector.requests()[0].header("proxy-authorization"), None);
    }

    scenarios! {
        fn encrypted_grpc_goes_through_a_tunnel() {
            goes_through_a_tunnel("proxied grpc", "grpc");
        }

        fn encrypted_http_goes_through_a_tunnel() {
            goes_through_a_tunnel("proxied http", "http/protobuf");
        }
    }
}
