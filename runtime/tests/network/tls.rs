//! Encrypted endpoints: who is trusted, who we are, and what is refused before anything is sent.

use crate::inherited::{command, part};
use crate::support::{LONG, config, flush, problems, scenarios, sink, step, written};
use crate::{collector, start};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use stagetrace::{InitError, Otlp, OtlpError, TraceConfig, init};
use stagetrace_collector::Collector;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// Certificates of a test, as files.
pub(crate) struct Certificates {
    dir: PathBuf,
    ca: CertifiedIssuer<'static, KeyPair>,
}

impl Certificates {
    /// A directory with `ca.pem`.
    pub(crate) fn new(name: &str) -> Certificates {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tls").join(name);
        std::fs::create_dir_all(&dir).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(dir.join("ca.pem"), ca.pem()).unwrap();
        Certificates { dir, ca }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// A certificate for this name, and its key.
    fn issue(&self, name: &str) -> (rcgen::Certificate, KeyPair) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.ca).unwrap(), key)
    }

    /// The files `client.pem` and `client.key`.
    fn client(&self) -> (PathBuf, PathBuf) {
        let (certificate, key) = self.issue("client");
        std::fs::write(self.path("client.pem"), certificate.pem()).unwrap();
        std::fs::write(self.path("client.key"), key.serialize_pem()).unwrap();
        (self.path("client.pem"), self.path("client.key"))
    }

    /// Encrypts what goes to a collector, under this name. Gives the port.
    pub(crate) fn serve(&self, name: &str, asks_for_client: bool, collector: &Collector) -> u16 {
        let (certificate, key) = self.issue(name);
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_safe_default_protocol_versions().unwrap();
        let builder = if asks_for_client {
            let mut roots = RootCertStore::empty();
            roots.add(self.ca.der().clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider);
            builder.with_client_cert_verifier(verifier.build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(vec![certificate.der().clone()], key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        relay(TlsAcceptor::from(Arc::new(config)), collector.address())
    }
}

/// Decrypts what comes to the port that it gives, and passes it on.
fn relay(acceptor: TlsAcceptor, to: SocketAddr) -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    std::thread::spawn(move || {
        runtime.block_on(async {
            let listener = TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut outside) = acceptor.accept(stream).await else { return };
                    let Ok(mut inside) = TcpStream::connect(to).await else { return };
                    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
                });
            }
        });
    });
    port
}

/// A span arrives with this.
fn delivers(otlp: Otlp, collector: &Collector) {
    let _trace = start(otlp);
    step(0);
    flush(LONG).unwrap();
    assert_eq!(collector.spans().len(), 1);
}

/// None does, and it is said why.
fn fails(otlp: Otlp, collector: &Collector, why: &str) {
    let trace = start(otlp.timeout(Duration::from_secs(1)));
    step(0);
    let problems = problems(flush(LONG));
    assert!(problems[0].1.contains(why), "{problems:?}");
    assert_eq!((sink("otlp").failed, written(&trace).len()), (1, 1));
    assert_eq!(collector.requests().len(), 0, "nothing was sent");
}

