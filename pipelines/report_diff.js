"use strict";
// What differs between two texts, by words: pieces of [same, text] for each side. Knows no page.

const WORDS = /\s+|[\p{L}\p{N}\p{M}_]+|[^\s\p{L}\p{N}\p{M}_]/gu;
const MOST_CELLS = 4_000_000; // words of one side times words of the other; beyond, the middle counts as different

function wordsOf(text) {
  return text.match(WORDS) || [];
}

function difference(left, right) {
  const a = wordsOf(left), b = wordsOf(right);
  let head = 0;
  while (head < a.length && head < b.length && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  const same = aligned(a.slice(head, a.length - tail), b.slice(head, b.length - tail));
  const marks = (words, inner) => words.map((_, i) => i < head || i >= words.length - tail || inner[i - head] === 1);
  return [pieces(a, marks(a, same[0])), pieces(b, marks(b, same[1]))];
}

// Which words of each side belong to a longest common subsequence.
function aligned(a, b) {
  const kept = [new Uint8Array(a.length), new Uint8Array(b.length)];
  if (!a.length || !b.length || a.length * b.length > MOST_CELLS) return kept;
  const wide = b.length + 1;
  const longest = new Uint16Array((a.length + 1) * wide);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      longest[i * wide + j] = a[i] === b[j]
        ? longest[(i + 1) * wide + j + 1] + 1
        : Math.max(longest[(i + 1) * wide + j], longest[i * wide + j + 1]);
    }
  }
  for (let i = 0, j = 0; i < a.length && j < b.length;) {
    if (a[i] === b[j]) { kept[0][i++] = 1; kept[1][j++] = 1; }
    else if (longest[(i + 1) * wide + j] >= longest[i * wide + j + 1]) i++;
    else j++;
  }
  return kept;
}

// Runs of words that are alike; a lone gap between two different words counts as different, which reads better.
function pieces(words, same) {
  const found = [];
  words.forEach((word, i) => {
    const gap = !word.trim() && i > 0 && i + 1 < words.length && !same[i - 1] && !same[i + 1];
    const alike = same[i] && !gap;
    const last = found[found.length - 1];
    if (last && last[0] === alike) last[1] += word;
    else found.push([alike, word]);
  });
  return found;
}
