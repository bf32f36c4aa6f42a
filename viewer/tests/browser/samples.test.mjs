import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { looking, picture, serving, xtuner } from "./support.mjs";

const live = xtuner("live");

/** Waits until the list says that it has so many samples. */
const found = (page, count) => page.waitForFunction((count) => document.querySelector(".told b")?.textContent === `${count} sample${count === 1 ? "" : "s"}`, count);

/** Ids of the rows that are drawn. */
const ids = (page) => page.locator(".virtual-row .id").allInnerTexts();

test("samples are searched, sorted and opened, and the address holds it all", async () => {
  const failed = live.expected.all.statuses.failed;
  await serving(live, (url) => looking(url, async (page) => {
    await page.keyboard.press("s");
    await picture(page, "samples-light");
    await found(page, 200);
    await page.locator(".facet", { hasText: "failed" }).click();
    await found(page, failed);
    assert.equal(await page.inputValue("input[type=search]"), "status:failed");
    await page.keyboard.press("/");
    await page.keyboard.type(" -status:failed");
    await found(page, 0);
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await found(page, 200);
    await page.getByRole("button", { name: "took" }).click();
    await page.waitForURL(/sort=duration&desc=true$/);
    await page.getByRole("button", { name: "took" }).click();
    await page.waitForURL(/sort=duration$/);
    const rows = live.expected.per_sample.filter((sample) => sample.duration_ns);
    rows.sort((one, other) => Number(one.duration_ns) - Number(other.duration_ns));
    await page.waitForFunction((id) => document.querySelector(".virtual-row .id")?.textContent === id, String(rows[0].rollout_id));
    await page.locator(".virtual").focus();
    for (const { rollout_id } of rows.slice(0, 2)) {
      await page.keyboard.press("j");
      await page.locator(".virtual-row.chosen .id", { hasText: String(rollout_id) }).waitFor();
    }
    await page.keyboard.press("Enter");
    await page.waitForURL(new RegExp(`trace=${rows[1].trace_id}&sample=${rows[1].rollout_id}$`));
  }));
});

test("what can be searched is explained, and a click searches it", async () => {
  await serving(live, (url) => looking(`${url}#/samples`, async (page) => {
    await page.locator("input[type=search]").click();
    await page.locator(".search-help").waitFor();
    await page.getByRole("button", { name: "is:stuck", exact: true }).first().click();
    await found(page, live.expected.all.open_samples.length);
    assert.equal(await page.inputValue("input[type=search]"), "is:stuck");
  }));
});

test("a list is scrolled to its end, and keeps its place while samples come in above", async () => {
  const directory = mkdtempSync(join(tmpdir(), "stagetrace-list-"));
  const file = join(directory, "live.jsonl");
  const put = (from, count) => {
    let text = "";
    for (let id = from; id < from + count; id++) {
      text += `${JSON.stringify({ event: "start", time_s: 1784106000 + id, span_name: "run", span_name_path: ["run"], attributes: { "xtuner.rollout_id": id }, trace_id: String(id + 1).padStart(32, "0"), span_id: String(id + 1).padStart(16, "0") })}\n`;
    }
    appendFileSync(file, text);
  };
  put(0, 3000);
  await serving({ paths: [file], now: "1784126000000000000" }, (url) => looking(`${url}#/samples`, async (page) => {
    await found(page, "3\u202f000");
    assert.equal((await ids(page))[0], "2999", "the newest come first");
    await page.evaluate(() => (document.querySelector(".virtual").scrollTop = 1e9));
    await page.waitForFunction(() => [...document.querySelectorAll(".virtual-row .id")].at(-1)?.textContent === "0");
    assert.ok((await ids(page)).length < 60, "only what is seen is drawn");
    await page.evaluate(() => (document.querySelector(".virtual").scrollTop = 34 * 1000));
    await page.waitForFunction(() => document.querySelector(".virtual-row .id")?.textContent === "2005");
    put(3000, 50);
    await found(page, "3\u202f050");
    await page.waitForFunction(() => document.querySelector(".virtual").scrollTop === 34 * 1050);
    assert.equal((await ids(page))[0], "2005", "the same rows are seen");
  }));
  rmSync(directory, { recursive: true });
});

test("groups stand side by side, and steps say what held them up", async () => {
  await serving(xtuner("agent"), async (url) => {
    for (const [dark, width] of [[false, 1280], [true, 900]]) {
      const look = dark ? "dark" : "light";
      await looking(`${url}#/steps`, async (page) => {
        await picture(page, `steps-${look}`);
        await page.locator("td a b", { hasText: "3" }).click();
        await page.waitForURL(/step=3/);
        await page.locator(".flow").waitFor();
        await picture(page, `step-${look}`);
        assert.equal(await page.locator(".flow polygon").count(), 4);
        await page.getByRole("button", { name: "long tail" }).click();
        await page.waitForURL(/sort=tail/);
        await page.locator("section", { hasText: "Groups: 5" }).locator("tbody a").first().click();
        await page.waitForURL(/group\?step=3&group=/);
        await page.locator(".lane-row").first().waitFor();
        await picture(page, `group-${look}`);
        assert.equal(await page.locator(".lane-row").count(), 4);
        await page.keyboard.press("j");
        await page.locator(".lane-row.chosen").waitFor();
      }, { dark, width });
    }
  });
});
