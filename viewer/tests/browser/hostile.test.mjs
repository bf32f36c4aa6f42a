import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { looking, serving } from "./support.mjs";

const NAMES = ["<script>alert(1)</script>", "__proto__", "constructor", "a&b=c#d?e f", "\u202egnp.exe", "\"'\\", "x".repeat(5000)];
const IDS = [{ intValue: "9007199254740993" }, { intValue: "-9223372036854775808" }, ...NAMES.map((stringValue) => ({ stringValue }))];

/** A line with a sample that is called so in every respect. */
function line(trace, id, name = String(id.stringValue ?? id.intValue), endTimeUnixNano = "3000") {
  const value = { stringValue: name };
  const attributes = [["xtuner.rollout_id", id], ["xtuner.group_id", id], ["xtuner.producer_future_step", id], ["xtuner.stage", value], ["xtuner.status", value], ["__proto__", value]]
    .map(([key, value]) => ({ key, value }));
  const span = { traceId: String(trace).padStart(32, "0"), spanId: "0000000000000001", name, startTimeUnixNano: "1000", endTimeUnixNano, attributes, status: { code: 2, message: name } };
  return `${JSON.stringify({ resourceSpans: [{ resource: { attributes: [{ key: "service.name", value }, { key: "service.instance.id", value }] }, scopeSpans: [{ spans: [span] }] }] })}\n`;
}

async function run(look, lines = IDS.map((id, at) => line(at + 1, id))) {
  const folder = mkdtempSync(join(tmpdir(), "hostile-"));
  try {
    const file = join(folder, "traces.jsonl");
    appendFileSync(file, lines.join(""));
    await look({ paths: [folder], now: "9000" }, file);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const drawn = (page) => page.waitForSelector("#page .page, #page .refused, #page > h1");

test("whatever names and ids are, every link leads to a page that is no wider than the window", async () => {
  await run((sources) => serving(sources, (url) => looking(url, async (page) => {
    page.on("dialog", () => assert.fail("a name was executed"));
    const todo = ["#/", "#/samples", "#/steps", "#/stages", "#/processes", "#/compare"];
    const seen = new Set();
    const kinds = new Map();
    while (todo.length > 0) {
      const address = todo.shift();
      const kind = address.split("?")[0];
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
      if (seen.has(address) || kinds.get(kind) > 14) continue;
      seen.add(address);
      await page.evaluate((next) => {
        document.getElementById("page").replaceChildren();
        if (location.hash === next) dispatchEvent(new HashChangeEvent("hashchange"));
        else location.hash = next;
      }, address);
      await drawn(page);
      const found = await page.evaluate(() => ({
        refused: document.querySelector("#page .refused")?.textContent, wide: document.documentElement.scrollWidth - innerWidth,
        elements: document.querySelectorAll("main script, main img").length, links: [...document.querySelectorAll("a[href^='#']")].map((link) => link.getAttribute("href")),
      }));
      const { links, ...rest } = found;
      assert.deepEqual(rest, { refused: undefined, wide: 0, elements: 0 }, address);
      todo.push(...links);
    }
    for (const kind of ["#/sample", "#/group", "#/step"]) assert.ok((kinds.get(kind) ?? 0) >= IDS.length, kind);
  })));
});

test("addresses of nothing say so", async () => {
  await run((sources) => serving(sources, (url) => looking(url, async (page) => {
    for (const name of ["constructor", "__proto__", "toString", "nothing"]) {
      await page.evaluate((hash) => { location.hash = hash; }, `#/${name}?step=7`);
      await page.getByText("There is no such page").waitFor();
    }
  })));
});

test("the menu of steps stays open while samples come", async () => {
  await run((sources, file) => serving(sources, (url) => looking(url, async (page) => {
    await drawn(page);
    const menu = await page.waitForSelector("#step");
    await menu.focus();
    appendFileSync(file, line(100, { intValue: "5" }, "new"));
    await page.locator(".run", { hasText: `${IDS.length + 1} samples` }).waitFor();
    assert.equal(await menu.evaluate((element) => element.isConnected && element === document.activeElement), true);
  })));
});

test("a page comes back when its server was started anew and reads for a while", async () => {
  await run((sources, file) => serving(sources, (url) => looking(url, async (page) => {
    await drawn(page);
    // So answers a server that still reads.
    let isReading = true;
    await page.route("**/api/state", (route) => (isReading ? route.fulfill({ json: { version: 0 } }) : route.continue()));
    appendFileSync(file, line(100, { intValue: "5" }, "new"));
    await page.getByText("Reading the sources").waitFor();
    isReading = false;
    await page.locator("#page .page .card").first().waitFor();
  })));
});
