"use strict";
// The page: filters, list, one pair or episode, keys, links. Everything that was said is set as text, never as markup.

const PAGE = 50;
const LONG = 1_500; // characters of a message that is folded
const $ = (id) => document.getElementById(id);
const head = JSON.parse($("head").textContent);
let store = null;
let rows = [];      // what passes the filters
let place = 0;      // the picked one, as a place in rows
let picked = null;  // the row that is shown
let chosen = {};    // filter field to the number of a name
let found = null;   // what the search found, a byte a row
let searching = 0;
let showing = 0;
let openPrompt = true;
let marking = true;
let seat = "";      // the player whose talk is shown

function make(tag, kind, ...inside) {
  const element = document.createElement(tag);
  if (kind) element.className = kind;
  element.append(...inside);
  return element;
}

// A text with what cannot be seen made visible: control characters, and marks that turn the direction of writing.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
function shown(text) {
  const parts = document.createDocumentFragment();
  let end = 0;
  for (const match of text.matchAll(HIDDEN)) {
    parts.append(text.slice(end, match.index), make("span", "ctl", "U+" + match[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, "0")));
    end = match.index + match[0].length;
  }
  parts.append(text.slice(end));
  return parts;
}

const plain = (text) => { const parts = shown(text); return parts.textContent; };
const number = (n) => n.toLocaleString("en");

function button(text, act, title) {
  const element = make("button", "", text);
  element.type = "button";
  if (title) element.title = title;
  element.addEventListener("click", act);
  return element;
}

// ---- filters and the list

function drawFilters(counts) {
  head.filters.forEach(([field, label], f) => {
    let select = $("f-" + field);
    if (!select) {
      select = make("select");
      select.id = "f-" + field;
      select.setAttribute("aria-label", label);
      select.addEventListener("change", () => {
        if (select.value === "") delete chosen[field];
        else chosen[field] = +select.value;
        refilter();
      });
      $("facets").append(select);
    }
    const values = [...counts[f].keys()];
    if (field in chosen && !counts[f].has(chosen[field])) values.push(chosen[field]);
    values.sort((a, b) => store.names[a].localeCompare(store.names[b], "en", { numeric: true }));
    const options = [new Option(label + ": all", "")];
    for (const value of values) options.push(new Option(`${plain(store.names[value]) || "(none)"} (${number(counts[f].get(value) || 0)})`, value));
    select.replaceChildren(...options);
    select.value = field in chosen ? String(chosen[field]) : "";
    select.classList.toggle("on", field in chosen);
    select.disabled = values.length === 0;
  });
}

function refilter() {
  const before = picked;
  const passed = store.filter(chosen, found);
  rows = passed.rows;
  drawFilters(passed.counts);
  const total = store.rows.length;
  const left = total < head.rows ? `, ${number(head.rows - total)} still being unpacked` : "";
  $("found").textContent = rows.length === total ? `${number(total)} ${head.kind}${left}` : `${number(rows.length)} of ${number(total)} ${head.kind}${left}`;
  const kept = before === null ? -1 : rows.indexOf(before);
  place = Math.max(0, kept);
  drawList();
  if (!document.body.classList.contains("picked") || kept < 0) show(rows.length ? rows[place] : null);
}

function drawList() {
  const pages = Math.max(1, Math.ceil(rows.length / PAGE));
  const page = Math.floor(place / PAGE);
  $("pages").textContent = number(pages);
  $("page").max = pages;
  $("page").value = page + 1;
  $("back").disabled = page === 0;
  $("forth").disabled = page >= pages - 1;
  const items = [];
  for (let i = page * PAGE; i < Math.min(rows.length, (page + 1) * PAGE); i++) items.push(listed(i));
  $("list").replaceChildren(...items);
  if (!items.length) $("list").append(make("li", "none lead", "Nothing passes these filters."));
  markListed();
}

