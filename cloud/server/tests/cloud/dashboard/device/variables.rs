//! A device's variables and settings.

use serde_json::json;

use super::page;
use crate::dashboard::{ann, with_browser};
use crate::reach::until;
use crate::shop::Shop;

#[tokio::test]
async fn variables_are_added_changed_removed_and_override_those_of_the_fleet() {
    with_browser(async |cloud, chromium| {
        let shop = Shop::open(&cloud).await;
        let device = shop.device(7).await;
        let fleet = json!({ "application": shop.fleet, "name": "COLOUR", "value": "red" });
        shop.ann
            .create("application_environment_variable", fleet)
            .await;
        let service = json!({ "service": shop.services[0], "name": "SIZE", "value": "small" });
        shop.ann
            .create("service_environment_variable", service)
            .await;
        let environment = async |service: &str| {
            let (state, _) = device.state().await;
            let releases = &state["apps"][&shop.uuid]["releases"][&shop.release.commit];
            releases["services"][service]["environment"].clone()
        };
        let ann = ann(chromium, &cloud).await;
        ann.open(&page(&device)).await;
        ann.press("Variables").await;
        let variables = ann.within("Variables");
        variables.within("COLOUR").see("red All The fleet").await;
        variables.within("SIZE").see("small main The fleet").await;

        variables.fill("Name of the new variable", "NEW").await;
        variables.fill("Value", "one & <two>").await;
        variables.press("Add variable").await;
        variables.see("Added NEW.").await;
        variables.within("NEW").see("one & <two> All Here").await;
        assert_eq!(variables.value("Name of the new variable").await, "");
        assert_eq!(environment("main").await["NEW"], "one & <two>");
        variables.fill("Name of the new variable", "2BAD").await;
        variables.press("Add variable").await;
        variables.see("2BAD").await;
        assert!(environment("main").await.get("2BAD").is_none());
        // The refused input is still there to be corrected.
        assert_eq!(variables.value("Name of the new variable").await, "2BAD");

        let new = variables.within("NEW");
        new.press("Edit NEW").await;
        new.fill("Value of NEW", "other").await;
        new.press("Save NEW").await;
        new.see("other All Here").await;
        assert_eq!(environment("side").await["NEW"], "other");
        new.press("Edit NEW").await;
        new.press("Delete NEW").await;
        variables.not_see("other").await;
        assert!(environment("main").await.get("NEW").is_none());

        let colour = variables.within("COLOUR");
        colour.press("Override COLOUR").await;
        colour.fill("Value of COLOUR", "blue").await;
        colour.press("Save COLOUR").await;
        variables.see("Overridden here").await;
        assert_eq!(environment("main").await["COLOUR"], "blue");

        variables.fill("Name of the new variable", "ONLY").await;
        variables.fill("Value", "side").await;
        variables.choose("For", "side").await;
        variables.press("Add variable").await;
        variables.within("ONLY").see("side side Here").await;
        assert_eq!(environment("side").await["ONLY"], "side");
        assert!(environment("main").await.get("ONLY").is_none());

        // A secret is added, shown to nobody, and overwritten.
        variables.fill("Name of the new variable", "TOKEN").await;
        variables.fill("Value", "k3ep-this").await;
        variables.press("Secret: only devices can read it").await;
        variables.press("Add variable").await;
        let token = variables.within("TOKEN");
        token.see("Secret All Here").await;
        assert_eq!(environment("main").await["TOKEN"], "k3ep-this");
        token.press("Edit TOKEN").await;
        assert_eq!(token.value("New value of TOKEN").await, "");
        token.fill("New value of TOKEN", "k3ep-that").await;
        token.press("Save TOKEN").await;
        token.see("Saved.").await;
        token.see("Secret All Here").await;
        assert_eq!(environment("main").await["TOKEN"], "k3ep-that");
        ann.not_see("k3ep").await;
        // A readable variable becomes secret, and one that overrides a secret is secret.
        let only = variables.within("ONLY");
        only.press("Edit ONLY").await;
        only.press("Secret: only devices can read it").await;
        only.press("Save ONLY").await;
        only.see("Secret side Here").await;
        assert_eq!(environment("side").await["ONLY"], "side");
        let fleet = json!({ "application": shop.fleet, "name": "HIDDEN", "value": "k3ep", "is_secret": true });
        shop.ann
            .create("application_environment_variable", fleet)
            .await;
        let hidden = variables.within("HIDDEN");
        hidden.see("Secret All The fleet").await;
        hidden.press("Override HIDDEN").await;
        hidden.fill("New value of HIDDEN", "k3ep-own").await;
        hidden.press("Save HIDDEN").await;
        // The page shows another secret of the device itself already.
        until("the device's own secret", async || {
            (environment("main").await["HIDDEN"] == "k3ep-own").then_some(())
        })
        .await;
        let own = shop.ann.rows("/v7/device_environment_variable?$filter=name eq 'HIDDEN'");
        assert_eq!(own.await[0]["value"], serde_json::Value::Null);

        let settings = ann.within("Settings");
        settings
            .fill(
                "Name of the new setting",
                "PLATFORM_SUPERVISOR_POLL_INTERVAL",
            )
            .await;
        settings.fill("Value", "900000").await;
        settings.press("Add setting").await;
        settings
            .within("PLATFORM_SUPERVISOR_POLL_INTERVAL")
            .see("900000")
            .await;
        // Changes by other people are shown as well.
        let fleet = json!({ "application": shop.fleet, "name": "PLATFORM_X", "value": "theirs" });
        shop.ann.create("application_config_variable", fleet).await;
        settings.within("PLATFORM_X").see("theirs The fleet").await;
        ann.looks_well("device-variables").await;
        ann.leave().await;
    })
    .await;
}
