//! The action `proxy-redirector` (`wit/proxy-redirector.wit`), which plugins call in each other.

use plugin_protocol::text::cut;
use plugin_protocol::{ActionAnswer, ActionCall, Origin, ProxyAnswer, ProxyCall, ProxyError};

use crate::actions::{ActionError, Actions};

/// Calls the provider, and returns its answer with texts that are cut to what a person can read.
pub(crate) async fn call(
    actions: &Actions,
    origin: Origin,
    call: ProxyCall,
) -> Result<ProxyAnswer, ProxyError> {
    match actions.call(origin, ActionCall::Proxy(call)).await {
        Ok(ActionAnswer::Proxy(answer)) => answer.map_err(bounded),
        Ok(_) => Err(ProxyError::Other("it answered another call".to_owned())),
        Err(none @ ActionError::NoProvider(_)) => Err(ProxyError::Unavailable(none.to_string())),
        Err(failed) => Err(ProxyError::Other(failed.to_string())),
    }
}

/// A provider's text is passed on to its caller, and from there to clients.
fn bounded(error: ProxyError) -> ProxyError {
    match error {
        ProxyError::Unavailable(why) => ProxyError::Unavailable(cut(why)),
        ProxyError::Invalid(why) => ProxyError::Invalid(cut(why)),
        ProxyError::Other(why) => ProxyError::Other(cut(why)),
    }
}

#[cfg(test)]
mod tests {
    use plugin_protocol::text::LONGEST;

    use super::*;

    #[test]
    fn a_providers_error_is_no_longer_than_any_other() {
        let long = || "\u{1}".repeat(33 << 20);
        for error in [
            ProxyError::Unavailable(long()),
            ProxyError::Invalid(long()),
            ProxyError::Other(long()),
        ] {
            let (ProxyError::Unavailable(why) | ProxyError::Invalid(why) | ProxyError::Other(why)) =
                bounded(error);
            assert_eq!(why.len(), LONGEST);
        }
    }
}
