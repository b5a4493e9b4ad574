//! `POST /v1/regenerate-api-key`: replaces the key that makes the call (docs/spec/device.md#keys-regenerate).

use std::error::Error;

use http::{Method, StatusCode};
use model::ApiKey;
use store::KeyOwner;

use crate::answer::{self, Failure};
use crate::app::Api;
use crate::call::Call;
use crate::operation::{Answer, Operation};
use crate::routes::{Handler, Outcome, Route};

pub(crate) const ROUTES: &[Route] = &[Route {
    method: Method::POST,
    path: "/v1/regenerate-api-key",
    summary: "replaces the key of the request and returns the new one",
    operation: Operation::answering(&[Answer::text(StatusCode::OK, "the new key")]),
    handler: Handler::Later(|api, call| Box::pin(regenerate(api, call))),
}];

async fn regenerate(api: Api, call: Call) -> Outcome {
    let Some(owner) = call.caller.key else {
        return Err(Failure::Refused(
            StatusCode::SERVICE_UNAVAILABLE,
            "there is no key to replace: the request has none".into(),
        ));
    };
    let failed = |cause| Failure::Internal {
        doing: "replace the key",
        cause,
    };
    // A task of its own: a caller that goes away must not leave the service with a key that is worth nothing.
    let key = tokio::spawn(replace(api, owner))
        .await
        .map_err(|cause| failed(cause.into()))?
        .map_err(failed)?;
    Ok(answer::text(StatusCode::OK, key.reveal().to_owned()))
}

async fn replace(api: Api, owner: KeyOwner) -> Result<ApiKey, Box<dyn Error + Send + Sync>> {
    let (keys, of) = (api.keys.clone(), owner.clone());
    let key = tokio::task::spawn_blocking(move || keys.regenerate_key(&of)).await??;
    api.device.key_replaced(owner).await;
    Ok(key)
}
