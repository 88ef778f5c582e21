"use strict";
// The viewer of a report: filters, search, pages, one item in full. Texts enter the page as text nodes alone.
const PAGE = 50;
const KEPT = 12; // unpacked blocks that stay in memory
const el = (name, props = {}, ...children) => {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children);
  return node;
};
const at = (id) => document.getElementById(id);

async function unpack(id) {
  const bytes = Uint8Array.from(atob(at(id).textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

const blocks = new Map();
async function block(number) {
  if (blocks.has(number)) {
    const found = blocks.get(number);
    blocks.delete(number);
    blocks.set(number, found); // the one used last is the last to go
    return found;
  }
  const found = unpack(`block-${number}`);
  blocks.set(number, found);
  if (blocks.size > KEPT) blocks.delete(blocks.keys().next().value);
  return found;
}

let index, places = Object.create(null), matches = [], page = 0, selected = -1, searching = 0, promptOpen = true;

const value = (column, item) => index.columns[column].names[index.columns[column].codes[item]];
const state = { text: "", filters: {} };

function buildFilters() {
  const box = at("filters");
  for (const name of index.filters) {
    const { names, codes } = index.columns[name];
    const counts = new Array(names.length).fill(0);
    for (const code of codes) counts[code]++;
    const select = el("select", { id: `filter-${name}` }, el("option", { value: "", textContent: "all" }));
    names.map((text, code) => [text, code]).sort((a, b) => (a[0] < b[0] ? -1 : 1)).forEach(([text, code]) =>
      select.append(el("option", { value: String(code), textContent: `${text || "(none)"} (${counts[code].toLocaleString("en")})` })));
    select.addEventListener("change", () => { state.filters[name] = select.value; refresh(); });
    box.append(el("label", { textContent: index.labels[name] || name }, select));
  }
  const search = el("input", { type: "search", id: "search", placeholder: "all texts …", autocomplete: "off" });
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => { state.text = search.value; refresh(); }, 180); });
  box.append(el("label", { className: "search", textContent: "search" }, search));
}

function filtered() {
  const wanted = Object.entries(state.filters).filter(([, code]) => code !== "").map(([name, code]) => [index.columns[name].codes, Number(code)]);
  const found = [];
  for (let i = 0; i < index.ids.length; i++) if (wanted.every(([codes, code]) => codes[i] === code)) found.push(i);
  return found;
}

async function refresh(keep = -1) {
  const run = ++searching;
  const found = filtered();
  if (!state.text.trim()) return settle(found, keep);
  matches = [];
  const needle = state.text.trim().toLowerCase();
  const byBlock = new Map();
  for (const item of found) {
    const number = Math.floor(item / index.size);
    if (!byBlock.has(number)) byBlock.set(number, []);
    byBlock.get(number).push(item);
  }
  let done = 0, shown = performance.now();
  for (const [number, items] of byBlock) {
    const { strings, items: rows } = await block(number);
    if (run !== searching) return; // another search has begun
    const hits = new Set();
    strings.forEach((text, i) => { if (text.toLowerCase().includes(needle)) hits.add(i); });
    for (const item of items) {
      const hit = index.ids[item].includes(needle) || (hits.size && uses(rows[item % index.size], hits));
      if (hit) matches.push(item);
    }
    done += items.length;
    if (performance.now() - shown > 60) {
      at("count").textContent = `searching … ${Math.round((100 * done) / found.length)} %, ${matches.length.toLocaleString("en")} found`;
      await new Promise((go) => setTimeout(go));
      shown = performance.now();
      if (run !== searching) return;
    }
  }
  settle(matches, keep);
}

// Numbers in `t` are places in the block's strings, whatever holds them.
const uses = (row, hits) => row.t.some((i) => hits.has(i));

function settle(found, keep) {
  matches = found;
  page = keep >= 0 ? Math.floor(Math.max(0, matches.indexOf(keep)) / PAGE) : 0;
  drawList();
  const first = keep >= 0 && matches.includes(keep) ? keep : matches[0];
  if (first === undefined) { selected = -1; at("detail").replaceChildren(el("p", { className: "soft", textContent: "Nothing matches: clear the filters." })); } else show(first, false);
}