function listed(i) {
  const row = rows[i];
  const name = (field) => plain(store.name(row, field));
  const pairs = head.kind === "pairs";
  const verdict = pairs ? name("rejected_verdict") : name("outcome");
  const tone = /^(violation|aborted|error)/.test(verdict) ? " bad" : /^(accepted|success)/.test(verdict) ? " good" : "";
  const second = pairs ? name("role") : `${name("experiment")} / ${store.get(row, "task")}`;
  const who = make("span", "who", make("b", "", name("game")), make("span", "", second));
  const snippet = make("span", "snip");
  const chips = make("span", "", ...(pairs && name("strategy") ? [chip(name("strategy")), " "] : []), chip(verdict, tone));
  const item = button("", () => {
    if (narrow()) history.pushState(FROM_LIST, "", linkTo(row)); // the list is a page of its own there, to go back to
    pick(i);
    document.body.classList.add("picked");
    if (narrow()) scrollTo(0, 0);
  });
  item.append(...(name("game") || second ? [who] : []), snippet, chips);
  item.dataset.place = i;
  snippetOf(row).then((text) => snippet.replaceChildren(plain(text.slice(0, 160).replace(/\s+/g, " "))));
  return make("li", "", item);
}

async function snippetOf(row) {
  const end = head.kind === "pairs" ? store.get(row, "chosen") : (store.get(row, "moves").at(-1) || { said: 0 }).said;
  return end ? store.textOf(store.text[end]) : "";
}

function markListed() {
  for (const item of $("list").querySelectorAll("button")) {
    if (+item.dataset.place === place) {
      item.setAttribute("aria-current", "true");
      if (!narrow()) item.scrollIntoView({ block: "nearest" });
    } else item.removeAttribute("aria-current");
  }
}

const narrow = () => matchMedia("(max-width: 820px)").matches;

function pick(to) {
  if (!rows.length) return;
  to = Math.min(rows.length - 1, Math.max(0, to));
  const turned = Math.floor(to / PAGE) !== Math.floor(place / PAGE);
  place = to;
  if (turned) { drawList(); $("list").scrollTop = 0; }
  $("page").value = Math.floor(place / PAGE) + 1;
  markListed();
  show(rows[place]);
  history.replaceState(history.state, "", linkTo(rows[place]));
}

const FROM_LIST = { list: true };

// On a narrow screen, from one to the list, at the place where it was left.
function toList() {
  if (history.state && history.state.list) { history.back(); return; }
  history.replaceState(null, "", "#browse");
  follow();
}

const linkTo = (row) => `#${head.kind === "pairs" ? "pair" : "episode"}=${encodeURIComponent(store.get(row, "id"))}`;

// ---- one of them

async function show(row) {
  const turn = ++showing;
  picked = row;
  if (row === null) { $("detail").replaceChildren(make("p", "none", "Nothing to show.")); return; }
  const parts = await (head.kind === "pairs" ? pairParts(row) : episodeParts(row));
  if (turn !== showing) return;
  $("detail").replaceChildren(steps(row), ...parts);
  $("detail").dataset.place = place;
  $("detail").scrollTop = 0;
  const talk = $("detail").querySelector("details.prompt > .talk");
  if (talk) talk.scrollTop = talk.scrollHeight;
}

function steps(row) {
  const copy = button("Copy link", copyLink, "l");
  copy.id = "copy";
  const list = button("‹ List", toList, "Back to the list");
  list.className = "to-list";
  return make("div", "steps", list,
    button("↑ Before", () => pick(place - 1), "k"), button("↓ Next", () => pick(place + 1), "j"),
    make("span", "gap"), make("span", "facts", `${number(place + 1)} of ${number(rows.length)}`), copy);
}

async function copyLink() {
  if (picked === null) return;
  history.replaceState(history.state, "", linkTo(picked));
  try { await navigator.clipboard.writeText(location.href); $("copy").textContent = "Copied"; } catch { $("copy").textContent = "Copy it from the address bar"; }
}

function chip(text, tone = "") {
  return make("span", "chip" + tone, plain(text));
}

// Grids, boards and maps are drawn with letters, which must stand below each other.
const GRID = /(^|\n)[ |]*(\S[ |\t]){2,}\S?[ |]*\n[ |]*(\S[ |\t]){2,}/;
const saidBox = (text) => make("div", GRID.test(text) ? "said grid" : "said");

