// Times on a ruler.

import { duration } from "../format.js";

/**
 * Instants for marks on a ruler, at most about as many as wanted, and their texts.
 * @param {number} from @param {number} to nanoseconds @param {number} wanted
 * @returns {{ at: number, text: string }[]}
 */
export function timeTicks(from, to, wanted) {
  const rough = (to - from) / Math.max(1, wanted);
  const minutes = [60e9, 120e9, 300e9, 600e9, 1800e9, 3600e9, 7200e9, 21_600e9, 43_200e9, 86_400e9];
  const days = 10 ** Math.floor(Math.log10(Math.max(1, rough / 86_400e9))) * 86_400e9;
  const power = 10 ** Math.floor(Math.log10(Math.max(1, rough)));
  const decimal = [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough) ?? rough;
  const step = Math.max(1, rough <= 30e9 ? decimal : minutes.find((one) => one >= rough) ?? [1, 2, 5, 10].map((one) => one * days).find((one) => one >= rough) ?? rough);
  const ticks = [];
  const first = Math.ceil(from / step) * step;
  for (let count = 0; first + count * step <= to && count < 200; count++) {
    const at = first + count * step;
    ticks.push({ at, text: tickText(at, step, first) });
  }
  return ticks;
}

/** @param {number} at @param {number} step @param {number} first */
function tickText(at, step, first) {
  if (at === 0) return "0";
  const size = Math.abs(at);
  if (step >= 1e9 && size >= 60e9) return duration(at);
  const [unit, name] = size >= 1e9 ? [1e9, "s"] : size >= 1e6 ? [1e6, "ms"] : size >= 1e3 ? [1e3, "µs"] : [1, "ns"];
  const digits = Math.max(0, Math.ceil(Math.log10(unit / step) - 1e-9));
  if (digits <= 6 || at === first) return `${(at / unit).toFixed(digits)} ${name}`;
  // Far from the beginning and close to each other: from the first mark on.
  return `+${duration(at - first)}`;
}

/** The window that is closest to a wished one, no wider than the whole; @param {{ from: number, to: number }} whole @param {number} from @param {number} to */
export function fitWindow(whole, from, to) {
  const widest = (whole.to - whole.from) * 1.02;
  const wide = Math.min(widest, Math.max(20, to - from));
  const slack = widest - (whole.to - whole.from);
  const begin = Math.min(whole.to + slack - wide, Math.max(whole.from - slack / 4, from));
  return { from: begin, to: begin + wide };
}
