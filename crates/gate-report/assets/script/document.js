/*
 * The interactive part of a report: plots that zoom, a tooltip for every request, a table that sorts and filters.
 *
 * The page is whole without it: the verdict, the checks and the pictures are in the document. This script only reads
 * the numbers of the requests from `#gate-data` once the page is painted, and never asks the network for anything.
 * Text from outside enters the document as text nodes only.
 */
const root = document.documentElement;
const ARMS = ['target', 'reference'];
/** From so many points in view a plot shows bands in place of points. */
const POINTS_IN_VIEW = 4000;
/** The height of a row of the table, in pixels; `interactive.css` says the same. */
const ROW_HEIGHT = 28;
/** So many rows are drawn above and below what is seen. */
const ROWS_AROUND = 12;

// ---------------------------------------------------------------------------------------------------- the document

/** An element with attributes and children; strings become text nodes. */
function make(namespace, name, attributes, children) {
  const made = namespace ? document.createElementNS(namespace, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith('on')) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? '' : value);
  }
  made.append(...children);
  return made;
}
const el = (name, attributes, ...children) => make(null, name, attributes, children);
const svg = (name, attributes, ...children) => make('http://www.w3.org/2000/svg', name, attributes, children);

/** Calls it once per frame, however often it is asked to. */
function oncePerFrame(task) {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => {
      isAsked = false;
      task();
    });
  };
}

// ----------------------------------------------------------------------------------------------------- the numbers

const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** A number with as many decimals as its size deserves. */
function decimal(value) {
  if (!isNumber(value)) return '–';
  const size = Math.abs(value);
  return value.toFixed(size >= 100 ? 0 : size >= 10 ? 1 : 2);
}
const whole = (value) => (isNumber(value) ? String(value) : '–');
const millis = (value) => (isNumber(value) ? `${decimal(value)} ms` : '–');
const seconds = (value) => (isNumber(value) ? `${(value / 1000).toFixed(3)} s` : '–');

/** The largest of some numbers that may be many. */
const highest = (values, least) => values.reduce((one, other) => (other > one ? other : one), least);

/** The round numbers between two, for an axis of logarithms. */
function roundNumbers(low, high) {
  const between = (digits) => {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power += 1) {
      found.push(...digits.map((digit) => Number((digit * 10 ** power).toPrecision(2))));
    }
    return found.filter((number) => number >= low && number <= high);
  };
  const few = between([1, 2, 5]);
  return few.length > 2 ? few : between([1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9]);
}

/** The value below which this share of sorted values lies (nearest rank). */
const quantile = (sorted, share) => sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];

/** The first place in sorted numbers that is not below a value. */
function lowerBound(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
