// Keeps a page up to date while somebody looks at it: asks whether it is new, and puts in only what has changed.
// What a person is about stays: scroll, focus, opened details, what is typed in, and the text that is marked.
"use strict";

const EVERY_S = 10;
const MOST_S = 120; // between two tries while the server does not answer
const SWITCH = "health-assets-refresh";

const utc = (time) => `${time.toISOString().slice(11, 19)} UTC`;

function isOn() {
  try {
    return localStorage.getItem(SWITCH) !== "off";
  } catch {
    return true; // a browser that keeps nothing
  }
}

function keepSwitch(on) {
  try {
    localStorage.setItem(SWITCH, on ? "on" : "off");
  } catch {
    // a browser that keeps nothing: the choice lasts until the next page
  }
}

// -- putting a new page in the place of the one that is shown --

let left = 0; // changes that wait until nobody is about what they would replace

function isInUse(node) {
  const marked = getSelection();
  const isMarked = marked && !marked.isCollapsed && marked.containsNode(node, true);
  const held = document.activeElement;
  return isMarked || (node.nodeType === Node.ELEMENT_NODE && held !== document.body && node.contains(held));
}

function isOwn(node) {
  return node.nodeType === Node.ELEMENT_NODE && "refreshed" in node.dataset;
}

function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  if (node.id) return `#${node.id}`;
  if (node.tagName === "FIGURE") return `figure ${node.dataset.curve ?? ""}`;
  if (node.tagName === "TR") return node.cells[0]?.tagName === "TH" ? `row ${node.cells[0].textContent}` : null;
  if (node.tagName === "LI") return node.querySelector("a[href]") ? `item ${node.querySelector("a[href]").getAttribute("href")}` : null;
  if (node.hasAttribute("aria-labelledby")) return `section ${node.getAttribute("aria-labelledby")}`;
  return null;
}

function isAlike(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName;
}

function syncAttributes(old, fresh) {
  for (const { name, value } of [...fresh.attributes]) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  for (const { name } of [...old.attributes]) {
    const isOurs = (name === "open" && old.tagName === "DETAILS") || (name === "title" && old.tagName === "TIME" && old.dateTime === fresh.dateTime);
    if (!fresh.hasAttribute(name) && !isOurs && !name.startsWith("data-htmx")) old.removeAttribute(name);
  }
}

function syncField(old, fresh) {
  const isTouched = old === document.activeElement || (old.tagName === "SELECT" ? [...old.options].some((one) => one.selected !== one.defaultSelected && one.defaultSelected) : old.value !== old.defaultValue);
  if (isTouched || old.isEqualNode(fresh)) return;
  const isChecked = old.checked;
  syncAttributes(old, fresh);
  if (old.tagName === "SELECT") morphChildren(old, fresh);
  else old.value = fresh.defaultValue;
  old.checked = isChecked;
}

function syncFigure(old, fresh) {
  const values = (figure) => figure.querySelector("table")?.textContent + figure.querySelector(".marks")?.textContent;
  if (values(old) === values(fresh)) return;
  for (const selector of ["table", ".marks", "figcaption"]) {
    const [before, after] = [old.querySelector(selector), fresh.querySelector(selector)];
    if (before && after) morph(before, after);
    else if (after) old.append(document.importNode(after, true));
    else before?.remove();
  }
  window.redrawn?.(old);
}

function morph(old, fresh) {
  if (isOwn(old)) return;
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data === fresh.data) return;
    if (isInUse(old)) left += 1;
    else old.data = fresh.data;
    return;
  }
  if (old.matches("figure.curve")) return syncFigure(old, fresh);
  if (old.matches("input, select, textarea")) return syncField(old, fresh);
  syncAttributes(old, fresh);
  morphChildren(old, fresh);
}

// The child of `old` that each child of `fresh` goes on in: the one of its key, else the next of its kind without one.
function matches(old, fresh) {
  const byKey = new Map();
  const loose = [];
  for (const child of old.childNodes) {
    if (isOwn(child)) continue;
    const key = keyOf(child);
    if (key !== null && !byKey.has(key)) byKey.set(key, child);
    else loose.push(child);
  }
  const found = new Map();
  for (const child of fresh.childNodes) {
    if (isOwn(child)) continue;
    const key = keyOf(child);
    const named = key === null ? undefined : byKey.get(key);
    if (named && isAlike(named, child)) {
      byKey.delete(key);
      found.set(child, named);
    } else if (key === null || loose.some((one) => keyOf(one) === key)) {
      const place = loose.findIndex((one) => isAlike(one, child));
      if (place >= 0) found.set(child, loose.splice(place, 1)[0]);
    }
  }
  return [found, [...byKey.values(), ...loose]];
}

