//! A Jaeger over https is asked if its certificate is trusted, and told nothing else.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use stagetrace_viewer::{JaegerQuery, Sources, Store};

mod support;

use support::{cases, wait_until};

/// Names the Jaeger to the process that asks.
const URL: &str = "JAEGER_URL";

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// Answers every request with all traces. Gives the port, and counts requests.
fn serve(authority: &CertifiedIssuer<'static, KeyPair>) -> (u16, Arc<AtomicUsize>) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = requests.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            answer(StreamOwned::new(connection, stream.unwrap()), &counted);
        }
    });
    (port, requests)
}

fn answer(mut stream: StreamOwned<ServerConnection, TcpStream>, requests: &AtomicUsize) {
    let traces = fs::read(cases("xtuner/jaeger/traces.json")).unwrap();
    let mut head = Vec::new();
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        head.push(byte[0]);
        if !head.ends_with(b"\r\n\r\n") {
            continue;
        }
        requests.fetch_add(1, Ordering::SeqCst);
        let (status, body): (u16, &[u8]) = match &*head {
            head if head.starts_with(b"GET /api/v3/") => (404, b""),
            head if head.starts_with(b"GET /api/services") => (200, b"{\"data\":[\"a\"]}"),
            _ => (200, &traces),
        };
        let length = body.len();
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n\r\n");
        if stream.write_all(&[answer.as_bytes(), body].concat()).is_err() {
            return;
        }
        head.clear();
    }
}

/// What the process that asks says.
fn ask(port: u16, trusted: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "it_is_asked_if_it_is_trusted", "--nocapture"])
        .env(URL, format!("https://localhost:{port}"))
        .env("SSL_CERT_FILE", trusted)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn it_is_asked_if_it_is_trusted() {
    if let Ok(url) = std::env::var(URL) {
        let (mut sources, mut store) = (Sources::default(), Store::default());
        let query = JaegerQuery::new(url);
        sources.jaeger(JaegerQuery { interval: Duration::from_secs(600), ..query }).unwrap();
        wait_until(|| {
            sources.poll(&mut store);
            store.stats().spans > 0 || sources.report().inboxes[0].error.is_some()
        });
        println!("{} spans, {:?}", store.stats().spans, sources.report().inboxes[0].error);
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let (known, unknown) = (authority(), authority());
    let path = |name: &str| directory.path().join(name);
    fs::write(path("known.pem"), known.pem()).unwrap();
    fs::write(path("unknown.pem"), unknown.pem()).unwrap();
    let (port, requests) = serve(&known);
    let said = ask(port, &path("unknown.pem"));
    assert!(said.contains("0 spans, Some(\"") && said.contains("certificate"), "{said}");
    assert_eq!(requests.load(Ordering::SeqCst), 0);
    let said = ask(port, &path("known.pem"));
    assert!(said.contains("90 spans, None"), "{said}");
    assert!(requests.load(Ordering::SeqCst) >= 3);
}
