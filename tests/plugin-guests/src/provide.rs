//! The actions `proxy-redirector` and `os-update`, provided in ways in which no plugin should.

use crate::bindings::exports::platform::supervisor::os_update;
use crate::bindings::exports::platform::supervisor::proxy_redirector::Guest;
use crate::bindings::platform::supervisor::proxy_types::{ProxyError, ProxyState, Redirection};
use crate::bindings::platform::supervisor::{config, proxy_redirector, timer};

impl Guest for crate::Guest {
    /// Returns the configuration, so that a caller can identify the instance, and the caller that the instance was
    /// called for.
    async fn get() -> Result<ProxyState, ProxyError> {
        let text = format!("{} for {}", config::json(), crate::caller());
        Ok(ProxyState::Unusable(text))
    }

    /// Does what the address names.
    async fn set(redirection: Option<Redirection>) -> Result<(), ProxyError> {
        match redirection.as_ref().map(|it| it.proxy.address.as_str()) {
            Some("trap") => panic!("as the address said"),
            Some("wait") => {
                timer::sleep(u32::MAX).await;
                Ok(())
            }
            Some("spin") => loop {
                std::hint::spin_loop();
            },
            Some("refuse") => Err(ProxyError::Invalid("not there".to_owned())),
            _ => Ok(()),
        }
    }

    /// Calls the provider of the action, which may be this plugin.
    async fn no_proxy() -> Result<Vec<String>, ProxyError> {
        proxy_redirector::no_proxy().await
    }

    async fn set_no_proxy(_: Vec<String>) -> Result<(), ProxyError> {
        Ok(())
    }

    async fn apply() -> Result<(), ProxyError> {
        Ok(())
    }
}

impl os_update::Guest for crate::Guest {
    /// Returns the configuration, as a version.
    async fn status() -> Result<os_update::OsStatus, String> {
        Ok(os_update::OsStatus {
            running: config::json(),
            staged: None,
            committed: true,
            installing: None,
            failure: None,
        })
    }

    /// Never ends.
    async fn stage(_: String, _: String) -> Result<(), String> {
        timer::sleep(u32::MAX).await;
        Ok(())
    }

    async fn activate() -> Result<(), String> {
        Err(format!(
            "there is nothing to activate{}",
            "\u{1b}[2J!".repeat(1 << 14)
        ))
    }

    async fn commit() -> Result<(), String> {
        panic!("it does not commit")
    }

    async fn roll_back() -> Result<(), String> {
        Ok(())
    }
}
