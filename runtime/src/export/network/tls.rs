//! Encryption: whom to trust, and who we are.

use crate::config::{Given, Mistake, OtlpError, Protocol, Target};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How connections to a target are encrypted. Certificates are always verified: against those in the configured file,
/// else against the system's.
pub(super) fn config(target: &Target) -> Result<Arc<ClientConfig>, Mistake> {
    let roots = match &target.files.certificate {
        // There is no use for them.
        _ if !target.endpoint.is_https() => RootCertStore::empty(),
        Some(file) => of_file(file)?,
        None => of_system()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| roots_unusable(error.to_string()))?
        .with_root_certificates(roots);
    let mut config = match &target.files.identity {
        Some((certificate, key)) if target.endpoint.is_https() => {
            let chain = certificates(certificate)?;
            let secret = PrivateKeyDer::from_pem_file(&key.value)
                .map_err(|error| unreadable(key, &error))?;
            let built = builder.with_client_auth_cert(chain, secret);
            built.map_err(|error| {
                unusable(certificate, format!("no certificate with this key: {error}"))
            })?
        }
        _ => builder.with_no_client_auth(),
    };
    let protocol: &[u8] = if target.protocol == Protocol::Grpc { b"h2" } else { b"http/1.1" };
    config.alpn_protocols = vec![protocol.to_vec()];
    Ok(Arc::new(config))
}

fn of_file(file: &Given<PathBuf>) -> Result<RootCertStore, Mistake> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(|error| unusable(file, error.to_string()))?;
    }
    Ok(roots)
}

/// What the system trusts. Some of what it has may be broken; none at all is a problem.
fn of_system() -> Result<RootCertStore, Mistake> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let problems: Vec<String> = found.errors.iter().map(ToString::to_string).collect();
        return Err(roots_unusable(problems.join("; ")));
    }
    Ok(roots)
}

/// The certificates in a file, at least one.
fn certificates(file: &Given<PathBuf>) -> Result<Vec<CertificateDer<'static>>, Mistake> {
    let read = |path: &Path| CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    match read(&file.value) {
        Ok(none) if none.is_empty() => Err(unusable(file, "holds no certificate".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(unreadable(file, &error)),
    }
}

/// What is said of a file shows nothing of what it holds.
fn unreadable(file: &Given<PathBuf>, error: &pem::Error) -> Mistake {
    let problem = match error {
        pem::Error::Io(error) => format!("cannot be read: {error}"),
        pem::Error::NoItemsFound => "holds no key".to_owned(),
        _ => "is not in PEM".to_owned(),
    };
    unusable(file, problem)
}

fn unusable(file: &Given<PathBuf>, problem: String) -> Mistake {
    Mistake {
        variable: file.variable,
        error: OtlpError::File { path: file.value.clone(), problem },
    }
}

/// Not the program's mistake, wherever its endpoint comes from. The variable is the one that helps.
fn roots_unusable(problem: String) -> Mistake {
    Mistake { variable: Some("SSL_CERT_FILE"), error: OtlpError::Roots(problem) }
}
