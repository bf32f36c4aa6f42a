import assert from "node:assert/strict";
import test from "node:test";

import { looking, picture, serving, xtuner } from "./support.mjs";

test("the overview shows how samples stand, what they are in, and what went wrong", async () => {
  const live = xtuner("live");
  await serving(live, async (url) => {
    for (const dark of [false, true]) {
      await looking(url, async (page) => {
        await picture(page, `overview-${dark ? "dark" : "light"}`);
        const cards = await page.locator(".cards").innerText();
        for (const [status, samples] of Object.entries(live.expected.all.statuses)) {
          assert.match(cards.replaceAll("\n", " "), new RegExp(`${samples} ${status}`));
        }
        for (const stage of live.expected.all.stages) {
          assert.ok(await page.getByText(stage.stage, { exact: true }).first().isVisible(), stage.stage);
        }
      }, { dark });
    }
  });
});

test("what was recorded is shown as text, whatever it looks like", async () => {
  await serving(xtuner("live"), (url) => looking(url, async (page) => {
    await page.getByText("<script>alert('xss')</script>").first().waitFor();
    assert.equal(await page.locator("main script").count(), 0);
  }));
});

test("a step is chosen, and is in the address", async () => {
  const live = xtuner("live");
  await serving(live, (url) => looking(url, async (page) => {
    await page.selectOption("#step", "21");
    await page.waitForURL(/step=21/);
    await page.waitForFunction((samples) => document.querySelector(".card b")?.textContent === String(samples), live.expected.by_step["21"].samples);
    await page.keyboard.press("t");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
    await page.keyboard.press("?");
    await page.locator("dialog.help").waitFor();
  }));
});