function drawList() {
  const all = index.ids.length;
  at("count").textContent = matches.length === all ? `${all.toLocaleString("en")} ${index.things}` : `${matches.length.toLocaleString("en")} of ${all.toLocaleString("en")} ${index.things}`;
  const pages = Math.max(1, Math.ceil(matches.length / PAGE));
  at("page").textContent = `page ${page + 1} of ${pages.toLocaleString("en")}`;
  at("back").disabled = page === 0;
  at("forth").disabled = page + 1 >= pages;
  at("list").replaceChildren(...matches.slice(page * PAGE, (page + 1) * PAGE).map((item) => {
    const line = el("li", { id: `item-${item}` },
      el("b", { textContent: index.previews[item] || "(empty)" }),
      el("span", { className: "sub" }, el("span", { textContent: index.subtitle.map((name) => value(name, item)).filter(Boolean).join(" · ") }), el("span", { textContent: value(index.outcome, item) })));
    line.setAttribute("role", "option");
    line.setAttribute("aria-selected", String(item === selected));
    line.addEventListener("click", () => show(item));
    return line;
  }));
}

async function show(item, named = true) {
  selected = item;
  for (const line of at("list").children) line.setAttribute("aria-selected", String(line.id === `item-${item}`));
  at(`item-${item}`)?.scrollIntoView({ block: "nearest" });
  const { strings, items } = await block(Math.floor(item / index.size));
  if (selected !== item) return;
  const row = items[item % index.size];
  at("detail").replaceChildren(...(index.kind === "pairs" ? pair(row, strings, item) : episode(row, strings, item)));
  if (named || location.hash) history.replaceState(null, "", `#${index.kind === "pairs" ? "pair" : "episode"}=${encodeURIComponent(index.ids[item])}`);
}

function heading(row, strings, item) {
  const facts = row.facts.map(([name, i]) => [name, strings[i]]).filter(([, text]) => text);
  return [
    el("h3", { textContent: index.heading.map((name) => value(name, item)).filter(Boolean).join(" / ") }),
    el("p", { className: "soft" }, facts.map(([name, text]) => `${name} ${text}`).join(" · "), facts.length ? " · " : "", el("code", { textContent: index.ids[item] })),
  ];
}

const badge = (text) => el("span", { className: `badge ${["accepted", "violation", "success", "aborted", "error"].find((w) => text.startsWith(w)) || "other"}`, textContent: text });

function bubble([role, i, wrong], strings) {
  const node = el("div", { className: `bubble ${["system", "assistant"].includes(role) ? role : "user"}` }, el("span", { className: "who", textContent: role }), strings[i]);
  if (wrong !== undefined && strings[wrong]) node.append(el("span", { className: "wrong", textContent: `game master: ${strings[wrong]}` }));
  return node;
}

function pair(row, strings, item) {
  const prompt = el("details", { open: promptOpen, id: "prompt" }, el("summary", { textContent: `prompt: ${row.prompt.length} message${row.prompt.length === 1 ? "" : "s"}` }), ...row.prompt.map((m) => bubble(m, strings)));
  prompt.addEventListener("toggle", () => { promptOpen = prompt.open; });
  const said = (side) => row[side].map(([, i]) => strings[i]).join("\n");
  const [left, right] = differ(said("chosen"), said("rejected"));
  const side = (name, parts, verdict, reason) => el("div", { className: `side ${name}` }, el("h4", { textContent: name }), el("div", { className: "text" }, ...parts),
    el("p", { className: "reason" }, badge(strings[verdict]), strings[reason] ? `game master: ${strings[reason]}` : ""));
  return [...heading(row, strings, item), prompt, el("div", { className: "sides" }, side("chosen", left, row.cv, row.cr), side("rejected", right, row.rv, row.rr))];
}

function episode(row, strings, item) {
  return [...heading(row, strings, item), badge(value("outcome", item)),
    ...row.players.map((player, n) => {
      const talk = el("details", { open: n === 0 || promptOpen }, el("summary", { textContent: `${player.name} (${player.role}), ${player.model}: ${player.talk.length} messages` }), ...player.talk.map((m) => bubble(m, strings)));
      if (n) talk.addEventListener("toggle", () => { promptOpen = talk.open; });
      return talk;
    })];
}