function bubble(message, by, more = "") {
  const said = saidBox(message.text);
  said.append(shown(message.text));
  if (!message.text) said.replaceChildren(make("span", "none", "(empty)"));
  const role = ["user", "assistant", "system"].includes(message.role) ? message.role : "user";
  const element = make("div", `bubble ${role} ${more}`, make("span", "by", plain(by)), said);
  if (message.text.length > LONG) {
    said.classList.add("folded");
    const fold = button(`Show all ${number(message.text.length)} characters`, () => {
      const folded = said.classList.toggle("folded");
      fold.textContent = folded ? `Show all ${number(message.text.length)} characters` : "Fold";
    });
    fold.classList.add("more");
    element.append(fold);
  }
  return element;
}

const BY = { user: "game master", assistant: "player", system: "system" };

// Where it comes from, as far as that is known: a set that was read from a file need not say.
const listing = (parts, between) => parts.filter((part) => part !== "").join(between);
const titleOf = (row) => listing([plain(store.name(row, "game")), plain(store.name(row, "experiment")), String(store.get(row, "task"))], " / ");

function sourceOf(row) {
  const name = (field) => plain(store.name(row, field));
  const score = store.get(row, "score");
  const id = `pair ${plain(store.get(row, "id"))}`;
  if (!name("player") && !name("role")) return listing([name("model"), id], "; ");
  const who = name("role") ? `${name("player")} (${name("role")})` : name("player");
  return listing([
    `${who}, move ${store.get(row, "index") + 1} of sample ${store.get(row, "sample")}`, name("model"),
    listing([name("outcome") && `episode ${name("outcome")}`, score === null ? "" : `main score ${score}`], ", "), id,
  ], "; ");
}

async function pairParts(row) {
  const name = (field) => plain(store.name(row, field));
  const prompt = await store.talk(store.path(store.get(row, "prompt")));
  const sides = [];
  for (const side of ["chosen", "rejected"]) {
    const talk = await store.talk(store.path(store.get(row, side), store.get(row, "prompt")) || []);
    sides.push({
      side, text: talk.map((m) => m.text).join("\n"), verdict: store.name(row, side + "_verdict"),
      reason: await store.textOf(store.get(row, side + "_reason")),
    });
  }
  const [left, right] = difference(sides[0].text, sides[1].text);
  const size = prompt.reduce((sum, m) => sum + m.text.length, 0);
  const box = make("details", "prompt", make("summary", "", `Prompt: ${number(prompt.length)} message${prompt.length === 1 ? "" : "s"}, ${number(size)} characters`));
  box.open = openPrompt;
  box.addEventListener("toggle", () => { openPrompt = box.open; });
  const told = name("player") || name("role");
  box.append(make("div", "talk", ...prompt.map((m) => bubble(m, !told ? m.role : m.role === "assistant" ? name("role") || "player" : BY[m.role] || m.role))));
  const mark = button(marking ? "Do not mark what differs" : "Mark what differs", toggleMarks, "m");
  mark.id = "mark";
  const both = make("div", "sides" + (marking ? "" : " plain"), sideCard(sides[0], left, "ins"), sideCard(sides[1], right, "del"));
  both.id = "sides";
  const chips = ["strategy", "detail", "split"].filter((field) => store.name(row, field)).map((field) => chip(store.name(row, field)));
  return [
    make("h2", "", name("game") ? titleOf(row) : `Pair ${titleOf(row)}`), make("p", "facts", sourceOf(row)),
    make("p", "tabs", ...chips, make("span", "gap"), mark),
    box, both,
  ];
}

function sideCard(one, parts, tag) {
  const text = saidBox(one.text);
  for (const [same, part] of parts) text.append(same ? shown(part) : make(tag, "", shown(part)));
  if (!one.text) text.append(make("span", "none", "(empty)"));
  const tone = one.verdict.startsWith("violation") ? " bad" : one.verdict.startsWith("accepted") ? " good" : "";
  return make("section", "side " + one.side,
    make("h3", "", one.side, make("small", "", `${number(one.text.length)} characters`)), text,
    make("p", "verdict", "Game master: ", chip(one.verdict || "not asked", tone), one.reason ? " " : "", shown(one.reason)));
}

function toggleMarks() {
  marking = !marking;
  if ($("sides")) {
    $("sides").classList.toggle("plain", !marking);
    $("mark").textContent = marking ? "Do not mark what differs" : "Mark what differs";
  }
}

