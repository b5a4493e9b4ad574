// The log of a device: lines as they come, of one service or with some words, held up while somebody reads.
"use strict";
for (const section of document.querySelectorAll("[data-log]")) {
  const lines = section.querySelector("[data-lines]");
  const service = section.querySelector("[data-log-service]");
  const text = section.querySelector("[data-log-text]");
  const pause = section.querySelector("[data-log-pause]");
  const waiting = section.querySelector("[data-log-waiting]");
  const most = Number(lines.dataset.lines);
  // What came while it was held up, and whether it takes the place of what is shown.
  let held = [];
  let isReset = false;
  let paused = false;

  const shown = (line) =>
    (!service.value || line.dataset.service === service.value)
    && (!text.value || line.textContent.toLowerCase().includes(text.value.toLowerCase()));
  const toEnd = () => { lines.scrollTop = lines.scrollHeight; };
  const filter = () => {
    for (const line of lines.children) line.hidden = !shown(line);
    toEnd();
  };
  service.addEventListener("change", filter);
  text.addEventListener("input", filter);

  const add = (more, instead) => {
    const atEnd = instead || lines.scrollHeight - lines.scrollTop - lines.clientHeight < 40;
    for (const line of more) line.hidden = !shown(line);
    if (instead) lines.replaceChildren(...more);
    else lines.append(...more);
    while (lines.childElementCount > most) lines.firstElementChild.remove();
    if (atEnd) toEnd();
  };
  const showWaiting = () => {
    const count = held.length === most ? `${most} or more` : held.length;
    waiting.textContent = held.length && !isReset ? `${count} new ${held.length === 1 ? "line" : "lines"}` : "";
  };
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.setAttribute("aria-pressed", paused);
    pause.textContent = paused ? "Follow" : "Pause";
    if (!paused) {
      add(held, isReset);
      toEnd();
      [held, isReset] = [[], false];
    }
    showWaiting();
  });

  const came = (html, instead) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    const more = [...template.content.children];
    if (!paused) return add(more, instead);
    isReset ||= instead;
    held = (instead ? more : held.concat(more)).slice(-most);
    showWaiting();
  };
  document.addEventListener("live:lines", (event) => came(event.detail, false));
  // After the connection was made, or made again: all that is kept.
  document.addEventListener("live:lines-reset", (event) => {
    section.querySelector("[data-log-unread]")?.remove();
    came(event.detail, true);
  });

  section.querySelector("[data-log-controls]").hidden = false;
  toEnd();
}
