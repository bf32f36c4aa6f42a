// A viewer that serves, and a browser that looks at it.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { after } from "node:test";

const { CASES, CHROMIUM, PICTURES, PLAYWRIGHT, VIEWER } = process.env;
const { chromium } = await import(PLAYWRIGHT);
mkdirSync(PICTURES, { recursive: true });

/** Milliseconds that a step may take on a machine that is busy with all the other tests. */
const PATIENCE = Number(process.env.PATIENCE ?? 120_000);

/** The files of a case of XTuner, and the instant for which its expected.json holds. */
export function xtuner(name) {
  const expected = JSON.parse(readFileSync(`${CASES}/xtuner/${name}/expected.json`, "utf8"));
  return { expected, paths: [`${CASES}/xtuner/${name}`], now: expected.now_unix_nano };
}

/** The files of a run of our own recorder, and an instant shortly after it. */
export function recorded(name) {
  return { paths: [`${CASES}/${name}`], now: "1796149006000000000" };
}

/** Serves these, calls a function with the address, and ends. */
export async function serving({ paths, now }, look, options = []) {
  const viewer = spawn(VIEWER, ["serve", "--port", "0", ...(now ? ["--now", String(now)] : []), ...options, ...paths], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    const [url] = await once(createInterface(viewer.stdout), "line");
    await look(url);
  } finally {
    viewer.kill("SIGKILL");
  }
}

/** One browser for all tests of a file, since its start takes most of the time. */
let browser;
after(() => browser?.close());

/** Opens an address in a browser, and lets nothing pass that the console says. */
export async function looking(url, look, { dark = false, width = 1280, height = 800 } = {}) {
  // A container's shared memory is often too small for a browser.
  const args = ["--disable-dev-shm-usage", ...(process.getuid?.() === 0 ? ["--no-sandbox"] : [])];
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args, timeout: PATIENCE });
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: dark ? "dark" : "light" });
  context.setDefaultTimeout(PATIENCE);
  try {
    const page = await context.newPage();
    const said = [];
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && said.push(message.text()));
    page.on("pageerror", (error) => said.push(String(error.stack)));
    await page.goto(url);
    await look(page);
    assert.deepEqual(said, [], "the console is silent");
  } finally {
    await context.close();
  }
}

/** Waits until a page is drawn, and takes a picture, which must not be of one colour alone. */
export async function picture(page, name) {
  await page.waitForSelector("#page .page, #page .refused");
  assert.equal(await page.locator("#page .refused").count(), 0, await page.locator("#page").innerText());
  await page.waitForTimeout(250);
  const png = await page.screenshot({ path: `${PICTURES}/${name}.png` });
  assert.ok((await colors(page, png)) > 20, `${name} shows something`);
}

/** An empty page beside those of a test. */
const blanks = new WeakMap();

/** How many colours a picture has, as a browser reads it. */
async function colors(page, png) {
  const context = page.context();
  if (!blanks.has(context)) blanks.set(context, await context.newPage());
  return blanks.get(context).evaluate(async (url) => {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    return new Set(new Uint32Array(data.buffer)).size;
  }, `data:image/png;base64,${png.toString("base64")}`);
}