// What the other side lacks is marked, word by word; very long texts by what they begin and end with alike.
function differ(left, right) {
  const words = (text) => text.match(/\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu) || [];
  const [a, b] = [words(left), words(right)];
  let start = 0, end = 0;
  while (start < Math.min(a.length, b.length) && a[start] === b[start]) start++;
  while (end < Math.min(a.length, b.length) - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  const [m, n] = [a.slice(start, a.length - end), b.slice(start, b.length - end)];
  const sames = m.length * n.length > 4e6 ? [new Set(), new Set()] : common(m, n);
  const parts = (all, middle, same) => {
    const out = [all.slice(0, start).join("")];
    let run = "", marked = false;
    const flush = () => { if (run) out.push(marked ? el("mark", { textContent: run }) : run); run = ""; };
    middle.forEach((word, i) => { const now = !same.has(i); if (now !== marked) { flush(); marked = now; } run += word; });
    flush();
    out.push(all.slice(all.length - end).join(""));
    return out.filter((part) => part !== "");
  };
  return [parts(a, m, sames[0]), parts(b, n, sames[1])];
}

function common(m, n) {
  const width = n.length + 1;
  const table = new Uint16Array((m.length + 1) * width);
  for (let i = m.length - 1; i >= 0; i--) for (let j = n.length - 1; j >= 0; j--)
    table[i * width + j] = m[i] === n[j] ? table[(i + 1) * width + j + 1] + 1 : Math.max(table[(i + 1) * width + j], table[i * width + j + 1]);
  const same = [new Set(), new Set()];
  for (let i = 0, j = 0; i < m.length && j < n.length;) {
    if (m[i] === n[j]) { same[0].add(i++); same[1].add(j++); } else if (table[(i + 1) * width + j] >= table[i * width + j + 1]) i++; else j++;
  }
  return same;
}

function step(by) {
  const here = matches.indexOf(selected);
  const next = matches[Math.min(matches.length - 1, Math.max(0, here + by))];
  if (next === undefined || next === selected) return;
  turn(Math.floor(matches.indexOf(next) / PAGE));
  show(next);
}

function turn(to) {
  const last = Math.max(0, Math.ceil(matches.length / PAGE) - 1);
  const wanted = Math.min(last, Math.max(0, to));
  if (wanted !== page) { page = wanted; drawList(); }
}

function theme(to) {
  document.documentElement.dataset.theme = to;
  try { localStorage.setItem("pairgen-theme", to); } catch { /* private windows keep nothing */ }
}

function go() {
  const [, kind, id] = /^#(pair|episode)=(.+)$/.exec(location.hash) || [];
  if (!kind) return false;
  let name = id;
  try { name = decodeURIComponent(id); } catch { /* taken as it is */ }
  const item = places[name];
  if (item === undefined) { at("count").textContent = `there is no ${kind} ${name} here`; return false; }
  if (matches.includes(item)) { turn(Math.floor(matches.indexOf(item) / PAGE)); show(item); } else { clear(item); }
  at("viewer").scrollIntoView();
  return true;
}

function clear(keep = -1) {
  state.text = at("search").value = "";
  for (const name of index.filters) { state.filters[name] = ""; at(`filter-${name}`).value = ""; }
  refresh(keep);
}

const KEYS = {
  j: () => step(1), ArrowDown: () => step(1), k: () => step(-1), ArrowUp: () => step(-1),
  n: () => { turn(page + 1); }, ArrowRight: () => { turn(page + 1); }, b: () => { turn(page - 1); }, ArrowLeft: () => { turn(page - 1); },
  p: () => { const prompt = at("prompt"); if (prompt) prompt.open = !prompt.open; },
  "/": () => { at("search").focus(); at("search").select(); }, "?": () => at("help").showModal(),
  t: () => at("theme").click(),
};

function saveChart(figure) {
  const svg = new XMLSerializer().serializeToString(figure.querySelector("svg"));
  const link = el("a", { href: URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" })), download: `${figure.id}.svg` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function dress() {
  let kept = null;
  try { kept = localStorage.getItem("pairgen-theme"); } catch { /* private windows keep nothing */ }
  const dark = matchMedia("(prefers-color-scheme: dark)");
  document.documentElement.dataset.theme = kept || (dark.matches ? "dark" : "light");
  at("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
  for (const figure of document.querySelectorAll("figure")) figure.querySelector("button").addEventListener("click", () => saveChart(figure));
}

async function start() {
  dress();
  index = await unpack("index");
  index.ids.forEach((id, i) => { places[id] = i; });
  buildFilters();
  matches = filtered();
  drawList();
  at("back").addEventListener("click", () => { turn(page - 1); });
  at("forth").addEventListener("click", () => { turn(page + 1); });
  at("clear").addEventListener("click", () => clear());
  at("keys").addEventListener("click", () => at("help").showModal());
  document.addEventListener("keydown", (event) => {
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (event.key === "Escape" && typing) event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey || at("help").open) return;
    const inViewer = !event.key.startsWith("Arrow") || at("viewer").contains(document.activeElement);
    if (KEYS[event.key] && inViewer) { event.preventDefault(); KEYS[event.key](); }
  });
  addEventListener("hashchange", go);
  if (!go() && matches.length) show(matches[0], false);
  document.documentElement.dataset.ready = "yes";
}

start();