async function episodeParts(row) {
  const name = (field) => plain(store.name(row, field));
  const players = store.get(row, "players");
  const moves = store.get(row, "moves");
  const speakers = players.filter((p) => moves.some((m) => m.player === p.player));
  if (!speakers.some((p) => store.names[p.player] === seat)) seat = speakers.length ? store.names[speakers[0].player] : "";
  const tabs = make("div", "tabs", ...speakers.map((p) => {
    const tab = button(`${plain(store.names[p.player])} (${plain(store.names[p.role])})`, () => { seat = store.names[p.player]; show(row); });
    tab.setAttribute("aria-pressed", String(store.names[p.player] === seat));
    return tab;
  }));
  const fault = await store.textOf(store.get(row, "fault"));
  const score = store.get(row, "score");
  const cast = players.map((p) => `${plain(store.names[p.player])} (${plain(store.names[p.role])}): ${plain(store.names[p.model])}${p.learner ? "" : ", partner"}`).join("; ");
  return [
    make("h2", "", `${name("game")} / ${name("experiment")} / ${store.get(row, "task")}`),
    make("p", "facts", `Sample ${store.get(row, "sample")}; ${number(moves.length)} move${moves.length === 1 ? "" : "s"}; ${cast}; episode ${plain(store.get(row, "id"))}`),
    make("p", "tabs", chip(store.name(row, "outcome"), { success: " good", aborted: " bad", error: " bad" }[store.name(row, "outcome")] || ""), chip(score === null ? "no main score" : `main score ${score}`)),
    ...(fault ? [make("p", "fault", shown(fault))] : []),
    tabs,
    make("div", "talk", ...await talkOf(moves.filter((m) => store.names[m.player] === seat))),
  ];
}

// What one player was told and said: each prompt as what it adds to what the player saw before.
async function talkOf(moves) {
  const bubbles = [];
  let seen = 0;
  for (const move of moves) {
    let fresh = store.path(move.prompt, seen);
    if (fresh === null) {
      fresh = store.path(move.prompt);
      bubbles.push(make("div", "anew", "asked anew, without what was said before"));
    }
    for (const message of await store.talk(fresh)) bubbles.push(bubble(message, BY[message.role] || message.role));
    const role = plain(store.names[move.role]);
    const [reply] = await store.talk([move.said]);
    const tokens = move.tokens[1] >= 0 ? `, ${number(move.tokens[1])} tokens` : "";
    const finish = store.names[move.finish];
    const cut = finish && finish !== "stop" && finish !== "unknown" ? `, ended by ${finish}` : "";
    const violation = await store.textOf(move.violation);
    const element = bubble(reply, `${role}, move ${move.index + 1}${tokens}${cut}`, violation ? "broken" : "");
    if (violation) element.append(make("p", "verdict", "Game master: ", chip("violation", " bad"), " ", shown(violation)));
    const raw = await store.textOf(move.raw);
    if (raw && raw !== reply.text) element.append(make("details", "", make("summary", "facts", "as the model said it"), make("div", "said", shown(raw))));
    bubbles.push(element);
    seen = move.said;
  }
  return bubbles.length ? bubbles : [make("p", "none", "No model made a move.")];
}

// ---- search

async function search() {
  const words = $("query").value.trim();
  const turn = ++searching;
  if (!words) { found = null; $("bar").hidden = true; if (store) refilter(); return; }
  $("bar").hidden = false;
  $("bar").value = 0;
  const hits = await store.search(words, $("scope").value, (share) => { if (turn === searching) $("bar").value = share; }, () => turn === searching);
  if (!hits || turn !== searching) return;
  found = hits;
  $("bar").hidden = true;
  refilter();
}

let waiting = 0;
$("query").addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(search, 250); });
$("scope").addEventListener("change", search);
$("clear").addEventListener("click", () => { $("query").value = ""; chosen = {}; search(); });
$("back").addEventListener("click", () => pick(place - PAGE));
$("forth").addEventListener("click", () => pick((Math.floor(place / PAGE) + 1) * PAGE));
$("page").addEventListener("change", () => pick(((+$("page").value || 1) - 1) * PAGE));

// ---- tabs, theme, keys, links

