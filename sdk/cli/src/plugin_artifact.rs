//! Plugins in registries of container images: an artifact with one layer, the component, and additionally the signature
//! if it is not in the component.
//!
//! Data from a registry is not trusted until it is checked: each part is bounded and compared with its digest, and the
//! component is parsed as a plugin before it is written to a disk. `verify` finds out whose signature it is.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use minisign::SignatureBox;
use plugin_manifest::Manifest;
use registry_client::{
    Access, Account, Blob, CONFIG_TYPE, Content, Image, LAYER_TYPE, Registries, RegistryError,
    Repository, WasmArtifact,
};
use registry_protocol::{ImageName, is_digest};
use serde_json::{Map, Value};

use crate::component::Component;
use crate::project::LARGEST_COMPONENT;

/// The artifact type of a detached signature.
const SIGNATURE_TYPE: &str = "application/vnd.minisign.signature.v1";
/// The maximum size of a signature with its comments, in bytes, which is what a device accepts.
const LARGEST_SIGNATURE: u64 = 4 << 10;
/// The time limit of a whole transfer. The largest component with its signature meets it at 0.3 Mbit/s.
const LONGEST_TRANSFER: Duration = Duration::from_secs(30 * 60);

/// A plugin that was pulled from a registry.
pub(crate) struct PulledPlugin {
    pub(crate) component: Component,
    /// The text of `FILE.minisig`, if the signature is not in the component.
    pub(crate) signature: Option<String>,
    /// The digest of the manifest; pulling by this digest always returns the same plugin.
    pub(crate) digest: String,
}

/// Uploads a component with its signature, and returns the digest of its manifest.
///
/// # Errors
/// The registry does not accept it, or not in time.
pub(crate) async fn push(
    component: &Component,
    signature: Option<&str>,
    reference: &ImageName,
) -> Result<String> {
    let pushed = push_parts(component, signature, reference);
    within(LONGEST_TRANSFER, reference, pushed).await
}

async fn push_parts(
    component: &Component,
    signature: Option<&str>,
    reference: &ImageName,
) -> Result<String> {
    let access = Access::push(Account::Stored(None), Vec::new());
    let repository = registries()?.repository(&reference.place, access);
    let annotations = annotations(&component.manifest);
    let artifact = WasmArtifact::new(component.wasm.clone(), annotations).map_err(in_words)?;
    let pushed = async {
        repository.put_bytes(artifact.layer.into()).await?;
        repository.put_bytes(artifact.config.into()).await?;
        let manifest = &artifact.manifest;
        repository.put_manifest(manifest, &manifest.digest).await?;
        // Before the tag, so that anybody who pulls by the tag finds the signature as well.
        if let Some(signature) = signature {
            let signature = signature.as_bytes().to_vec();
            repository
                .put_referrer(manifest, SIGNATURE_TYPE, signature)
                .await?;
        }
        repository
            .put_manifest(manifest, &reference.reference)
            .await
    };
    pushed.await.map_err(in_words)?;
    Ok(artifact.manifest.digest)
}

/// Fetches a component and its signature.
///
/// # Errors
/// It does not exist, is not a plugin, does not match its digests, or does not arrive in time.
pub(crate) async fn pull(reference: &ImageName) -> Result<PulledPlugin> {
    within(LONGEST_TRANSFER, reference, pull_parts(reference)).await
}

async fn pull_parts(reference: &ImageName) -> Result<PulledPlugin> {
    let access = Access::pull(Account::Stored(None));
    let repository = registries()?.repository(&reference.place, access);
    let manifest = repository.manifest(&reference.reference).await;
    let manifest = manifest.map_err(in_words)?;
    let Content::Image(image) = &manifest.content else {
        bail!("it is not a plugin, but a list of images for several platforms");
    };
    let layer = layer(image)?;
    let wasm = bytes(&repository, layer, LARGEST_COMPONENT, "the component").await?;
    let component = Component::in_memory(wasm)?;
    let signature = signature(&repository, &manifest.digest).await?;
    Ok(PulledPlugin {
        component,
        signature,
        digest: manifest.digest,
    })
}

/// Waits for a transfer. Its requests have limits for silence, which a registry that sends a byte a minute never reaches.
///
/// # Errors
/// The transfer failed, or takes longer than `limit`.
async fn within<T>(
    limit: Duration,
    reference: &ImageName,
    transfer: impl Future<Output = Result<T>>,
) -> Result<T> {
    let transferred = tokio::time::timeout(limit, transfer).await;
    transferred.unwrap_or_else(|_| {
        bail!(
            "the registry {} took longer than the {} s that a plugin may take: check the connection, and try again",
            reference.place.host,
            limit.as_secs()
        )
    })
}

