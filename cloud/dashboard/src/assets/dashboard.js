// What pages of the dashboard do by themselves. Every page works without it.
"use strict";
{
  const root = document.documentElement;

  // Light or dark: as the system has it, until somebody presses the switch.
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  const themeSwitch = document.querySelector("[data-theme-switch]");
  const nameSwitch = () => { themeSwitch.textContent = dark() ? "Light" : "Dark"; };
  nameSwitch();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", nameSwitch);
  themeSwitch.hidden = false;
  themeSwitch.addEventListener("click", () => {
    root.dataset.theme = dark() ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* for this page then */ }
    nameSwitch();
  });

  // Times as one says them; the exact ones stay in the title.
  const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
  const relativeTime = (seconds) => {
    const size = Math.abs(seconds);
    if (size < 45) return "just now";
    for (const [unit, length] of [["minute", 60], ["hour", 3600], ["day", 86400], ["month", 2592000]]) {
      const next = { minute: 3600, hour: 86400, day: 2592000, month: 31536000 }[unit];
      if (size < next) return relative.format(Math.round(seconds / length), unit);
    }
    return relative.format(Math.round(seconds / 31536000), "year");
  };
  const sayTimes = (within = document) => {
    for (const time of within.querySelectorAll("time[datetime]")) {
      const at = Date.parse(time.dateTime);
      const text = relativeTime((at - Date.now()) / 1000);
      if (!Number.isNaN(at) && time.textContent !== text) time.textContent = text;
    }
  };
  sayTimes();
  setInterval(sayTimes, 20000);

  // `/` goes to the search.
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    const search = document.querySelector("[data-search]");
    if (!search) return;
    event.preventDefault();
    search.focus();
    search.select();
  });

  // Buttons that copy: `data-copy` is what.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const before = button.textContent;
    try {
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not allowed here";
    }
    setTimeout(() => { button.textContent = before; }, 2000);
  });

  // One box ticks all those of its form (`data-all="device"`).
  document.addEventListener("change", (event) => {
    const all = event.target.closest("[data-all]");
    if (!all) return;
    for (const box of all.form.querySelectorAll(`input[type=checkbox][name="${all.dataset.all}"]`)) {
      box.checked = all.checked;
    }
  });

  // A form that was taken is empty again (`data-reset`), and a dialog that asked is closed.
  document.addEventListener("htmx:afterRequest", (event) => {
    const form = event.target.closest?.("form[data-reset]");
    if (form && event.detail.successful) form.reset();
  });
  document.addEventListener("htmx:afterSwap", (event) => sayTimes(event.target));
  // No answer at all: the place for answers says so.
  document.addEventListener("htmx:sendError", (event) => {
    const answer = event.detail.target;
    if (!answer) return;
    const message = document.createElement("p");
    message.className = "notice bad";
    message.textContent = "The cloud did not answer. Try again.";
    answer.replaceChildren(message);
  });

  // Parts of the page that follow what happens. While nobody looks at the page it holds no connection: a browser
  // has six for all pages of an address.
  const address = document.body.dataset.live;
  const notice = document.querySelector(".connection");
  let source = null;
  let wait = 1000;
  let again = 0;

  const morphed = (part, text) => {
    Idiomorph.morph(part, text, {
      morphStyle: "innerHTML",
      ignoreActiveValue: true,
      callbacks: {
        // What somebody ticks, types or opens is theirs.
        beforeAttributeUpdated: (name, node) =>
          !(name === "checked" || (name === "open" && node.matches("details, dialog"))),
        beforeNodeMorphed: (old) => !(old.matches?.("input, textarea, select, [data-keep]")),
      },
    });
    window.htmx?.process(part);
    sayTimes(part);
  };

  const open = () => {
    clearTimeout(again);
    if (source || !address || document.hidden) return;
    source = new EventSource(address);
    source.onopen = () => { wait = 1000; notice.hidden = true; };
    source.onerror = () => {
      notice.hidden = false;
      if (source.readyState !== EventSource.CLOSED) return;
      // Refused: signed out elsewhere, or the cloud is not there yet.
      close();
      again = setTimeout(async () => {
        try {
          const answer = await fetch(location.href, { redirect: "manual" });
          if (answer.type === "opaqueredirect" || answer.status === 404) return location.reload();
        } catch { /* not yet */ }
        open();
      }, wait);
      wait = Math.min(wait * 2, 15000);
    };
    // What somebody deletes here is gone before the answer comes that leads elsewhere.
    source.addEventListener("left", () =>
      setTimeout(() => location.reload(), document.querySelector(".htmx-request") ? 3000 : 0));
    for (const part of document.querySelectorAll("[data-part]")) {
      source.addEventListener(part.dataset.part, (event) => morphed(part, event.data));
    }
    for (const part of document.querySelectorAll("[data-lines]")) {
      for (const name of [part.dataset.event, `${part.dataset.event}-reset`]) {
        source.addEventListener(name, (event) =>
          document.dispatchEvent(new CustomEvent(`live:${name}`, { detail: event.data })));
      }
    }
  };
  const close = () => { source?.close(); source = null; };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
}
