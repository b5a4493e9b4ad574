//! The registry of `cargo xtask run`: Debian's docker-registry, which takes the tokens of the cloud, and what
//! is pushed to it.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::LOOK_AGAIN;
use super::traces::apart_from_the_terminal;
use crate::packages;

const PROGRAM: &str = "docker-registry";
/// How long the start may take.
const START: Duration = Duration::from_secs(20);
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

/// Has it installed, where that is for us to do.
pub(super) fn install() -> Result<()> {
    match packages::program(PROGRAM) {
        Some(_) => Ok(()),
        None => packages::install_if_debian_root(&[PROGRAM], "the registry of the cloud"),
    }
}

/// Starts it at `address`, with its files in `folder`, so that it sends its clients to `realm` for tokens
/// and trusts `certificate`. None where it is not installed.
pub(super) async fn start(
    address: SocketAddr,
    folder: &Path,
    realm: &str,
    certificate: &str,
) -> Result<Option<Child>> {
    let Some(program) = packages::program(PROGRAM) else {
        return Ok(None);
    };
    let data = folder.join("registry");
    let trusted = folder.join("registry.pem");
    fs::write(&trusted, certificate)?;
    let configuration = json!({
        "version": "0.1",
        "log": { "level": "error", "accesslog": { "disabled": true } },
        "storage": { "filesystem": { "rootdirectory": data } },
        "http": { "addr": address.to_string() },
        "auth": { "token": {
            "realm": realm, "service": address.to_string(), "issuer": "fleet-cloud", "rootcertbundle": trusted,
        } },
    });
    // What is JSON is YAML as well.
    let file = folder.join("registry.yml");
    fs::write(&file, configuration.to_string())?;
    let mut command = Command::new(program);
    command
        .arg("serve")
        .arg(&file)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut process = apart_from_the_terminal(&mut command)
        .spawn()
        .context("failed to start docker-registry")?;
    let deadline = Instant::now() + START;
    let client = Client::new();
    while client
        .get(format!("http://{address}/v2/"))
        .send()
        .await
        .is_err()
    {
        if let Some(status) = process.try_wait()? {
            bail!(
                "docker-registry ended ({status}); `docker-registry serve {}` shows why",
                file.display()
            );
        }
        if Instant::now() > deadline {
            process.kill()?;
            process.wait()?;
            bail!("docker-registry did not answer on {address} within {START:?}");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(Some(process))
}

/// Pushes a component as an image of one layer; the digest of its manifest.
pub(super) async fn push(location: &str, token: &str, component: &Path) -> Result<String> {
    let (host, repository) = location
        .split_once('/')
        .with_context(|| format!("`{location}` is at no registry"))?;
    let to = Repository {
        client: Client::new(),
        address: format!("http://{host}/v2/{repository}"),
        token,
    };
    let layer =
        fs::read(component).with_context(|| format!("failed to read `{}`", component.display()))?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": to.blob("application/vnd.wasm.config.v0+json", b"{}".to_vec()).await?,
        "layers": [to.blob("application/wasm", layer).await?],
    });
    let manifest = manifest.to_string().into_bytes();
    let digest = digest(&manifest);
    let address = format!("{}/manifests/{digest}", to.address);
    to.send(Method::PUT, &address, MANIFEST, manifest).await?;
    Ok(digest)
}

struct Repository<'a> {
    client: Client,
    address: String,
    token: &'a str,
}

impl Repository<'_> {
    /// Pushes a blob; how a manifest names it.
    async fn blob(&self, kind: &str, bytes: Vec<u8>) -> Result<Value> {
        let (digest, size) = (digest(&bytes), bytes.len());
        let begin = format!("{}/blobs/uploads/", self.address);
        let any = "application/octet-stream";
        let begun = self.send(Method::POST, &begin, any, Vec::new()).await?;
        let place = begun
            .headers()
            .get(LOCATION)
            .and_then(|place| place.to_str().ok());
        let place = place.context("the registry does not say where to upload")?;
        let separator = if place.contains('?') { '&' } else { '?' };
        let put = format!("{place}{separator}digest={digest}");
        self.send(Method::PUT, &put, any, bytes).await?;
        Ok(json!({ "mediaType": kind, "digest": digest, "size": size }))
    }

    async fn send(
        &self,
        method: Method,
        address: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> Result<Response> {
        let request = self.client.request(method, address).bearer_auth(self.token);
        let answer = request.header(CONTENT_TYPE, kind).body(body).send().await?;
        match answer.status() {
            status if status.is_success() => Ok(answer),
            status => bail!("the registry answered {status}: {}", answer.text().await?),
        }
    }
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", hex::encode(Sha256::digest(bytes)))
}
