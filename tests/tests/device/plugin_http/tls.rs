//! Requests with TLS, which the device does: a server is who its certificate says, as an authority that the device
//! trusts confirms.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use axum::serve::Listener;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tests::Supervisor;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::device_of;

fn authority(name: &str) -> CertifiedIssuer<'static, KeyPair> {
    let mut parameters = CertificateParams::new(Vec::new()).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, name);
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap()
}

struct TlsListener {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    /// Waits for a client that accepts the certificate.
    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let (connection, address) = self.listener.accept().await.unwrap();
            if let Ok(stream) = self.acceptor.accept(connection).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// Starts a server on 127.0.0.1 whose certificate is for `name`, and returns its port.
async fn server(authority: &CertifiedIssuer<'static, KeyPair>, name: &str) -> u16 {
    let key = KeyPair::generate().unwrap();
    let parameters = CertificateParams::new([name.to_owned()]).unwrap();
    let certificate = parameters.signed_by(&key, authority).unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();
    let listener = TlsListener {
        listener: TcpListener::bind("127.0.0.1:0").await.unwrap(),
        acceptor: TlsAcceptor::from(Arc::new(config)),
    };
    let port = listener.local_addr().unwrap().port();
    let router = Router::new().route("/now/berlin", get(|| async { "{\"celsius\":21.5}" }));
    tokio::spawn(async move { axum::serve(listener, router).await });
    port
}

#[tokio::test]
async fn a_plugin_gets_an_answer_with_tls_only_from_a_server_whose_certificate_the_device_trusts() {
    let folder = tempfile::tempdir().unwrap();
    let (trusted, other) = (authority("trusted"), authority("other"));
    let roots = folder.path().join("roots.pem");
    std::fs::write(&roots, trusted.pem()).unwrap();
    for (authority, name, expected) in [
        (&trusted, "127.0.0.1", Ok("{\"celsius\":21.5}")),
        (
            &other,
            "127.0.0.1",
            Err("invalid peer certificate: UnknownIssuer"),
        ),
        (
            &trusted,
            "api.acme.example",
            Err("invalid peer certificate: certificate not valid for name"),
        ),
    ] {
        let port = server(authority, name).await;
        let builder = Supervisor::on_wasm().environment("SSL_CERT_FILE", roots.to_str().unwrap());
        let hosts = format!("\"127.0.0.1:{port}\"");
        let (device, _folder) =
            device_of(builder, &format!("https://127.0.0.1:{port}"), &hosts).await;
        let answer = device.get("/v3/weather/berlin").await;
        match expected {
            Ok(text) => assert_eq!((answer.status, answer.text.as_str()), (200, text)),
            Err(reason) => {
                assert_eq!(answer.status, 502, "{}", answer.text);
                assert!(answer.text.contains(reason), "{}", answer.text);
            }
        }
    }
}
