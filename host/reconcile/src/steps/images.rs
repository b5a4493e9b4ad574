//! Download and removal of images.

use engine::{EngineError, PullProgress};
use model::{EngineKind, ImageRef};
use plan::ImageUser;

use super::StepResult;
use crate::messages::{Message, StoredRecord};
use crate::step_context::StepContext;
use crate::view::Effect;

pub(super) async fn pull(
    context: &StepContext,
    image: &ImageRef,
    engine: Option<EngineKind>,
    users: Vec<ImageUser>,
) -> StepResult {
    let _permit = context.pulls.acquire().await;
    context.log(format!("Downloading image '{image}'"));
    let first = std::sync::Once::new();
    let progress = |at: PullProgress| {
        context.telemetry.progress.set(image, at.percent);
        first.call_once(|| context.moments.reached("in-pull"));
    };
    let account = context.engines.account_for(image);
    let pulling = async {
        let kind = match engine {
            Some(kind) => kind,
            None => {
                let kind = context.engines.kind_of(image, account).await?;
                // Reported before the image is present, so that its networks are created meanwhile.
                context.send(Message::Kind(image.clone(), kind));
                kind
            }
        };
        match context.engines.get(kind) {
            Some(engine) => engine.pull_image(image, account, &progress).await,
            None => Err(EngineError::Invalid(format!(
                "it runs on the {kind} engine, which this device does not have"
            ))),
        }
    };
    // Recorded while the transfer begins, and well before it ends: an image that a killed supervisor pulled without a
    // record would never be removed.
    let recording = context.record(StoredRecord::Image(image.clone(), users));
    let (recorded, pulled) = futures::join!(recording, pulling);
    recorded?;
    let mut pulled =
        pulled.map_err(|error| context.failed(&format!("download image '{image}'"), &error))?;
    first.call_once(|| context.moments.reached("in-pull"));
    context.log(format!("Downloaded image '{image}'"));
    // An engine may list it with another form of the reference; the requested one names it too.
    if !pulled.references.contains(image) {
        pulled.references.push(image.clone());
    }
    context.effect(Effect::Pulled(pulled));
    Ok(())
}

pub(super) async fn remove(
    context: &StepContext,
    image: &ImageRef,
    engine: Option<EngineKind>,
) -> StepResult {
    if let Some(kind) = engine {
        context.log(format!("Deleting image '{image}'"));
        match context.engine(kind)?.remove_image(image).await {
            Ok(()) => {
                context.effect(Effect::ImageRemoved(kind, image.clone()));
                context.log(format!("Deleted image '{image}'"));
            }
            // Somebody else's container uses it by now: we may no longer remove it.
            Err(EngineError::InUse { .. }) => {}
            Err(error) => return Err(context.failed(&format!("delete image '{image}'"), &error)),
        }
    }
    Ok(context.record(StoredRecord::NoImage(image.clone())).await?)
}