/// Parses the name of a plugin in a registry, as people write it.
///
/// # Errors
/// It is not such a name.
pub(crate) fn reference(text: &str) -> Result<ImageName> {
    let name = text.parse::<ImageName>().ok();
    let name = name.filter(|name| {
        let is_host = !name.place.host.starts_with('.');
        is_host && (!name.reference.contains(':') || is_digest(&name.reference))
    });
    name.with_context(|| {
        format!(
            "`{text}` is not a name in a registry: write it as `registry.example.com/plugins/rails:0.1.0`"
        )
    })
}

/// Returns the name in a registry if an argument is one rather than a file: it has a tag or a digest, which is rare in
/// file names, and no such file exists.
pub(crate) fn name_in_registry(argument: &Path) -> Option<ImageName> {
    let text = argument.to_str()?;
    let (_, last) = text.rsplit_once('/')?;
    let is_name = last.contains([':', '@']) && !text.starts_with(['.', '/']);
    (is_name && !argument.exists())
        .then(|| reference(text).ok())
        .flatten()
}

/// Reads the detached signature of a file, if there is one.
///
/// # Errors
/// The file next to it is not a signature.
pub(crate) fn signature_beside(file: &Path) -> Result<Option<String>> {
    let path = file.with_added_extension("minisig");
    let unreadable = || format!("cannot read `{}`", path.display());
    let length = match std::fs::metadata(&path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).with_context(unreadable),
    };
    let not_one = || format!("`{}` is not a minisign signature", path.display());
    ensure!(length <= LARGEST_SIGNATURE, not_one());
    let text = std::fs::read_to_string(&path).with_context(unreadable)?;
    key_id(&text).with_context(not_one)?;
    Ok(Some(text))
}

/// Returns the id of the key that made a signature, as minisign prints it; `None` if the text is not a signature. A
/// signature names its key whether or not it is valid.
pub(crate) fn key_id(signature: &str) -> Option<String> {
    let signature = SignatureBox::from_string(signature).ok()?;
    let id: String = signature.keynum().iter().rev().map(hex_of).collect();
    Some(id)
}

fn hex_of(byte: &u8) -> String {
    format!("{byte:02X}")
}

/// Creates the clients of registries without sending anything.
fn registries() -> Result<Registries> {
    let user_agent = concat!("supervisor-plugin/", env!("CARGO_PKG_VERSION"));
    Registries::new(user_agent).map_err(in_words)
}

/// Returns the properties of a plugin that people and other tools can read without pulling it.
fn annotations(manifest: &Manifest) -> Map<String, Value> {
    let about = &manifest.about;
    let version = manifest.version.to_string();
    [
        ("title", Some(&manifest.name)),
        ("version", Some(&version)),
        ("description", about.description.as_ref()),
        ("vendor", about.vendor.as_ref()),
        ("licenses", about.licence.as_ref()),
        ("url", about.homepage.as_ref()),
    ]
    .into_iter()
    .filter_map(|(key, text)| {
        let key = format!("org.opencontainers.image.{key}");
        Some((key, Value::String(text?.clone())))
    })
    .collect()
}

/// Returns the component of an artifact.
///
/// # Errors
/// The image is something else.
fn layer(image: &Image) -> Result<&Blob> {
    let config = &image.config.media_type;
    ensure!(
        config == CONFIG_TYPE,
        "it is not a plugin, but an image whose configuration is of the type `{}`",
        config.escape_default()
    );
    match image.layers.as_slice() {
        [layer] if layer.media_type == LAYER_TYPE => Ok(layer),
        layers => bail!(
            "it is not a plugin: a plugin has one layer, of the type `{LAYER_TYPE}`, and this has {} layers",
            layers.len()
        ),
    }
}

/// Reads a blob into memory.
///
/// # Errors
/// It is longer than `most`, or does not match its digest.
async fn bytes(repository: &Repository<'_>, blob: &Blob, most: u64, what: &str) -> Result<Vec<u8>> {
    ensure!(
        blob.size <= most,
        "{what} has {} bytes, more than the {most} that a device takes",
        blob.size
    );
    let blob = repository.blob(blob).await.map_err(in_words)?;
    let bytes = blob.bytes().await;
    bytes.with_context(|| format!("{what} cannot be pulled"))
}

