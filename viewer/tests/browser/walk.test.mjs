// Every page by the navigation and by its links, served and saved.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";
import { pathToFileURL } from "node:url";

import { looking, picture, recorded, serving, xtuner } from "./support.mjs";

const RUNS = { live: xtuner("live"), agent: xtuner("agent"), diffusion: recorded("diffusion") };
const PAGES = ["Overview", "Samples", "Steps", "Stages", "Processes", "Compare"];
/** Most links of a run that are followed. */
const LINKS = 12;

/** Does what leads to another page, and waits until it is there. */
async function arrives(page, act) {
  await page.evaluate(() => document.querySelector("#page > *")?.setAttribute("data-left", ""));
  await act();
  await page.waitForSelector("#page > .page:not([data-left]), #page > .refused:not([data-left])", { state: "attached" });
}

/** Nothing is cut off: neither the page nor the navigation is wider than the window. */
async function fits(page, name) {
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${name} is ${wide} dots too wide`);
  const cut = await page.evaluate(() => {
    const nav = document.querySelector("nav");
    return nav.scrollWidth - nav.clientWidth;
  });
  assert.ok(cut <= 0, `${cut} dots of the navigation are cut off`);
  // Its parts have no boxes of their own, but what is in them.
  const header = await page.evaluate(() => {
    const boxes = [...document.querySelectorAll("#top > :not(.part), #top > .part > *")].map((one) => one.getBoundingClientRect()).filter((box) => box.width > 0);
    if (boxes.length < 5) return true;
    return boxes.some((box, at) => box.right > innerWidth + 1 || (at > 0 && box.left < boxes[at - 1].right - 1));
  });
  assert.ok(!header, "the parts of the header stand beside each other");
}

/** The different links of a page to other pages; of those that lead to the same page a few. */
async function links(page, known) {
  const seen = new Map();
  for (const href of await page.locator("main a[href^='#/']").evaluateAll((all) => all.map((one) => one.getAttribute("href")))) {
    const kind = `${href.split("?")[0]} ${[...new URLSearchParams(href.split("?")[1]).keys()]}`;
    seen.set(kind, [...(seen.get(kind) ?? []), href]);
  }
  for (const all of seen.values()) for (const href of all.slice(0, 2)) known.add(href);
}

/** Goes through all pages from the overview on; `there` tells what must be where a link leads. */
async function walk(page, name, there) {
  const known = new Set();
  for (const title of PAGES) {
    await arrives(page, () => page.locator("nav a", { hasText: title }).click());
    await picture(page, `${name}-${title.toLowerCase()}`);
    await fits(page, title);
    assert.equal(await page.locator("nav a.here").innerText(), title);
    await links(page, known);
  }
  const drawn = new Set();
  let followed = 0;
  for (const href of known) {
    if (++followed > LINKS) break;
    await arrives(page, () => page.evaluate((href) => (location.hash = href), `${href}${href.includes("?") ? "&" : "?"}`));
    const kind = `${href.split("?")[0]} ${href.includes("stage=")}`;
    const isThere = await there(page, href);
    if (!isThere) continue;
    await links(page, known);
    if (drawn.has(kind)) continue;
    drawn.add(kind);
    await fits(page, href);
    await picture(page, `${name}-to-${kind.replace("#/", "").split(" ")[0] || "overview"}${kind.endsWith("true") ? "-one" : ""}`);
  }
  assert.ok(followed > 10, `${followed} links`);
}

/** Saves a run as one page, and calls a function with its address. */
async function saving(run, look) {
  const directory = mkdtempSync(join(tmpdir(), "stagetrace-saved-"));
  const file = join(directory, "saved.html");
  execFileSync(process.env.VIEWER, ["export", "--html", ...(run.now ? ["--now", String(run.now)] : []), "--output", file, ...run.paths], { stdio: ["ignore", "ignore", "pipe"] });
  await look(String(pathToFileURL(file)));
  rmSync(directory, { recursive: true });
}

test("a saved page finds what the server finds, and says what it cannot search", async () => {
  const searches = ["is:stuck", "status:failed -current:judger.run", "age:>8min", "reward:<=0 step:22", "group:5", "group:=5", "rollout:20 is:open", "spans:>3", "is:left-open", "error:503", "tokens:>=500 sort"];
  await serving(RUNS.live, (url) => saving(RUNS.live, async (file) => {
    const find = async (page, q) => {
      await page.locator("input[type=search]").fill(q);
      await page.waitForFunction((q) => new URLSearchParams(location.hash.split("?")[1]).get("q") === q, q);
      await page.waitForTimeout(300);
      return page.locator(".told b").innerText();
    };
    const [served, saved] = [[], []];
    for (const [address, found] of [[url, served], [file, saved]]) {
      await looking(`${address}#/samples`, async (page) => {
        await page.locator(".told b").waitFor();
        for (const q of searches) found.push(await find(page, q));
      });
    }
    assert.deepEqual(saved, served);
    assert.equal(served[0], `${RUNS.live.expected.all.open_samples.length} samples`);
    await looking(`${file}#/samples`, async (page) => {
      await page.locator(".told b").waitFor();
      await page.locator("input[type=search]").fill("stack:judger");
      await page.locator(".refusal", { hasText: "A saved page cannot search stack:judger" }).waitFor();
    });
  }));
});

for (const [name, run] of Object.entries(RUNS)) {
  test(`all pages of ${name} are reached, and every link leads somewhere`, async () => {
    await serving(run, async (url) => {
      for (const [dark, width] of [[false, 1280], [true, 900]]) {
        await looking(url, (page) => walk(page, `walk-${name}-${dark ? "dark" : "light"}-${width}`, async (page, href) => {
          assert.equal(await page.locator("#page .refused").count(), 0, `${href}: ${await page.locator("#page").innerText()}`);
          return true;
        }), { dark, width });
      }
    });
  });

  test(`a saved page of ${name} shows the same, and says what was left out`, async () => {
    await saving(run, async (file) => {
      for (const [dark, width] of [[true, 1280], [false, 900]]) {
        let left = 0;
        await looking(file, (page) => walk(page, `saved-${name}-${dark ? "dark" : "light"}-${width}`, async (page, href) => {
          if ((await page.locator("#page .refused").count()) === 0) return true;
          assert.match(await page.locator("#page .refused").innerText(), /saved without/, href);
          left++;
          return false;
        }), { dark, width });
        console.log(`${name}: ${left} links lead to what was not saved`);
      }
    });
  });
}