function morphChildren(old, fresh) {
  if (old.isEqualNode(fresh)) return;
  const [found, gone] = matches(old, fresh);
  const kept = new Set(); // in use, so that they stay for now
  for (const child of gone) {
    if (isInUse(child)) kept.add(child);
    else child.remove();
  }
  left += kept.size;
  let at = old.firstChild;
  for (const child of [...fresh.childNodes]) {
    if (isOwn(child)) continue;
    while (at && (isOwn(at) || kept.has(at))) at = at.nextSibling;
    const known = found.get(child);
    if (!known) {
      const made = document.importNode(child, true);
      old.insertBefore(made, at);
      window.htmx?.process?.(made);
      continue;
    }
    if (known === at) at = at.nextSibling;
    else if (isInUse(known)) left += 1; // to move it would take the focus or the mark away
    else old.insertBefore(known, at);
    morph(known, child);
  }
}

// -- asking --

const refreshing = {
  tag: null,
  madeAt: null,
  askedAt: 0,
  failures: 0,
  isAsking: false,

  show() {
    const line = document.querySelector(".freshness");
    if (!line) return;
    line.hidden = false;
    const button = line.querySelector("button");
    const on = isOn();
    const text = on ? `As of ${utc(this.madeAt)}; the page refreshes itself.` : `As of ${utc(this.madeAt)}; the page does not refresh itself.`;
    const told = line.querySelector(".when-made");
    if (told.textContent !== text) told.textContent = text;
    const word = on ? "Stop" : "Refresh";
    if (button.textContent !== word) button.textContent = word;
  },

  warn(reason) {
    const line = document.querySelector(".banner.late[data-refreshed]");
    if (!line) return;
    const text = reason ? `This page may be old: ${reason}; it is as of ${utc(this.madeAt)}.` : "";
    if (line.textContent !== text) line.textContent = text;
    line.hidden = !text;
  },

  async ask() {
    if (this.isAsking || !isOn() || document.visibilityState !== "visible") return;
    const wait_s = Math.min(MOST_S, EVERY_S * 2 ** Math.min(this.failures, 5));
    if (performance.now() - this.askedAt < 1000 * wait_s - 50) return;
    this.isAsking = true;
    this.askedAt = performance.now();
    const address = location.href;
    try {
      const headers = { Accept: "text/html", ...(this.tag ? { "If-None-Match": this.tag } : {}) };
      const answer = await fetch(address.split("#")[0], { headers, cache: "no-store", redirect: "error", signal: AbortSignal.timeout(30000) });
      if (answer.status === 200) await this.take(answer, address);
      else if (answer.status !== 304) throw new Error(answer.status === 401 || answer.status === 403 ? "you are not signed in any more" : `the server answers ${answer.status}`);
      if (address === location.href) this.madeAt = new Date(answer.headers.get("Last-Modified") ?? Date.now());
      this.failures = 0;
      this.warn("");
    } catch (error) {
      this.failures += 1;
      this.warn(error instanceof TypeError || error.name === "TimeoutError" ? "the server does not answer" : error.message);
    } finally {
      this.isAsking = false;
    }
    this.show();
  },

  async take(answer, address) {
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (address !== location.href || document.querySelector(".htmx-request")) return; // somebody has gone on meanwhile
    left = 0;
    if (document.title !== fresh.title) document.title = fresh.title;
    morphChildren(document.body, fresh.body);
    window.prepared?.(document);
    this.tag = left ? null : answer.headers.get("ETag"); // what is left is asked for again
  },
};

document.addEventListener("DOMContentLoaded", () => {
  refreshing.madeAt = new Date(document.lastModified);
  refreshing.askedAt = performance.now();
  const button = document.querySelector(".freshness button");
  if (!button) return;
  button.onclick = () => {
    keepSwitch(!isOn());
    refreshing.askedAt = -Infinity;
    refreshing.failures = 0;
    if (!isOn()) refreshing.warn("");
    refreshing.show();
    refreshing.ask();
  };
  refreshing.show();
  setInterval(() => refreshing.ask(), 1000);
  document.addEventListener("visibilitychange", () => refreshing.ask());
});