/// Returns the most recently pushed signature that belongs to the manifest of this digest.
async fn signature(repository: &Repository<'_>, digest: &str) -> Result<Option<String>> {
    let listed = repository.referrers(digest, SIGNATURE_TYPE).await;
    let listed = listed.map_err(in_words)?;
    let Some(last) = listed.last() else {
        return Ok(None);
    };
    let manifest = repository.manifest(&last.digest).await.map_err(in_words)?;
    let layer = match &manifest.content {
        Content::Image(image) if image.subject.as_ref().is_some_and(|it| it.digest == digest) => {
            image.layers.first()
        }
        _ => None,
    };
    let layer =
        layer.context("what the registry lists as its signature belongs to another file")?;
    let bytes = bytes(repository, layer, LARGEST_SIGNATURE, "the signature").await?;
    let text = String::from_utf8(bytes).ok();
    let text = text.filter(|text| key_id(text).is_some());
    let text =
        text.context("what the registry lists as its signature is not a minisign signature")?;
    Ok(Some(text))
}

/// Converts the error of a registry, and adds what to do.
fn in_words(mut error: RegistryError) -> anyhow::Error {
    match error.hint.take() {
        Some(hint) => anyhow!("{:#}; {hint}", anyhow::Error::new(error)),
        None => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::Router;
    use axum::body::Body;
    use axum::response::{IntoResponse as _, Response};
    use futures::stream;
    use http::Uri;
    use registry_client::sha256;
    use serde_json::json;
    use tokio::net::TcpListener;

    use super::*;

    /// Short, because the test waits for it.
    const LIMIT: Duration = Duration::from_secs(1);

    /// Serves a registry on this machine, and returns the name of a plugin in it.
    async fn plugin_in(registry: Router) -> ImageName {
        // The HTTP client requires it; this fails if another test has installed it.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, registry).await });
        reference(&format!("{host}/greeter:1")).unwrap()
    }

    /// Returns a manifest, and for everything else bytes that arrive one at a time and never end.
    fn trickle(address: &Uri) -> Response {
        if address.path().ends_with("/manifests/1") {
            let descriptor = |media_type: &str| json!({ "mediaType": media_type, "digest": sha256(b"{}"), "size": LARGEST_COMPONENT });
            let kind = "application/vnd.oci.image.manifest.v1+json";
            let manifest = json!({
                "schemaVersion": 2,
                "mediaType": kind,
                "config": descriptor(CONFIG_TYPE),
                "layers": [descriptor(LAYER_TYPE)],
            });
            return ([("content-type", kind)], manifest.to_string()).into_response();
        }
        let period = tokio::time::interval(Duration::from_millis(20));
        Body::from_stream(stream::unfold(period, |mut period| async move {
            period.tick().await;
            Some((Ok::<_, Infallible>("x"), period))
        }))
        .into_response()
    }

    #[tokio::test]
    async fn a_registry_that_sends_a_byte_now_and_then_does_not_hold_a_pull_for_ever() {
        let registry = Router::new().fallback(|address: Uri| async move { trickle(&address) });
        let name = plugin_in(registry).await;
        let pulled = within(LIMIT, &name, pull_parts(&name));
        let pulled = tokio::time::timeout(::tests::DEADLINE, pulled).await;
        let error = pulled.expect("the pull ends").err().unwrap().to_string();
        let host = &name.place.host;
        let expected =
            format!("the registry {host} took longer than the 1 s that a plugin may take");
        assert!(error.starts_with(&expected), "{error}");
    }

    #[tokio::test]
    async fn a_registry_that_never_answers_does_not_hold_a_push_for_ever() {
        let name = plugin_in(Router::new().fallback(std::future::pending::<Response>)).await;
        let component = Component::read(::tests::guest("greeter")).unwrap();
        let pushed = within(LIMIT, &name, push_parts(&component, None, &name));
        let pushed = tokio::time::timeout(::tests::DEADLINE, pushed).await;
        let error = pushed.expect("the push ends").err().unwrap().to_string();
        assert!(error.contains("took longer than the 1 s"), "{error}");
    }

    #[test]
    fn registry_names_are_distinguished_from_files() {
        for (argument, is_name) in [
            ("registry.example.com/plugins/rails:0.1.0", true),
            ("127.0.0.1:5000/rails:1", true),
            ("rails.wasm", false),
            ("plugins.d/rails.wasm", false),
            ("./a:b/rails.wasm", false),
            ("./rails:1", false),
            ("/srv/rails:1", false),
        ] {
            let name = name_in_registry(Path::new(argument));
            assert_eq!(name.is_some(), is_name, "{argument}");
        }
    }
}
