// The page of a study that runs: when something came, the parts that changed are taken from the page as it is now.
// Parts in which somebody reads by keyboard are left as they are, and whatever was unfolded stays so.
"use strict";
(() => {
  const main = document.querySelector("main[data-follow]");
  if (!main || !window.EventSource) return;
  const unfolded = (part) => [...part.querySelectorAll("details")].map((one) => one.open);
  const exchange = (old, now) => {
    if (old.contains(document.activeElement) || old.innerHTML === now.innerHTML) return;
    const open = unfolded(old);
    old.replaceChildren(...now.childNodes);
    old.querySelectorAll("details").forEach((one, place) => { one.open = Boolean(open[place]); });
  };
  const load = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const parts = "#standing, .verdict, .facts, [data-part]";
    const now = [...page.querySelectorAll(parts)];
    const old = [...document.querySelectorAll(parts)];
    if (now.length !== old.length) { location.reload(); return; }
    old.forEach((part, place) => exchange(part, now[place]));
  };
  const events = new EventSource(main.dataset.follow);
  let known = null;
  events.addEventListener("standing", (event) => {
    const told = JSON.parse(event.data);
    if (known !== null && known !== told.revision) load();
    known = told.revision;
    const text = document.querySelector("#standing pre");
    if (text && told.standing && text.textContent !== told.standing) text.textContent = told.standing;
    if (!told.at_work) { events.close(); load(); }
  });
})();
