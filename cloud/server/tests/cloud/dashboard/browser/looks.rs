//! The appearance of a page: on a phone, in dark mode, and whether it is readable.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::Visitor;

/// The variable that names a folder for pictures.
const PICTURES: &str = "SUPERVISOR_TEST_PICTURES";
/// The width of a narrow phone.
const PHONE: u32 = 360;

/// Finds texts with too little contrast to their background: WCAG 2.2, 1.4.3 (level AA).
const UNREADABLE: &str = r"(() => {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    const context = canvas.getContext('2d', { willReadFrequently: true });
    const rgba = color => {
        context.clearRect(0, 0, 1, 1);
        context.fillStyle = color;
        context.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = context.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3])).concat(1);
    const behind = element => {
        const layers = [];
        for (let it = element; it; it = it.parentElement) layers.push(rgba(getComputedStyle(it).backgroundColor));
        const dark = matchMedia('(prefers-color-scheme: dark)').matches
            && getComputedStyle(document.documentElement).colorScheme.includes('dark');
        return layers.reverse().reduce((under, top) => over(top, under), dark ? [18, 18, 18, 1] : [255, 255, 255, 1]);
    };
    const luminance = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map(it => (it /= 255) <= 0.04045 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const bad = [];
    for (const it of document.querySelectorAll('body *')) {
        const own = [...it.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
        const field = it.matches('input:not([type=hidden]):not([type=checkbox]):not([type=radio]), select, textarea');
        if (!own && !field || !it.checkVisibility({ opacityProperty: true }) || it.closest(':disabled')) continue;
        const box = it.getBoundingClientRect();
        if (box.width <= 1 || box.height <= 1) continue;
        const style = getComputedStyle(it);
        const back = behind(it);
        const front = over(rgba(style.color), back);
        const [high, low] = [luminance(front), luminance(back)].sort((a, b) => b - a);
        const ratio = (high + 0.05) / (low + 0.05);
        const size = parseFloat(style.fontSize);
        const large = size >= 24 || size >= 18.66 && Number(style.fontWeight) >= 700;
        if (ratio < (large ? 3 : 4.5)) {
            bad.push(`${ratio.toFixed(2)}: ${it.tagName}.${it.className} ${it.innerText.slice(0, 40)}: `
                + `${style.color} on ${back.map(Math.round)}`);
        }
    }
    return bad;
})()";

/// Finds elements that are wider than the page, and so make it scroll sideways.
const TOO_WIDE: &str = "(() => {
    const root = document.scrollingElement;
    const wide = Math.max(root.scrollWidth, innerWidth);
    if (wide <= WIDTH) return [];
    return [`the page is ${wide} wide`].concat([...document.querySelectorAll('body *')]
        .filter(it => it.getBoundingClientRect().right > WIDTH + 1)
        .slice(0, 12)
        .map(it => `${it.tagName}.${it.className} ${Math.round(it.getBoundingClientRect().right)}`));
})()";

impl Visitor {
    /// From now on, shows the page on a phone.
    pub(crate) async fn on_phone(&self) {
        let screen =
            json!({ "width": PHONE, "height": 740, "deviceScaleFactor": 2, "mobile": true });
        self.command("Emulation.setDeviceMetricsOverride", screen)
            .await;
    }

    /// From now on, shows the page on a desktop again.
    pub(crate) async fn on_desk(&self) {
        self.command("Emulation.clearDeviceMetricsOverride", json!({}))
            .await;
    }

    /// From now on, prefers dark or light mode.
    pub(crate) async fn prefers_dark(&self, dark: bool) {
        let value = if dark { "dark" } else { "light" };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": value }] });
        self.command("Emulation.setEmulatedMedia", features).await;
    }

    /// Checks that nothing has to be scrolled sideways on a phone.
    pub(crate) async fn fits_a_phone(&self) {
        let script = TOO_WIDE.replace("WIDTH", &PHONE.to_string());
        let wide = self.script(&script).await;
        let path = self.path().await;
        assert_eq!(wide, json!([]), "{path} is wider than a phone");
    }

    /// Checks that every text has enough contrast to its background.
    pub(crate) async fn is_readable(&self) {
        let bad = self.script(UNREADABLE).await;
        let path = self.path().await;
        assert_eq!(bad, json!([]), "too little contrast at {path}");
    }

    /// Takes a picture of a window of this size, as a PNG.
    pub(crate) async fn picture_of_window(&self, width: u32, height: u32) -> Vec<u8> {
        let screen =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.command("Emulation.setDeviceMetricsOverride", screen)
            .await;
        let format = json!({ "format": "png" });
        let picture = self.command("Page.captureScreenshot", format).await;
        let data = picture["data"].as_str().expect("a picture");
        STANDARD.decode(data).expect("a picture")
    }

    /// Takes a picture of the whole page, if `SUPERVISOR_TEST_PICTURES` names a folder for it.
    pub(crate) async fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os(PICTURES) else {
            return;
        };
        let parameters = json!({ "format": "png", "captureBeyondViewport": true });
        let picture = self.command("Page.captureScreenshot", parameters).await;
        let data = picture["data"].as_str().expect("a picture");
        let file = Path::new(&folder).join(format!("{name}.png"));
        std::fs::create_dir_all(&folder).expect("a folder for pictures");
        std::fs::write(file, STANDARD.decode(data).expect("a picture")).expect("a picture");
    }

    /// Checks that the page is readable and fits, in light and dark mode and on a phone, and takes
    /// a picture of each.
    pub(crate) async fn looks_well(&self, name: &str) {
        for dark in [false, true] {
            let scheme = if dark { "dark" } else { "light" };
            self.prefers_dark(dark).await;
            self.is_readable().await;
            self.picture(&format!("{name}-{scheme}")).await;
        }
        self.on_phone().await;
        self.fits_a_phone().await;
        self.picture(&format!("{name}-phone")).await;
        self.on_desk().await;
        self.prefers_dark(false).await;
    }
}
