"use strict";
// What the page holds: rows, names and conversations, unpacked block by block; texts when they are asked for.
// Knows nothing of how it is shown.

const KEPT_BLOCKS = 16;

const pause = () => new Promise((done) => setTimeout(done, 0));

async function unpack(element) {
  const packed = atob(element.textContent);
  const bytes = new Uint8Array(packed.length);
  for (let i = 0; i < packed.length; i++) bytes[i] = packed.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

class Store {
  constructor(head, elements) {
    this.head = head;
    this.at = Object.fromEntries(head.fields.map((name, i) => [name, i]));
    this.rowBlocks = elements.filter((e) => e.dataset.kind === "rows");
    this.textBlocks = elements.filter((e) => e.dataset.kind === "texts").map((element) => ({ element, first: +element.dataset.first }));
    this.kept = new Map(); // text blocks that were unpacked lately
    this.names = [];
    this.parent = [-1];
    this.role = [-1];
    this.text = [-1];
    this.rows = [];
    this.places = new Map(); // id to row
  }

  async load(told) {
    for (const element of this.rowBlocks) {
      const block = await unpack(element);
      element.remove();
      for (const name of block.names) this.names.push(name);
      for (const [parent, role, text] of block.nodes) {
        this.parent.push(parent);
        this.role.push(role);
        this.text.push(text);
      }
      for (const row of block.rows) {
        this.places.set(row[this.at.id], this.rows.length);
        this.rows.push(row);
      }
      told(this.rows.length);
      await pause();
    }
  }

  get(row, field) {
    return this.rows[row][this.at[field]];
  }

  name(row, field) {
    return this.names[this.get(row, field)];
  }

  block(number) {
    let low = 0, high = this.textBlocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.textBlocks[middle].first <= number) low = middle;
      else high = middle - 1;
    }
    return this.textBlocks[low];
  }

  async textOf(number) {
    const block = this.block(number);
    let texts = this.kept.get(block);
    if (texts) this.kept.delete(block);
    else texts = unpack(block.element);
    this.kept.set(block, texts);
    if (this.kept.size > KEPT_BLOCKS) this.kept.delete(this.kept.keys().next().value);
    return (await texts).texts[number - block.first];
  }

  // The nodes after `start` up to `end`; null where `end` does not go on from `start`.
  path(end, start = 0) {
    const found = [];
    for (let node = end; node !== start; node = this.parent[node]) {
      if (node === 0) return null;
      found.push(node);
    }
    return found.reverse();
  }

  async talk(nodes) {
    return Promise.all(nodes.map(async (n) => ({ role: this.names[this.role[n]], text: await this.textOf(this.text[n]) })));
  }

  // One byte a row: 1 where a text holds the words. `alive` ends it early, `told` hears the share that is done.
  async search(words, where, told, alive) {
    const wanted = words.toLowerCase();
    const hits = new Uint8Array(this.head.texts);
    for (let i = 0; i < this.textBlocks.length; i++) {
      const block = this.textBlocks[i];
      const { texts } = await unpack(block.element);
      if (!alive()) return null;
      for (let t = 0; t < texts.length; t++) if (texts[t].toLowerCase().includes(wanted)) hits[block.first + t] = 1;
      told((i + 1) / this.textBlocks.length);
      await pause();
    }
    const nodes = new Uint8Array(this.parent.length);
    const own = where === "said";
    for (let n = 1; n < nodes.length; n++) nodes[n] = hits[this.text[n]] || (own ? 0 : nodes[this.parent[n]]);
    const found = new Uint8Array(this.rows.length);
    for (let row = 0; row < found.length; row++) {
      found[row] = this.holds(row, nodes, hits, own) || this.get(row, "id") === words ? 1 : 0;
    }
    return found;
  }

  holds(row, nodes, hits, own) {
    if (this.head.kind === "pairs") {
      return nodes[this.get(row, "chosen")] || nodes[this.get(row, "rejected")]
        || (!own && (hits[this.get(row, "chosen_reason")] || hits[this.get(row, "rejected_reason")]));
    }
    return this.get(row, "moves").some((m) => nodes[m.said] || hits[m.raw] || (!own && hits[m.violation]));
  }

  // The rows that pass, and for each filter how many rows each of its values would give.
  filter(chosen, found) {
    const fields = this.head.filters.map(([field]) => this.at[field]);
    const wanted = this.head.filters.map(([field]) => chosen[field] ?? -1);
    const counts = fields.map(() => new Map());
    const rows = [];
    for (let r = 0; r < this.rows.length; r++) {
      if (found && !found[r]) continue;
      const row = this.rows[r];
      let misses = 0, missed = -1;
      for (let f = 0; f < fields.length && misses < 2; f++) {
        const value = row[fields[f]];
        if (wanted[f] < 0 || value === wanted[f] || (Array.isArray(value) && value.includes(wanted[f]))) continue;
        misses++;
        missed = f;
      }
      if (misses > 1) continue;
      if (!misses) rows.push(r);
      for (let f = 0; f < fields.length; f++) {
        if (misses && f !== missed) continue;
        const value = row[fields[f]];
        for (const one of Array.isArray(value) ? value : [value]) counts[f].set(one, (counts[f].get(one) || 0) + 1);
      }
    }
    return { rows, counts };
  }
}
