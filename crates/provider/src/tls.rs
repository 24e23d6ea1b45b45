//! Whom a provider's host is taken for: certificates, and what is wrong with them.
//!
//! Trusted are the roots that browsers trust, as they are built in, and the certificates that the endpoint names.
//! The machine's own store is not read: the guest opens no file.

use std::io;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, ClientConnection, RootCertStore};

use crate::tunnel::Tunnel;
use crate::{BaseUrl, Endpoint, ProviderError};

/// A tunnel in which TLS is spoken.
pub(crate) type Sealed = rustls::StreamOwned<ClientConnection, Tunnel>;

/// What all connections to an endpoint share.
pub(crate) fn config(endpoint: &Endpoint) -> Result<Arc<ClientConfig>, ProviderError> {
    let wrong = |why: String| ProviderError::Untrusted(why);
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    if let Some(pem) = &endpoint.certificates {
        let mut count = 0;
        for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
            let added = certificate
                .map_err(|error| error.to_string())
                .and_then(|der| roots.add(der).map_err(|error| error.to_string()));
            added.map_err(|error| {
                wrong(format!("the configured certificates cannot be read: {error}"))
            })?;
            count += 1;
        }
        if count == 0 {
            return Err(wrong("the configured certificates are none (PEM is wanted)".to_owned()));
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(error.to_string()))?;
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Greets the host and makes sure that it is the one.
pub(crate) fn greet(
    config: &Arc<ClientConfig>,
    url: &BaseUrl,
    mut tunnel: Tunnel,
) -> Result<Sealed, ProviderError> {
    let host = url.host().trim_start_matches('[').trim_end_matches(']');
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| ProviderError::Untrusted(format!("`{host}` is no name of a server")))?;
    let mut connection =
        ClientConnection::new(Arc::clone(config), name).map_err(|error| distrust(&error, url))?;
    while connection.is_handshaking() {
        match connection.complete_io(&mut tunnel) {
            Ok(_) => {}
            Err(error) => return Err(broken(&error, url)),
        }
    }
    Ok(Sealed::new(connection, tunnel))
}

/// What an error of a sealed connection means, if TLS is what failed.
pub(crate) fn tls_error(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref().and_then(|inner| inner.downcast_ref())
}

fn broken(error: &io::Error, url: &BaseUrl) -> ProviderError {
    match (tls_error(error), error.kind()) {
        (Some(error), _) => distrust(error, url),
        (None, io::ErrorKind::TimedOut) => {
            ProviderError::Network(format!("`{}` did not greet back in time", url.authority()))
        }
        (None, _) => ProviderError::Network(format!(
            "`{}` broke the connection off while it was greeted: {error}",
            url.authority()
        )),
    }
}

/// What is wrong with a host that did not prove who it is.
pub(crate) fn distrust(error: &rustls::Error, url: &BaseUrl) -> ProviderError {
    let host = url.host();
    let untrusted = |why: String| ProviderError::Untrusted(why);
    match error {
        rustls::Error::InvalidCertificate(problem) => untrusted(certificate(problem, host)),
        rustls::Error::InvalidMessage(_) => ProviderError::Malformed(format!(
            "what answers at `{}` does not speak TLS; is it `http://`?",
            url.authority()
        )),
        rustls::Error::AlertReceived(AlertDescription::AccessDenied) => {
            ProviderError::Blocked(format!("`{host}` was greeted by another name"))
        }
        rustls::Error::AlertReceived(alert) => {
            untrusted(format!("`{host}` refuses to speak TLS with us: {alert:?}"))
        }
        other => untrusted(format!("`{host}` does not speak TLS as it should: {other}")),
    }
}

fn certificate(problem: &CertificateError, host: &str) -> String {
    match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the certificate of `{host}` has expired")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            format!("the certificate of `{host}` is not valid yet; is this machine's clock right?")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the certificate that `{host}` shows is for another name")
        }
        // A signature that does not fit is that of another authority of the same name.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            format!("nobody who is trusted has signed the certificate of `{host}`")
        }
        CertificateError::Revoked => format!("the certificate of `{host}` was revoked"),
        other => format!("the certificate of `{host}` is no good: {other}"),
    }
}
