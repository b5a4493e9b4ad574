//! Actions of a person on a page.

use serde_json::{Value, json};

use super::{Visitor, until};

/// Roles that can be pressed.
const PRESSED: &[&str] = &[
    "button",
    "link",
    "checkbox",
    "switch",
    "radio",
    "tab",
    "menuitem",
    "DisclosureTriangle",
];
/// Roles that accept text.
const FILLED: &[&str] = &["textbox", "searchbox", "spinbutton"];
/// Roles that offer a choice.
const CHOSEN: &[&str] = &["combobox", "listbox", "MenuListPopup"];
/// How often the tab key is pressed before giving up.
const TABS: usize = 300;

/// Finds the part of a page with a name: a region, dialog, form or group by its name, or the row or entry with a cell,
/// heading or link of just this text.
const PART: &str = r"((root, name) => {
    if (!root) return undefined;
    const shown = it => it.checkVisibility();
    const text = it => it.innerText.trim();
    const label = it => (it.getAttribute('aria-labelledby') || '').split(' ').filter(Boolean)
        .map(id => document.getElementById(id)?.innerText.trim()).join(' ') || it.getAttribute('aria-label')
        || it.querySelector(':scope > legend, :scope > caption, :scope > summary')?.innerText.trim();
    const parts = [...root.querySelectorAll(
        'section, dialog, form, fieldset, nav, article, aside, details, table, [role]')].filter(shown);
    const rows = [...root.querySelectorAll('tr, li, article')].filter(shown);
    return parts.find(it => label(it) === name) || rows.find(row =>
        [...row.querySelectorAll('th, td, h2, h3, h4, a, b, strong, code, span, label')]
            .some(it => text(it) === name));
})";

/// An element that was found and can be used.
pub(super) struct FoundElement {
    /// Chromium's id of the node.
    node: Value,
}

impl Visitor {
    /// Goes to an address of the site.
    pub(crate) async fn open(&self, path: &str) {
        let address = format!("{}{path}", self.site);
        let answer = self
            .command("Page.navigate", json!({ "url": address }))
            .await;
        let error = answer.get("errorText");
        assert!(error.is_none(), "{path}: {error:?}");
        self.loaded().await;
    }

    /// Opens the current address again.
    pub(crate) async fn reload(&self) {
        self.command("Page.reload", json!({})).await;
        self.loaded().await;
    }

    /// Presses the browser's back button.
    pub(crate) async fn back(&self) {
        self.script("history.back()").await;
    }

    async fn loaded(&self) {
        until("a page", async || {
            if self.script("document.readyState").await == "complete" {
                Ok(())
            } else {
                Err("it is loading".to_owned())
            }
        })
        .await;
    }

    /// Returns the address, without the site.
    pub(crate) async fn path(&self) -> String {
        let path = self.script("location.pathname + location.search").await;
        path.as_str().expect("an address").to_owned()
    }

    /// Waits until the address is this.
    pub(crate) async fn at(&self, path: &str) {
        until(path, async || {
            let found = self.path().await;
            if found == path { Ok(()) } else { Err(found) }
        })
        .await;
    }

    /// Restricts the view to a part of the page: a region, dialog, form or group by its name, or the row or entry with
    /// a cell, heading or link of just this text.
    pub(crate) fn within(&self, name: &str) -> Visitor {
        let root = self.root();
        Visitor {
            within: Some(format!("{PART}({root}, {})", json!(name))),
            ..self.clone()
        }
    }

    fn root(&self) -> String {
        self.within.clone().unwrap_or("document".to_owned())
    }