scenarios! {
    fn a_port_without_tls_is_told() {
        let (certificates, collector) = (Certificates::new("plain"), collector());
        let endpoint = collector.endpoint().replace("http://", "https://");
        let otlp = Otlp::http(endpoint).certificate(certificates.path("ca.pem"));
        let _trace = start(otlp.timeout(Duration::from_secs(1)));
        step(0);
        let problems = problems(flush(LONG));
        let hint = "the server does not speak TLS here: http:// instead of https://?";
        assert!(problems[0].1.contains(hint), "{problems:?}");
    }

    fn a_ca_of_one_s_own_is_trusted_over_grpc() {
        let (certificates, collector) = (Certificates::new("grpc"), collector());
        let port = certificates.serve("localhost", false, &collector);
        let otlp = Otlp::grpc(format!("https://localhost:{port}"));
        delivers(otlp.certificate(certificates.path("ca.pem")), &collector);
    }

    fn a_ca_of_one_s_own_is_trusted_over_http() {
        let (certificates, collector) = (Certificates::new("http"), collector());
        let port = certificates.serve("127.0.0.1", false, &collector);
        let otlp = Otlp::http(format!("https://127.0.0.1:{port}"));
        delivers(otlp.certificate(certificates.path("ca.pem")), &collector);
    }

    fn whom_the_system_trusts_is_trusted_where_no_file_is_named() {
        if let Some((_, endpoint)) = part() {
            let _trace = start(Otlp::http(endpoint).timeout(Duration::from_secs(1)));
            step(0);
            return drop(flush(LONG).unwrap());
        }
        let (certificates, collector) = (Certificates::new("system"), collector());
        let port = certificates.serve("localhost", false, &collector);
        let endpoint = format!("https://localhost:{port}");
        for (file, is_trusted) in [("ca.pem", true), ("other.pem", false)] {
            let other = Certificates::new("system's other");
            std::fs::copy(other.path("ca.pem"), certificates.path("other.pem")).unwrap();
            let mut program = command("sends", &endpoint);
            let output = program.env("SSL_CERT_FILE", certificates.path(file)).output().unwrap();
            assert_eq!(output.status.success(), is_trusted, "{output:?}");
        }
        assert_eq!(collector.spans().len(), 1);
    }

    fn a_grpc_endpoint_without_scheme_is_encrypted() {
        let (certificates, collector) = (Certificates::new("bare"), collector());
        let port = certificates.serve("localhost", false, &collector);
        let otlp = Otlp::grpc(format!("localhost:{port}"));
        delivers(otlp.certificate(certificates.path("ca.pem")), &collector);
    }

    fn the_variables_of_the_signal_name_the_files() {
        let (certificates, collector) = (Certificates::new("environment"), collector());
        let port = certificates.serve("localhost", true, &collector);
        let (certificate, key) = certificates.client();
        let lookup = |name: &str| -> Option<std::ffi::OsString> {
            match name {
                "OTEL_EXPORTER_OTLP_ENDPOINT" => Some(format!("https://localhost:{port}").into()),
                "OTEL_EXPORTER_OTLP_CERTIFICATE" => Some("/nowhere".into()),
                "OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE" => Some(certificates.path("ca.pem").into()),
                "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE" => Some(certificate.clone().into()),
                "OTEL_EXPORTER_OTLP_CLIENT_KEY" => Some(key.clone().into()),
                "OTEL_BSP_SCHEDULE_DELAY" => Some("20".into()),
                _ => None,
            }
        };
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exporters");
        let _trace = init(TraceConfig::from_lookup(lookup).unwrap().output_dir(dir)).unwrap();
        step(0);
        flush(LONG).unwrap();
        assert_eq!((collector.spans().len(), stagetrace::status().warnings), (1, vec![]));
    }

    fn a_server_that_only_strangers_trust_is_refused() {
        let (certificates, collector) = (Certificates::new("stranger"), collector());
        let port = certificates.serve("localhost", false, &collector);
        let other = Certificates::new("stranger's");
        let otlp = Otlp::grpc(format!("https://localhost:{port}")).header("api-key", "s3cret");
        fails(otlp.certificate(other.path("ca.pem")), &collector, "invalid peer certificate");
    }

    fn a_server_under_another_name_is_refused() {
        let (certificates, collector) = (Certificates::new("name"), collector());
        let port = certificates.serve("elsewhere.example", false, &collector);
        let otlp = Otlp::http(format!("https://localhost:{port}"));
        fails(otlp.certificate(certificates.path("ca.pem")), &collector, "invalid peer certificate");
    }

    fn a_server_that_asks_who_we_are_gets_the_client_s_certificate() {
        let (certificates, collector) = (Certificates::new("client"), collector());
        let port = certificates.serve("localhost", true, &collector);
        let (certificate, key) = certificates.client();
        let otlp = Otlp::grpc(format!("https://localhost:{port}"));
        let otlp = otlp.certificate(certificates.path("ca.pem"));
        delivers(otlp.client_certificate(certificate, key), &collector);
    }

    fn without_a_client_s_certificate_such_a_server_refuses() {
        let (certificates, collector) = (Certificates::new("nobody"), collector());
        let port = certificates.serve("localhost", true, &collector);
        let otlp = Otlp::http(format!("https://localhost:{port}"));
        fails(otlp.certificate(certificates.path("ca.pem")), &collector, "ertificate");
    }

    fn a_plain_server_is_not_spoken_to_in_clear() {
        let collector = collector();
        let certificates = Certificates::new("plain");
        let otlp = Otlp::http(format!("https://{}", collector.address()));
        fails(otlp.certificate(certificates.path("ca.pem")), &collector, "InvalidContentType");
    }

    fn a_file_that_cannot_be_used_is_the_program_s_mistake() {
        let certificates = Certificates::new("files");
        let (_, key) = certificates.client();
        let refusal = |otlp: Otlp| match init(config().otlp(otlp)) {
            Err(InitError::Otlp(error @ OtlpError::File { .. })) => error.to_string(),
            other => panic!("it is not refused: {other:?}"),
        };
        let https = || Otlp::grpc("https://localhost:1");
        let missing = refusal(https().certificate("/nowhere/ca.pem"));
        assert!(missing.starts_with("/nowhere/ca.pem: cannot be read: "), "{missing}");
        let empty = refusal(https().certificate(&key));
        assert!(empty.ends_with(": holds no certificate"), "{empty}");
        let ca = certificates.path("ca.pem");
        let no_key = refusal(https().client_certificate(&ca, &ca));
        assert!(no_key.ends_with(": holds no key"), "{no_key}");
        let other_key = refusal(https().client_certificate(&ca, &key));
        assert!(other_key.contains(": no certificate with this key: "), "{other_key}");
        // Where nothing is encrypted nobody asks for them.
        let _trace = start(Otlp::grpc("http://localhost:1").certificate("/nowhere/ca.pem"));
    }

    fn where_nothing_is_traced_no_file_is_read_but_a_mistake_is_one() {
        let off = || config().enabled(false);
        let wrong = init(off().otlp(Otlp::http("localhost")));
        assert!(matches!(wrong, Err(InitError::Otlp(OtlpError::Endpoint(_)))), "{wrong:?}");
        let otlp = Otlp::grpc("https://localhost:1").certificate("/nowhere/ca.pem");
        let _trace = init(off().otlp(otlp)).unwrap();
        assert_eq!(stagetrace::status().warnings, []);
    }

    fn a_file_that_the_environment_names_and_cannot_be_used_warns_and_nothing_is_sent() {
        let lookup = |name: &str| match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => Some("https://localhost:1"),
            "OTEL_EXPORTER_OTLP_CERTIFICATE" => Some("/nowhere/ca.pem"),
            _ => None,
        };
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exporters");
        let trace = init(TraceConfig::from_lookup(lookup).unwrap().output_dir(dir)).unwrap();
        step(0);
        assert_eq!((flush(LONG).unwrap().sinks.len(), written(&trace).len()), (1, 1));
        let warnings = stagetrace::status().warnings;
        let text = warnings[0].to_string();
        assert!(text.starts_with("OTEL_EXPORTER_OTLP_CERTIFICATE: /nowhere/ca.pem: cannot be read"), "{text}");
        assert!(text.ends_with("nothing is sent, the local files are written"), "{text}");
    }
}
