//! `POST /v1/regenerate-api-key`: replaces the key that makes the call (docs/spec/device.md#keys-regenerate).

use std::error::Error;

use axum::extract::State;
use model::ApiKey;
use store::KeyOwner;

use crate::answer::Failure;
use crate::caller::Caller;
use crate::operation::Answer;
use crate::route::Route;
use crate::state::Api;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/v1/regenerate-api-key", regenerate)
            .summary("replaces the key of the request and returns the new one")
            .answering([Answer::text(200, "the new key")]),
    ]
}

async fn regenerate(State(api): State<Api>, caller: Caller) -> Result<String, Failure> {
    let Some(owner) = caller.key else {
        return Err(Failure::unavailable(
            "there is no key to replace: the request has none",
        ));
    };
    let failed = |cause| Failure::Internal {
        doing: "replace the key",
        cause,
    };
    // In a separate task: if the caller disconnects, the service must not be left with an invalid key.
    let key = tokio::spawn(replace(api, owner))
        .await
        .map_err(|cause| failed(cause.into()))?
        .map_err(failed)?;
    Ok(key.reveal().to_owned())
}

async fn replace(api: Api, owner: KeyOwner) -> Result<ApiKey, Box<dyn Error + Send + Sync>> {
    let (keys, of) = (api.keys.clone(), owner.clone());
    let key = tokio::task::spawn_blocking(move || keys.regenerate_key(&of)).await??;
    api.device.key_replaced(owner).await;
    Ok(key)
}
