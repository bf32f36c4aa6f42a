import assert from "node:assert/strict";
import { appendFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import test from "node:test";

import { looking, picture, serving, xtuner } from "./support.mjs";

/** The height of a row of the timeline. */
const ROW = 22;

/** Waits until the timeline was painted. */
const painted = (page) => page.waitForFunction(() => performance.getEntriesByName("stagetrace drawn").length > 0);

/** What the address says of the page. */
const address = (page) => new URLSearchParams(new URL(page.url()).hash.split("?")[1]);

/** Waits until the address says something of the page, `null` for nothing. */
const said = (page, name, value) => page.waitForFunction(([name, value]) => new URLSearchParams(location.hash.split("?")[1]).get(name) === value, [name, value]);

/** Waits until another window is shown than this address said. */
const moved = (page, before) => page.waitForFunction((before) => {
  const params = new URLSearchParams(location.hash.split("?")[1]);
  return `${params.get("from")} ${params.get("to")}` !== before;
}, `${before.get("from")} ${before.get("to")}`);

/** The span that is told of in the panel. */
const told = (page) => page.locator(".span-panel h2").innerText();

/** Waits until the panel tells of a span, and what was recorded of it has come. */
const tells = async (page, name) => {
  await page.locator(".span-panel h2", { hasText: name }).waitFor();
  await page.locator(".span-panel .details > :not(.loading)").first().waitFor();
};

/** Clicks what stands in a row of the timeline, a part of its width from the left. */
async function clickRow(page, row, part = 0.1) {
  const box = await page.locator("canvas.spans").boundingBox();
  const top = await page.evaluate(() => document.querySelector(".spans-scroll").scrollTop);
  await page.mouse.click(box.x + box.width * part, box.y + (row + 0.5) * ROW - top);
}

/** The start of a span, as XTuner announced it. */
function announced(name, id) {
  const lines = readFileSync(`${xtuner(name).paths[0]}/live.jsonl`, "utf8").split("\n");
  return JSON.parse(lines.find((line) => line.includes(`"span_id":"${id}"`) && line.includes('"start"')));
}

/** The attributes of a finished span, as they stand in the file. */
function written(name, id) {
  const lines = readFileSync(`${xtuner(name).paths[0]}/traces.jsonl`, "utf8").split("\n");
  const spans = lines.filter((line) => line.includes(`"spanId":"${id}"`)).flatMap((line) => JSON.parse(line).resourceSpans.flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans)));
  return spans.find((span) => span.spanId === id);
}

test("a stuck sample says in what it is, since when, and how long that takes mostly", async () => {
  const live = xtuner("live");
  const [stuck] = live.expected.all.open_samples;
  const { current } = stuck;
  await serving(live, async (url) => {
    for (const dark of [false, true]) {
      await looking(`${url}#/sample?trace=${stuck.trace_id}&sample=${stuck.rollout_id}`, async (page) => {
        await painted(page);
        await picture(page, `sample-${dark ? "dark" : "light"}`);
        const alarm = await page.locator(".alarm-line").innerText();
        assert.match(alarm, new RegExp(`^Stuck: in ${current.stage} for ${Math.floor(current.age_ns / 60e9)} min ${Math.floor(current.age_ns / 1e9) % 60} s, \\d+\\.\\d× the limit of`));
        await page.locator(".alarm-line button", { hasText: current.stage }).click();
        await said(page, "span", current.span_id);
        await tells(page, current.span);
        const facts = await page.locator(".span-panel .facts").innerText();
        assert.match(facts, /open for/);
        assert.ok(facts.includes(current.span_id));
        const start = announced("live", current.span_id);
        for (const key of ["xtuner.group_id", "xtuner.rollout_id", "xtuner.task_name", "prompt.tokens"]) {
          const value = await page.locator(`.attributes > div[data-key="${key}"] dd`).innerText();
          assert.equal(value, String(start.attributes[key]), key);
        }
        await picture(page, `sample-panel-${dark ? "dark" : "light"}`);
      }, { dark });
    }
  });
});

