import assert from "node:assert/strict";
import test from "node:test";

import { looking, picture, serving, xtuner } from "./support.mjs";

const live = xtuner("live");

test("lanes are zoomed and panned, and the address holds the window", async () => {
  await serving(live, async (url) => {
    for (const dark of [false, true]) {
      await looking(`${url}#/processes`, async (page) => {
        await picture(page, `processes-${dark ? "dark" : "light"}`);
        await page.keyboard.press("w");
        await page.waitForURL(/from=\d{19}&until=\d{19}/);
        const window = () => new URLSearchParams(new URL(page.url()).hash.split("?")[1]);
        const [from, until] = ["from", "until"].map((name) => BigInt(window().get(name)));
        assert.equal(until - from > 440_000_000_000n && until - from < 460_000_000_000n, true, "half of 15 minutes");
        await page.keyboard.press("d");
        await page.waitForFunction((before) => !location.hash.includes(`from=${before}`), String(from));
        await page.reload();
        await page.locator("canvas.swimlanes").waitFor();
        assert.ok(BigInt(window().get("from")) > from, "it is still there");
        await page.keyboard.press("0");
        await page.waitForFunction(() => !location.hash.includes("from="));
      }, { dark });
    }
  });
});

test("a process is chosen, and what is wrong with sources is told", async () => {
  await serving(live, (url) => looking(`${url}#/processes`, async (page) => {
    await page.getByText("its last line is torn").waitFor();
    await page.locator("table.processes tbody a").first().click();
    await page.waitForURL(/process=/);
    await page.getByText("show all").click();
    await page.waitForFunction(() => !location.hash.includes("process="));
  }, { width: 900 }));
});

test("a stage leads to its steps and its slowest spans, and back", async () => {
  await serving(live, (url) => looking(`${url}#/stages`, async (page) => {
    await picture(page, "stages");
    await page.getByRole("link", { name: "judger.run" }).click();
    await page.getByText("Slowest").waitFor();
    await picture(page, "stage");
    const bars = await page.locator(".histogram rect.hit").count();
    assert.ok(bars > 5, `${bars} bars`);
    await page.keyboard.press("Escape");
    await page.waitForURL(/#\/stages$/);
  }));
});

test("two steps stand side by side, and change sides", async () => {
  await serving(live, (url) => looking(`${url}#/compare`, async (page) => {
    await picture(page, "compare");
    assert.equal(await page.locator("#side-a").inputValue(), "step:21");
    await page.getByRole("button", { name: "swap" }).click();
    await page.waitForURL(/a=step%3A22&b=step%3A21/);
    await page.waitForFunction(() => document.querySelector("#side-a")?.value === "step:22");
    assert.equal(await page.locator(".difference").count(), live.expected.all.stages.length);
  }));
});