function openTab(name) {
  for (const tab of ["overview", "browse"]) {
    $(tab).hidden = tab !== name;
    if (tab === name) $("to-" + tab).setAttribute("aria-current", "page");
    else $("to-" + tab).removeAttribute("aria-current");
  }
}

function follow() {
  const [, kind, id] = /^#(pair|episode)=(.*)$/.exec(location.hash) || [];
  if (!kind) {
    const list = location.hash === "#browse";
    openTab(list ? "browse" : "overview");
    if (list) document.body.classList.remove("picked");
    if (list && narrow() && $("list").querySelector("[aria-current]")) $("list").querySelector("[aria-current]").scrollIntoView({ block: "center" });
    return;
  }
  openTab("browse");
  let name = id;
  try { name = decodeURIComponent(id); } catch { /* a torn link is looked up as it stands */ }
  const row = store.places.get(name);
  if (row === undefined) {
    if (store.rows.length >= head.rows) $("found").textContent = `There is no ${kind} ${plain(name)} in this report.`;
    return;
  }
  document.body.classList.add("picked");
  if (row === picked) return;
  if (rows.indexOf(row) < 0) { chosen = {}; found = null; $("query").value = ""; refilter(); }
  place = rows.indexOf(row);
  drawList();
  show(row);
}

const THEMES = ["auto", "light", "dark"];
function setTheme(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  $("theme").textContent = "◐ " + theme;
  try { localStorage.setItem("pairgen-theme", theme); } catch { /* a file may have no storage */ }
}
function nextTheme() {
  const now = document.documentElement.dataset.theme || "auto";
  setTheme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]);
}

function foldPrompt() {
  openPrompt = !openPrompt;
  const box = $("detail").querySelector("details.prompt");
  if (box) box.open = openPrompt;
}

const KEYS = {
  "?": () => $("keys").showModal(),
  "/": () => { location.hash = "#browse"; openTab("browse"); document.body.classList.remove("picked"); $("query").focus(); $("query").select(); },
  t: nextTheme,
  o: () => { location.hash = "#overview"; },
  b: () => { location.hash = "#browse"; },
};
const BROWSE_KEYS = {
  j: () => pick(place + 1), ArrowDown: () => pick(place + 1),
  k: () => pick(place - 1), ArrowUp: () => pick(place - 1),
  ArrowRight: () => pick((Math.floor(place / PAGE) + 1) * PAGE),
  ArrowLeft: () => pick(Math.max(0, (Math.floor(place / PAGE) - 1) * PAGE)),
  p: foldPrompt, m: toggleMarks, l: copyLink,
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || $("keys").open) return;
  const typing = event.target.closest("input, select, textarea");
  if (typing) {
    if (event.key === "Escape") { typing.blur(); event.preventDefault(); }
    return;
  }
  const act = KEYS[event.key] || ($("browse").hidden ? undefined : BROWSE_KEYS[event.key]);
  if (act) { event.preventDefault(); act(); }
});

$("theme").addEventListener("click", nextTheme);
$("help").addEventListener("click", () => $("keys").showModal());
addEventListener("hashchange", follow);

for (const figure of document.querySelectorAll("figure")) {
  const chart = figure.querySelector("svg");
  if (!chart) continue;
  figure.querySelector("figcaption").append(button("Save SVG", () => {
    const file = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(chart)], { type: "image/svg+xml" }));
    const link = make("a");
    link.href = file;
    link.download = `${figure.id}.svg`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(file), 10_000);
  }));
}

async function start() {
  try { setTheme(localStorage.getItem("pairgen-theme") || "auto"); } catch { /* as above */ }
  store = new Store(head, [...document.querySelectorAll("script.block")]);
  openTab(/^#(browse|pair=|episode=)/.test(location.hash) ? "browse" : "overview");
  let first = true;
  await store.load(() => {
    if (first || store.rows.length === head.rows) { refilter(); follow(); }
    else $("found").textContent = `${number(rows.length)} ${head.kind}, unpacking ${number(store.rows.length)} of ${number(head.rows)}`;
    first = false;
  });
  if (!head.rows) refilter();
  if ($("query").value.trim()) await search(); // one that began earlier saw only the rows of its time
  document.body.dataset.ready = "yes";
}
start();