test("spans are clicked, and keys move among them, zoom, and turn the view", async () => {
  const agent = xtuner("agent");
  const sample = agent.expected.per_sample.find((one) => one.finished_spans >= 10 && one.status === "failed");
  await serving(agent, (url) => looking(`${url}#/sample?trace=${sample.trace_id}&sample=${sample.rollout_id}`, async (page) => {
    await painted(page);
    await clickRow(page, 0);
    await tells(page, "agent_loop.run");
    await said(page, "span", await page.locator(".span-panel .facts code").innerText());
    const root = address(page).get("span");
    await page.keyboard.press("ArrowDown");
    await page.waitForFunction((root) => !location.hash.includes(root), root);
    const second = address(page).get("span");
    const span = written("agent", second);
    await tells(page, span.name);
    for (const { key, value } of span.attributes.filter(({ value }) => value.stringValue ?? value.intValue)) {
      assert.equal(await page.locator(`.attributes > div[data-key="${key}"] dd`).innerText(), String(value.stringValue ?? value.intValue), key);
    }
    await page.keyboard.press("ArrowUp");
    await said(page, "span", root);
    await page.keyboard.press("ArrowLeft");
    await said(page, "closed", root);
    await page.keyboard.press("ArrowRight");
    await said(page, "closed", null);
    await page.keyboard.press("ArrowRight");
    await said(page, "span", second);
    // To what failed, and close what tells of it.
    await page.keyboard.press("e");
    await said(page, "span", sample.error.span_id);
    await page.locator(".span-panel .message", { hasText: sample.error.message.slice(0, 30) }).waitFor();
    await page.keyboard.press("Escape");
    await page.locator(".span-panel").waitFor({ state: "hidden" });
    await said(page, "span", null);
    // Time.
    const wide = () => Number(address(page).get("to")) - Number(address(page).get("from"));
    let before = address(page);
    await page.keyboard.press("w");
    await moved(page, before);
    const once = wide();
    before = address(page);
    await page.keyboard.press("w");
    await moved(page, before);
    assert.ok(Math.abs(wide() / once - 0.7) < 0.01, "w shows seven tenths");
    before = address(page);
    await page.keyboard.press("d");
    await moved(page, before);
    assert.ok(Number(address(page).get("from")) > Number(before.get("from")), "d goes on");
    before = address(page);
    await page.keyboard.press("a");
    await moved(page, before);
    assert.ok(Number(address(page).get("from")) < Number(before.get("from")), "a goes back");
    before = address(page);
    await page.keyboard.press("s");
    await moved(page, before);
    assert.ok(Math.abs(wide() / once - 1) < 0.01, "s shows as much as before");
    await page.keyboard.press("0");
    await said(page, "from", null);
    // Searching.
    await page.keyboard.press("/");
    await page.keyboard.type("stage:tool_call");
    await page.locator(".found", { hasText: /^\d+ match/ }).waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("n");
    await page.locator(".span-panel h2", { hasText: "tool." }).waitFor();
    await said(page, "find", "stage:tool_call");
    // Views.
    await page.keyboard.press("v");
    await said(page, "view", "lanes");
    await picture(page, "sample-lanes");
    await page.keyboard.press("x");
    await said(page, "critical", "0");
  }));
});

test("an address brings the view back, and links lead to the group and the step", async () => {
  const agent = xtuner("agent");
  const sample = agent.expected.per_sample.find((one) => one.finished_spans >= 10);
  await serving(agent, (url) => looking(`${url}#/sample?trace=${sample.trace_id}&sample=${sample.rollout_id}`, async (page) => {
    await painted(page);
    await clickRow(page, 2);
    await page.keyboard.press("f");
    await page.waitForURL(/span=[0-9a-f]{16}.*from=/);
    await page.keyboard.press("v");
    await said(page, "view", "lanes");
    const [whole, name] = [page.url(), await told(page)];
    await page.reload();
    await painted(page);
    await tells(page, name);
    assert.equal(page.url(), whole);
    assert.equal(await page.locator(".switch .here").innerText(), "lanes");
    await page.waitForTimeout(400);
    assert.equal(page.url(), whole, "and it stays");
    await page.locator(".crumbs a", { hasText: "group" }).click();
    await page.waitForURL(new RegExp(`#/group\\?step=${sample.step}&group=${sample.group_id}$`));
    await page.locator(".lane-row").first().waitFor();
    await page.goBack();
    await page.locator(".crumbs a", { hasText: "step" }).click();
    await page.waitForURL(new RegExp(`#/step\\?step=${sample.step}$`));
    await page.locator(".flow").waitFor();
  }));
});

const BEGIN = 1784106000000000000n;

/** A line of a file with spans of one trace. */
const line = (spans) => `${JSON.stringify({ resourceSpans: [{ resource: { attributes: [{ key: "service.name", value: { stringValue: "engine" } }] }, scopeSpans: [{ spans }] }] })}\n`;

/** A span of that trace; an end of 0 leaves it open. */
const span = (id, parent, name, from, until, attributes = []) => ({
  traceId: "c".repeat(32), spanId: id.toString(16).padStart(16, "0"), ...(parent > 0 ? { parentSpanId: parent.toString(16).padStart(16, "0") } : {}), name,
  startTimeUnixNano: String(BEGIN + BigInt(from)), endTimeUnixNano: until === 0 ? "0" : String(BEGIN + BigInt(until)),
  attributes: attributes.map(([key, stringValue]) => ({ key, value: { stringValue } })),
});

