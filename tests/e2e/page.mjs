// Opens the status page of a service in Chromium, in both themes, at the width of a phone and of a desk.
// usage: TANDEM_TOKEN=... node page.mjs ADDRESS FOLDER
// The service wants the token, and proves all the while. Screenshots go to FOLDER. Fails with what is wrong, or prints "ok".
import { chromium } from "playwright-core";
import { execFileSync } from "node:child_process";
import assert from "node:assert/strict";
import path from "node:path";

const [address, folder] = process.argv.slice(2);
const token = process.env.TANDEM_TOKEN;

function browser() {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    try {
      return execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim();
    } catch {
      // the next one
    }
  }
  throw new Error("there is no Chromium; run: sh scripts/install-chromium.sh");
}

/// The contrast of two colours, as WCAG 2 defines it.
function contrast(a, b) {
  const luminance = (colour) => {
    const parts = colour.match(/\d+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, bl] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * bl;
  };
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

// No sandbox: it takes rights that containers lack, and the page is our own.
const instance = await chromium.launch({ executablePath: browser(), args: ["--no-sandbox", "--disable-gpu"] });

/// A page that has the token, with what went wrong in it and what it asked for.
async function open(colorScheme, width, height) {
  const context = await instance.newContext({ colorScheme, viewport: { width, height } });
  const page = await context.newPage();
  const seen = { wrong: [], asked: [] };
  page.on("pageerror", (error) => seen.wrong.push(String(error)));
  page.on("console", (message) => message.type() === "error" && !/ 401 /.test(message.text()) && seen.wrong.push(message.text()));
  page.on("request", (request) => seen.asked.push(request.url()));
  await page.goto(`${address}/`);
  await page.waitForSelector("#ask:not([hidden])");
  assert.match(await page.textContent("#state"), /wants a token/);
  await page.fill("#token", token);
  await page.click("#form button");
  await page.waitForFunction(() => document.getElementById("state").textContent === "ready");
  await page.waitForSelector("#ask", { state: "hidden" });
  return { page, seen, context };
}

const backs = {};
for (const theme of ["light", "dark"]) {
  for (const [name, width, height] of [["phone", 390, 844], ["desk", 1280, 900]]) {
    const { page, seen, context } = await open(theme, width, height);
    const facts = await page.evaluate(() => {
      const style = (at) => getComputedStyle(at);
      const card = style(document.querySelector("section")).backgroundColor;
      // Nothing has failed.
      const failed = document.createElement("p");
      failed.className = "bad";
      document.querySelector("section").append(failed);
      const texts = ["h2", ".soft", "#queue .good", "p.bad", "#tiles b", "svg text", "th", "td"];
      const colour = (at) => (at instanceof SVGElement ? style(at).fill : style(at).color);
      return {
        wide: document.documentElement.scrollWidth,
        back: style(document.body).backgroundColor,
        colours: texts.map((of) => [of, colour(document.querySelector(of)), card]),
        tiles: [...document.querySelectorAll("#tiles b")].map((at) => at.textContent),
        drawn: Object.fromEntries(["throughput", "latency", "depth", "timeline"].map((id) => [
          id, document.querySelectorAll(`#${id} rect, #${id} path`).length,
        ])),
        // Of two plots in a row, or one below the other.
        sides: [...document.querySelectorAll("section")].slice(1, 3).map((at) => at.getBoundingClientRect().top),
        // Lines of a cell: a word of a table is not broken.
        lines: [...document.querySelectorAll("#workers td")].slice(0, 2).map((at) => {
          const range = document.createRange();
          range.selectNodeContents(at);
          return range.getClientRects().length;
        }),
        workers: document.getElementById("workers").textContent,
        keys: document.getElementById("keys").textContent,
      };
    });
    const what = `${theme}, ${name}`;
    assert.ok(facts.wide <= width, `${what}: ${facts.wide} px wide`);
    for (const [of, text, card] of facts.colours) {
      assert.ok(contrast(text, card) >= 4.5, `${what}: ${of} has the contrast ${contrast(text, card).toFixed(2)}`);
    }
    assert.ok(facts.tiles.length === 6 && facts.tiles[5] === "1 of 1", `${what}: ${facts.tiles}`);
    for (const [id, count] of Object.entries(facts.drawn)) assert.ok(count > 0, `${what}: ${id} is empty`);
    assert.equal(facts.sides[0] === facts.sides[1], name === "desk", `${what}: ${facts.sides}`);
    assert.deepEqual(facts.lines, [1, 1], what);
    assert.match(facts.workers, /0:cpu.*ready/);
    assert.match(facts.keys, /bn254/);
    assert.deepEqual(seen.wrong, [], what);
    assert.deepEqual(seen.asked.filter((url) => !url.startsWith(`${address}/`)), [], what);
    backs[theme] = facts.back;
    await page.screenshot({ path: path.join(folder, `${theme}-${name}.png`), fullPage: true });
    await context.close();
  }
}
assert.notEqual(backs.light, backs.dark);

// The plots move, and the number of proofs grows.
const { page, context } = await open("light", 1280, 900);
const look = () => page.evaluate(() => ({
  path: document.querySelector("#latency path").getAttribute("d"),
  timeline: document.getElementById("timeline").innerHTML,
  done: parseInt(document.querySelector("#queue .good").textContent, 10),
}));
const before = await look();
await page.waitForFunction((before) => {
  const done = parseInt(document.querySelector("#queue .good").textContent, 10);
  return done > before.done && document.querySelector("#latency path").getAttribute("d") !== before.path;
}, before, { timeout: 20000 });
assert.notEqual((await look()).timeline, before.timeline);

// A service that has gone is told.
await context.setOffline(true);
await page.waitForFunction(() => document.getElementById("state").textContent === "the service does not answer");
await context.setOffline(false);
await page.waitForFunction(() => document.getElementById("state").textContent === "ready");

// What comes from the service is text.
const hostile = `<img src=x onerror="document.title='run'"><script>document.title='run'</script>`;
await page.route("**/v1/overview", async (route) => {
  const reply = await route.fetch();
  const data = await reply.json();
  data.workers[0].trouble = data.workers[0].device = data.keys[0].name = data.attempts[0].key = data.version = hostile;
  data.workers[0].ready = false;
  await route.fulfill({ response: reply, json: data });
});
await page.waitForFunction((hostile) => document.getElementById("workers").textContent.includes(hostile), hostile);
assert.deepEqual(await page.evaluate(() => [document.querySelectorAll("img").length, document.querySelectorAll("script").length, document.title]), [0, 1, "Tandem"]);
assert.equal(await page.textContent("#state"), "no worker is ready");

// Another token that is none: it is asked for again.
await page.unroute("**/v1/overview");
await page.evaluate(() => sessionStorage.setItem("token", "tandem_0_0"));
await page.reload();
await page.waitForSelector("#ask:not([hidden])");
await instance.close();
console.log("ok");
