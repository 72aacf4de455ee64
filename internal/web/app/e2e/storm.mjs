// Five thousand events and as many changed rows a second: the page stays usable, and its memory flat.
import { scenario, shot, want, until, ask, link } from './browser.mjs';

const seconds = Number(process.env.RNIX_STORM_SECONDS);

const settles = 30000; // milliseconds that memory may take to come down after the storm

await scenario(async ({ page, context }) => {
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  await page.goto(link);
  await page.locator('.row[data-pid]').first().waitFor(); // a handle would hold the row for ever
  await ask('storm'); // where it does not blow already, it begins
  const look = async () => {
    await cdp.send('HeapProfiler.collectGarbage');
    const m = Object.fromEntries((await cdp.send('Performance.getMetrics')).metrics.map((x) => [x.name, x.value]));
    return { heap: m.JSHeapUsedSize / 1e6, nodes: m.Nodes, listeners: m.JSEventListeners, busy: m.TaskDuration, at: m.Timestamp };
  };
  await page.waitForTimeout(3000);
  const rows = await page.locator('.row[data-pid]').count();
  want(rows < 100, `${rows} rows exist, of which most are not seen`);
  const before = await look();
  await page.evaluate(() => {
    window.gaps = [];
    let last = performance.now();
    const frame = (now) => { window.gaps.push(now - last); last = now; requestAnimationFrame(frame); };
    requestAnimationFrame(frame);
  });
  const slow = [];
  const end = Date.now() + seconds * 1000;
  for (let n = 0; Date.now() < end; n++) {
    // What a person does: types, scrolls, asks.
    const from = Date.now();
    await page.getByLabel('Search processes').fill(n % 2 ? 'needle' : '');
    await until(async () => ((await page.locator('.row[data-pid]').count()) < 10) === Boolean(n % 2), 'the search answers');
    slow.push(Date.now() - from);
    if (n % 2 === 0) await page.locator('.rows').evaluate((el, top) => { el.scrollTop = top; }, (n * 997) % 60000);
    await page.waitForTimeout(500);
  }
  let after = await look();
  const worked = Math.round(100 * (after.busy - before.busy) / (after.at - before.at));
  const gaps = (await page.evaluate(() => window.gaps)).sort((a, b) => a - b);
  slow.sort((a, b) => a - b);
  // What counts is what stays: on a busy machine much that nobody holds is not collected yet. What is held never comes down.
  const flat = (m) => m.heap < before.heap * 1.5 + 10 && m.nodes < before.nodes * 2 + 2000;
  const over = Date.now() + settles;
  while (!flat(after) && Date.now() < over) {
    await page.waitForTimeout(500);
    after = await look();
  }
  const part = (list, p) => Math.round(list[Math.floor((list.length - 1) * p)]);
  console.log(`storm of ${seconds} s: ${gaps.length} frames (${Math.round(gaps.length / seconds)}/s), between two 50% ${part(gaps, 0.5)} ms, 95% ${part(gaps, 0.95)} ms, most ${part(gaps, 1)} ms; ` +
    `a search answers within 50% ${part(slow, 0.5)} ms, most ${part(slow, 1)} ms; main thread busy ${worked} %; ` +
    `heap ${before.heap.toFixed(1)} -> ${after.heap.toFixed(1)} MB, nodes ${before.nodes} -> ${after.nodes}, listeners ${before.listeners} -> ${after.listeners}`);
  await ask('calm'); // and is over
  await shot(page, 'storm');
  want(after.heap < before.heap * 1.5 + 10, `the heap grows from ${before.heap} to ${after.heap} MB`);
  want(after.nodes < before.nodes * 2 + 2000, `there are ${after.nodes} nodes, and were ${before.nodes}`);
  await until(async () => (await page.locator('.wire.live').count()) === 1, 'the page is live, as before');
}, { enter: false });