test("a hundred thousand spans are drawn, and can be panned", async () => {
  const directory = mkdtempSync(join(tmpdir(), "stagetrace-large-"));
  const file = join(directory, "large.jsonl");
  const [turns, tokens] = [100, 998];
  const lines = [line([span(1, 0, "agent_loop.run", 0, turns * 1e9, [["rollout.id", "large"]])])];
  for (let turn = 0; turn < turns; turn++) {
    const own = 2 + turn * 1000;
    const spans = [span(own, 1, "llm.turn", turn * 1e9, turn * 1e9 + 998e6)];
    for (let token = 0; token < tokens; token++) spans.push(span(own + 1 + token, own, "decode_step", turn * 1e9 + token * 1e6, turn * 1e9 + token * 1e6 + 900_000));
    lines.push(line(spans));
  }
  const last = turns * (tokens + 1) + 1;
  lines.push(line(Array.from({ length: 100_000 - last }, (_, at) => span(200_000 + at, 1, "queue_wait", at * 1000, at * 1000 + 900))));
  writeFileSync(file, lines.join(""));
  await serving({ paths: [file] }, (url) => looking(`${url}#/sample?trace=${"c".repeat(32)}&sample=large`, async (page) => {
    await page.locator(".fact", { hasText: "100\u202f000" }).waitFor();
    await page.reload();
    await painted(page);
    const drawn = await page.evaluate(() => Math.round(performance.getEntriesByName("stagetrace drawn")[0].startTime));
    const frames = await page.evaluate(async () => {
      const target = document.querySelector("canvas.spans");
      const box = target.getBoundingClientRect();
      const wheel = (init) => target.dispatchEvent(new WheelEvent("wheel", { bubbles: true, cancelable: true, clientX: box.left + box.width * 0.7, clientY: box.top + 60, ...init }));
      for (let turn = 0; turn < 40; turn++) wheel({ ctrlKey: true, deltaY: -40 });
      const times = [];
      let before = performance.now();
      for (let turn = 0; turn < 60; turn++) {
        wheel({ deltaX: 40, deltaY: 0 });
        await new Promise(requestAnimationFrame);
        times.push(performance.now() - before);
        before = performance.now();
      }
      return times.sort((one, other) => one - other).map(Math.round);
    });
    console.log(`100000 spans: drawn ${drawn} ms after the page was asked for; panned at ${frames[30]} ms a frame, the slowest ${frames[59]} ms`);
    await page.waitForURL(/from=/);
    const before = address(page);
    await page.keyboard.press("d");
    await moved(page, before);
    assert.ok(Number(address(page).get("from")) > Number(before.get("from")));
    await picture(page, "sample-large");
  }));
  rmSync(directory, { recursive: true });
});

test("a sample that grows keeps what is selected, searched and seen", async () => {
  const directory = mkdtempSync(join(tmpdir(), "stagetrace-growing-"));
  const file = join(directory, "growing.jsonl");
  const put = (...spans) => appendFileSync(file, line(spans));
  put(span(1, 0, "run", 0, 0, [["rollout.id", "growing"]]), ...Array.from({ length: 60 }, (_, at) => span(2 + at, 1, `step ${at}`, at * 1e8, at * 1e8 + 9e7, [["place", `at ${at}`]])), span(100, 1, "decode", 7e9, 0));
  await serving({ paths: [file], now: String(BEGIN + 30_000_000_000n) }, (url) => looking(`${url}#/sample?trace=${"c".repeat(32)}&sample=growing`, async (page) => {
    await painted(page);
    await page.locator(".open-line", { hasText: "In decode for 23.0 s" }).waitFor();
    // What it is in is in sight, far below; its first children are not.
    await page.waitForFunction(() => document.querySelector(".spans-scroll").scrollTop > 0);
    const scroll = await page.evaluate(() => document.querySelector(".spans-scroll").scrollTop);
    await clickRow(page, Math.ceil(scroll / ROW) + 3);
    const name = await told(page);
    await tells(page, name);
    await page.locator(".attributes dd", { hasText: `at ${name.replace("step ", "")}` }).waitFor();
    await page.keyboard.press("w");
    await page.waitForURL(/from=/);
    const before = page.url();
    put(...Array.from({ length: 500 }, (_, at) => span(1000 + at, 100, `token ${at}`, 8e9 + at * 1e7, 8e9 + at * 1e7 + 9e6)));
    await page.locator(".fact", { hasText: "562" }).waitFor();
    assert.equal(await told(page), name, "the same span is selected");
    assert.equal(page.url(), before, "the same time is seen");
    assert.equal(await page.evaluate(() => document.querySelector(".spans-scroll").scrollTop), scroll, "the same rows are seen");
    await page.keyboard.press("/");
    await page.keyboard.type('"token 7"');
    await page.keyboard.press("Enter");
    await page.locator(".span-panel h2", { hasText: /^token 7$/ }).waitFor();
    put(span(100, 1, "decode", 7e9, 25e9), span(1, 0, "run", 0, 26e9, [["rollout.id", "growing"]]));
    await page.locator(".sample-head .status", { hasText: "completed" }).waitFor();
    assert.equal(await told(page), "token 7");
    assert.equal(await page.locator(".toolbar input[type=search]").inputValue(), '"token 7"');
  }));
  rmSync(directory, { recursive: true });
});
