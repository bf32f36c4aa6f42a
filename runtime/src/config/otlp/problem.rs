//! Why spans cannot be sent as configured.

use std::path::PathBuf;

/// Why spans cannot be sent over the network as configured. No endpoint, proxy, header or key is repeated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The endpoint is no URL that can be used.
    #[error("the endpoint {0}")]
    Endpoint(&'static str),

    /// A header that HTTP does not allow, or that the protocol sets itself.
    #[error("a header {0}")]
    Header(&'static str),

    /// The proxy on the way to the endpoint cannot be used.
    #[error("the proxy {0}")]
    Proxy(&'static str),

    /// What is asked for is not in this build.
    #[error(
        "{what} needs the feature `{feature}` of the crate `stagetrace`, which is not in this build"
    )]
    Feature {
        /// What was asked for.
        what: &'static str,
        /// The feature to add.
        feature: &'static str,
    },

    /// A file of certificates or keys cannot be used.
    #[error("{}: {problem}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },

    /// There is nobody to trust.
    #[error("the system has no root certificates: {0}")]
    Roots(String),

    /// A client certificate without its key, or the reverse.
    #[error("a client certificate and its key go together, and one of them is missing")]
    HalfIdentity,
}
