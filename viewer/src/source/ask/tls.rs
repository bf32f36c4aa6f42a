//! Which certificates are trusted: those of the system, or those that `SSL_CERT_FILE` names.

use std::sync::Arc;

use ureq::tls::{Certificate, RootCerts, TlsConfig};

pub(super) fn config() -> TlsConfig {
    let certificates = rustls_native_certs::load_native_certs().certs;
    let certificates =
        certificates.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(certificates)))
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .build()
}