    /// Returns the visible text.
    pub(crate) async fn text(&self) -> String {
        let root = self.root();
        let script = format!(
            "(it => ((it && it.nodeType === 9 ? it.body : it)?.innerText || '').replace(/\\s+/g, ' '))({root})"
        );
        let text = self.script(&script).await;
        text.as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the text is visible.
    pub(crate) async fn see(&self, text: &str) {
        until(&format!("`{text}`"), async || {
            let found = self.text().await;
            if found.contains(text) {
                Ok(())
            } else {
                Err(format!("`{text}` is not in: {found}"))
            }
        })
        .await;
    }

    /// Waits until the page has this heading.
    pub(crate) async fn heading(&self, text: &str) {
        until(&format!("the heading `{text}`"), async || {
            let script = "document.querySelector('h1')?.innerText.trim()";
            match self.script(script).await {
                found if found == text => Ok(()),
                found => Err(found.to_string()),
            }
        })
        .await;
    }

    /// Waits until the text is not visible, on a loaded page.
    pub(crate) async fn not_see(&self, text: &str) {
        until(&format!("no `{text}`"), async || {
            let found = self.text().await;
            if found.contains(text) {
                Err(format!("`{text}` is in: {found}"))
            } else {
                Ok(())
            }
        })
        .await;
    }

    /// Presses a button, link, switch or similar by its name, with the mouse.
    pub(crate) async fn press(&self, name: &str) {
        self.times_pressed(name, 1).await;
    }

    /// Presses it twice in a row, like an impatient person.
    pub(crate) async fn press_twice(&self, name: &str) {
        self.times_pressed(name, 2).await;
    }

    async fn times_pressed(&self, name: &str, times: usize) {
        until(&format!("to press `{name}`"), async || {
            let found = self.find(PRESSED, name).await?;
            let [x, y] = self.place(&found).await?;
            for count in 1..=times {
                for kind in ["mousePressed", "mouseReleased"] {
                    let event = json!({
                        "type": kind, "x": x, "y": y, "button": "left", "clickCount": count,
                    });
                    self.try_command("Input.dispatchMouseEvent", event).await?;
                }
            }
            Ok(())
        })
        .await;
    }

    /// Waits until a control with this name can be pressed.
    pub(crate) async fn can_press(&self, name: &str) {
        until(&format!("to press `{name}`"), async || {
            self.find(PRESSED, name).await.map(|_| ())
        })
        .await;
    }

    /// Checks that no control with this name can be pressed, on a loaded page.
    pub(crate) async fn cannot_press(&self, name: &str) {
        until(
            &format!("nothing to press as `{name}`"),
            async || match self.find(PRESSED, name).await {
                Ok(_) => Err("there is".to_owned()),
                Err(_) => Ok(()),
            },
        )
        .await;
    }

    /// Replaces the text of a field, by its label.
    pub(crate) async fn fill(&self, label: &str, text: &str) {
        until(&format!("to fill `{label}`"), async || {
            let found = self.find(FILLED, label).await?;
            self.place(&found).await?;
            self.try_command("DOM.focus", json!({ "backendNodeId": found.node }))
                .await?;
            self.script("document.activeElement.select?.()").await;
            if text.is_empty() {
                self.key("Delete").await
            } else {
                self.try_command("Input.insertText", json!({ "text": text }))
                    .await?;
            }
            Ok(())
        })
        .await;
    }

    /// Returns the text of a field.
    pub(crate) async fn value(&self, label: &str) -> String {
        let fields = [FILLED, CHOSEN].concat();
        let value = until(&format!("`{label}`"), async || {
            let found = self.find(&fields, label).await?;
            self.on(&found, "function() { return this.value }").await
        })
        .await;
        value.as_str().unwrap_or_default().to_owned()
    }

    /// Chooses an option by its text.
    pub(crate) async fn choose(&self, label: &str, option: &str) {
        let choose = format!(
            "function() {{
                const option = [...this.options].find(it => it.label.trim() === {});
                if (!option) return false;
                this.focus();
                this.value = option.value;
                this.dispatchEvent(new Event('input', {{ bubbles: true }}));
                this.dispatchEvent(new Event('change', {{ bubbles: true }}));
                return true;
            }}",
            json!(option)
        );
        until(&format!("to choose `{option}` of `{label}`"), async || {
            let found = self.find(CHOSEN, label).await?;
            if self.on(&found, &choose).await? == true {
                Ok(())
            } else {
                Err("it is none of those".to_owned())
            }
        })
        .await;
    }

    /// Waits until a switch, checkbox or button of this name is on, or off.
    pub(crate) async fn is_on(&self, name: &str, on: bool) {
        until(&format!("`{name}` on: {on}"), async || {
            let found = self.find(PRESSED, name).await?;
            let state = "function() { return this.checked ?? ['aria-checked', 'aria-pressed']
                .some(it => this.getAttribute(it) === 'true') }";
            if self.on(&found, state).await? == on {
                Ok(())
            } else {
                Err("it is not".to_owned())
            }
        })
        .await;
    }

    /// Presses a key: `Tab`, `Enter`, `Escape`, `Space`, `Delete`, an arrow, or a character.
    pub(crate) async fn key(&self, key: &str) {
        let (key, code, text) = match key {
            "Tab" => ("Tab", 9, ""),
            "Enter" => ("Enter", 13, "\r"),
            "Escape" => ("Escape", 27, ""),
            "Space" => (" ", 32, " "),
            "Delete" => ("Delete", 46, ""),
            "ArrowDown" => ("ArrowDown", 40, ""),
            "ArrowUp" => ("ArrowUp", 38, ""),
            other => (other, 0, other),
        };
        let event = |kind: &str| json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
        let mut down = event("keyDown");
        if !text.is_empty() {
            down["text"] = json!(text);
        }
        // A page ignores keys until it is loaded.
        self.loaded().await;
        self.command("Input.dispatchKeyEvent", down).await;
        self.command("Input.dispatchKeyEvent", event("keyUp")).await;
    }

    /// Types text at the cursor.
    pub(crate) async fn write(&self, text: &str) {
        self.command("Input.insertText", json!({ "text": text }))
            .await;
    }

    /// Returns the name of the focused control.
    pub(crate) async fn focused(&self) -> String {
        let parameters = json!({ "expression": "document.activeElement" });
        let element = self.command("Runtime.evaluate", parameters).await;
        let id = &element["result"]["objectId"];
        let parameters = json!({ "objectId": id, "fetchRelatives": false });
        let tree = self
            .try_command("Accessibility.getPartialAXTree", parameters)
            .await;
        let tree = tree.unwrap_or_default();
        // Newer browsers keep the space between a label's text and its control.
        tree["nodes"][0]["name"]["value"]
            .as_str()
            .unwrap_or_default()
            .trim()
            .to_owned()
    }

    /// Presses the tab key until a control with this name has the focus, which must be visible there.
    pub(crate) async fn tab_to(&self, name: &str) {
        let mut passed = Vec::new();
        for _ in 0..TABS {
            self.key("Tab").await;
            let focused = self.focused().await;
            if focused == name {
                let marked = "(it => { const style = getComputedStyle(it);
                    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0
                        || style.boxShadow !== 'none' })(document.activeElement)";
                assert_eq!(
                    self.script(marked).await,
                    true,
                    "no focus is seen at {name}"
                );
                return;
            }
            passed.push(focused);
        }
        panic!("the tab key does not reach `{name}`, but: {passed:?}");
    }

    /// Finds a visible, usable control with one of these roles and this name.
    async fn find(&self, roles: &[&str], name: &str) -> Result<FoundElement, String> {
        let parameters = json!({ "expression": self.root() });
        let root = self.try_command("Runtime.evaluate", parameters).await?;
        let Some(root) = root["result"]["objectId"].as_str() else {
            return Err("that part of the page is not there".to_owned());
        };
        let parameters = json!({ "objectId": root, "accessibleName": name });
        let found = self
            .try_command("Accessibility.queryAXTree", parameters)
            .await?;
        let nodes = found["nodes"].as_array().cloned().unwrap_or_default();
        let others: Vec<&str> = nodes
            .iter()
            .filter_map(|node| node["role"]["value"].as_str())
            .collect();
        let node = nodes.iter().find(|node| {
            let role = node["role"]["value"].as_str().unwrap_or_default();
            let disabled = node["properties"].as_array().is_some_and(|properties| {
                properties
                    .iter()
                    .any(|it| it["name"] == "disabled" && it["value"]["value"] == true)
            });
            node["ignored"] != true && roles.contains(&role) && !disabled
        });
        match node {
            Some(node) => Ok(FoundElement {
                node: node["backendDOMNodeId"].clone(),
            }),
            None => Err(format!("there is none, but of that name {others:?}")),
        }
    }

    /// Returns the middle of the control, once nothing covers it.
    async fn place(&self, found: &FoundElement) -> Result<[f64; 2], String> {
        let look = "function() {
            if (document.readyState !== 'complete') return 'the page is loading';
            this.scrollIntoView({ block: 'center', inline: 'nearest', behavior: 'instant' });
            const box = this.getBoundingClientRect();
            const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
            const top = document.elementFromPoint(x, y);
            const label = top && top.closest('label');
            const hit = top && (this.contains(top) || top.contains(this) && this.labels
                || label && label.control === this);
            return hit ? [x, y] : 'covered by ' + (top && top.outerHTML.slice(0, 200));
        }";
        let place = self.on(found, look).await?;
        match (place[0].as_f64(), place[1].as_f64()) {
            (Some(x), Some(y)) => Ok([x, y]),
            _ => Err(place.to_string()),
        }
    }

    /// Returns the result of a function on the element.
    async fn on(&self, found: &FoundElement, function: &str) -> Result<Value, String> {
        let parameters = json!({ "backendNodeId": found.node });
        let object = self.try_command("DOM.resolveNode", parameters).await?;
        let parameters = json!({
            "objectId": object["object"]["objectId"],
            "functionDeclaration": function,
            "returnByValue": true,
        });
        let answer = self
            .try_command("Runtime.callFunctionOn", parameters)
            .await?;
        match answer.get("exceptionDetails") {
            None => Ok(answer["result"]["value"].clone()),
            Some(why) => Err(why.to_string()),
        }
    }
}
