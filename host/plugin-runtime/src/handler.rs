//! The export that answers requests (`wit/handler.wit`). It is called as generated code would call it, except that an
//! answer that is too large to be copied can be distinguished from too large arguments of a call to the host: wasmtime
//! reports both with the same error, but the limit for answers is the plugin's.

use wasmtime::Store;
use wasmtime::component::__internal::{CanonicalAbiInfo, InstanceType, InterfaceType, LiftContext};
use wasmtime::component::{
    Accessor, ComponentExportIndex, ComponentType, Instance, InstancePre, Lift, TypedFunc,
};

use crate::bindings::platform::supervisor::types::{Error, Request, Response};
use crate::guest::Guest;

/// The interface, and its function.
const INTERFACE: &str = "platform:supervisor/handler@1.4.0";
const FUNCTION: &str = "handle";

/// The position of the function in a component.
pub(crate) struct HandlerIndex(ComponentExportIndex);

/// The function of one instance.
pub(crate) struct Handler(TypedFunc<(Request,), (Result<LiftedAnswer, Error>,)>);

impl HandlerIndex {
    pub(crate) fn new(component: &InstancePre<Guest>) -> wasmtime::Result<HandlerIndex> {
        let missing = || wasmtime::Error::msg("it does not export `handler`");
        let component = component.component();
        let interface = component.get_export_index(None, INTERFACE);
        let interface = interface.ok_or_else(missing)?;
        let function = component.get_export_index(Some(&interface), FUNCTION);
        function.map(HandlerIndex).ok_or_else(missing)
    }

    pub(crate) fn load(
        &self,
        store: &mut Store<Guest>,
        instance: &Instance,
    ) -> wasmtime::Result<Handler> {
        instance.get_typed_func(store, self.0).map(Handler)
    }
}

impl Handler {
    pub(crate) async fn call_handle(
        &self,
        inside: &Accessor<Guest>,
        request: Request,
    ) -> wasmtime::Result<Result<Response, Error>> {
        let (answer,) = self.0.call_concurrent(inside, (request,)).await?;
        Ok(answer.map(|LiftedAnswer(response)| response))
    }
}

/// The context of an error that occurred while an answer was copied from the component's memory.
#[derive(Debug, thiserror::Error)]
#[error("failed to read its answer")]
pub(crate) struct UnreadableAnswer;

/// An answer. If it cannot be copied from the component's memory, the error has [`UnreadableAnswer`] as a context.
struct LiftedAnswer(Response);

fn unreadable(error: wasmtime::Error) -> wasmtime::Error {
    error.context(UnreadableAnswer)
}

// SAFETY: every item is the one of `Response`, as in wasmtime's own implementation for `Box<T>`.
#[expect(unsafe_code, reason = "wasmtime reports no context of its own")]
unsafe impl ComponentType for LiftedAnswer {
    type Lower = <Response as ComponentType>::Lower;

    const ABI: CanonicalAbiInfo = Response::ABI;
    const MAY_REQUIRE_REALLOC: bool = Response::MAY_REQUIRE_REALLOC;

    fn typecheck(ty: &InterfaceType, types: &InstanceType<'_>) -> wasmtime::Result<()> {
        Response::typecheck(ty, types)
    }
}

// SAFETY: as above; only the error of a failure is another.
#[expect(unsafe_code, reason = "wasmtime reports no context of its own")]
unsafe impl Lift for LiftedAnswer {
    fn linear_lift_from_flat(
        context: &mut LiftContext<'_>,
        ty: InterfaceType,
        source: &Self::Lower,
    ) -> wasmtime::Result<Self> {
        let response = Response::linear_lift_from_flat(context, ty, source);
        response.map(LiftedAnswer).map_err(unreadable)
    }

    fn linear_lift_from_memory(
        context: &mut LiftContext<'_>,
        ty: InterfaceType,
        bytes: &[u8],
    ) -> wasmtime::Result<Self> {
        let response = Response::linear_lift_from_memory(context, ty, bytes);
        response.map(LiftedAnswer).map_err(unreadable)
    }
}
