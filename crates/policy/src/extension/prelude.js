// Runs first in every fresh engine: takes away what a rule must not have, and fixes the clock and
// the randomness. `begin` is called with the request's time and digest before the rule is.

const RealDate = Date;
const construct = Reflect.construct;
let now = 0;
let a = 0, b = 0, c = 0, d = 1;

export default function begin(time, w, x, y, z) {
  now = time;
  a = w | 0; b = x | 0; c = y | 0; d = z | 0;
}

function FixedDate(...parts) {
  if (new.target === undefined) return new RealDate(now).toString();
  return construct(RealDate, parts.length === 0 ? [now] : parts, new.target);
}
FixedDate.prototype = RealDate.prototype;
Object.defineProperties(FixedDate, {
  name: { value: "Date" },
  length: { value: 7 },
  now: { value: function () { return now; }, writable: true, configurable: true },
  parse: { value: RealDate.parse, writable: true, configurable: true },
  UTC: { value: RealDate.UTC, writable: true, configurable: true },
});
RealDate.prototype.constructor = FixedDate;
globalThis.Date = FixedDate;

// sfc32: small, quick, and passes the usual tests.
Math.random = function () {
  const t = (((a + b) | 0) + d) | 0;
  d = (d + 1) | 0;
  a = b ^ (b >>> 9);
  b = (c + (c << 3)) | 0;
  c = ((c << 21) | (c >>> 11)) + t | 0;
  return (t >>> 0) / 4294967296;
};

for (const name of ["eval", "queueMicrotask", "Atomics", "SharedArrayBuffer", "WeakRef",
  "FinalizationRegistry", "performance"]) {
  delete globalThis[name];
}
