// What the scenarios share: a browser that was let in, and a record of everything that went wrong in it.
import { chromium } from 'playwright-core';
import { readFile, mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';

export const link = process.env.RNIX_LINK;
export const origin = new URL(link || 'http://127.0.0.1/').origin;
const shots = process.env.RNIX_SHOTS;

// launching is how a browser is started. The name in it is one that a page of somebody else could have: see security.mjs.
export const launching = {
  executablePath: process.env.RNIX_CHROMIUM,
  args: ['--no-sandbox', '--disable-dev-shm-usage', '--host-resolver-rules=MAP evil.example 127.0.0.1'],
};

// patience is how long, in milliseconds, what has to come may take: others may have the processor, too. No scenario judges how fast the machine is.
export const patience = 240000;

// scenario runs f with a context in which the link was opened, in the browser of RNIX_BROWSER or in one of its own, and fails if a page has thrown, or has been refused something by
// the policy, that f did not take out of problems.
export async function scenario(f, { context: more = {}, enter = true } = {}) {
  const browser = await (process.env.RNIX_BROWSER ? chromium.connect(process.env.RNIX_BROWSER) : chromium.launch(launching));
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...more });
    context.setDefaultTimeout(patience);
    const problems = [];
    context.on('weberror', (e) => problems.push('thrown: ' + (e.error().stack || e.error())));
    context.on('console', (m) => { if (m.type() === 'error') problems.push('console: ' + m.text() + ' ' + m.location().url); });
    const page = await context.newPage();
    if (enter) {
      await page.goto(link);
      await page.waitForSelector('header');
    }
    await f({ browser, context, page, problems }).catch(async (err) => { console.error([...problems, await state(context)].join('\n')); throw err; });
    process.stdin.destroy(); // nothing is asked any more
    if (problems.length) throw new Error('the page had problems:\n' + problems.join('\n'));
  } finally {
    await browser.close();
  }
}

// state says what the pages of a context show, for who has to find out why something never came.
async function state(context) {
  const all = await Promise.all(context.pages().map(async (page) => {
    const text = await Promise.race([
      page.evaluate(() => [...document.querySelectorAll('dialog')].map((d) => (d.open ? 'open' : 'closed') + ' dialog: ' + d.innerText).join('\n') + '\n' + document.body.innerText),
      new Promise((r) => setTimeout(r, 5000, 'it does not answer')),
    ]).catch((err) => err.message);
    return `the page ${page.url()} shows:\n${text.slice(0, 4000)}`;
  }));
  return all.join('\n\n');
}

// shot keeps a picture, if somebody wants to look at it.
export async function shot(page, name) {
  if (!shots) return;
  await mkdir(shots, { recursive: true });
  await page.screenshot({ path: path.join(shots, name + '.png') });
}

// read waits until everything that the page has asked for is there.
export async function read(page) {
  await page.waitForSelector('main h1', { state: 'attached' });
  await until(async () => (await page.locator('p.empty[role=status]').count()) === 0, page.url() + ' is read');
}

// toasts returns what says whether a short message with a text has been shown since then: a page that is kept waiting may have taken it away before anybody looks.
export async function toasts(page) {
  await page.evaluate(() => {
    window.toasts = [];
    new MutationObserver((all) => all.forEach((m) => m.addedNodes.forEach((el) => { if (el.matches?.('.toast')) window.toasts.push(el.textContent); }))).observe(document.body, { childList: true, subtree: true });
  });
  return (text) => until(async () => (await page.evaluate(() => window.toasts)).some((t) => t.includes(text)), text + ' is said');
}

export function want(ok, text) {
  if (!ok) throw new Error(text);
}

// until waits for f to return something true, and returns that. text says what never came; as a function it says that at the end.
export async function until(f, text, ms = patience) {
  const end = Date.now() + ms;
  for (;;) {
    const v = await f();
    if (v) return v;
    if (Date.now() > end) throw new Error('never: ' + (typeof text === 'function' ? await text() : text));
    await new Promise((r) => setTimeout(r, 50));
  }
}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// ask asks the test that runs us, and returns its answer.
export async function ask(word) {
  process.stdout.write('@' + word + '\n');
  return (await answers.next()).value;
}

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

// sessions has the one session of each page in which axe runs: its world outlives a run, so that a document reads the source once.
const sessions = new WeakMap();

// accessible fails if axe finds something serious on the page as it is.
export async function accessible(page, where) {
  // Into a world of its own: the page's policy would let no such script in.
  if (!sessions.has(page)) sessions.set(page, await page.context().newCDPSession(page));
  const cdp = sessions.get(page);
  const { frameTree } = await cdp.send('Page.getFrameTree');
  const { executionContextId: contextId } = await cdp.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id, worldName: 'axe' });
  const run = async (expression) => {
    const r = await cdp.send('Runtime.evaluate', { expression, contextId, awaitPromise: true, returnByValue: true });
    if (r.exceptionDetails) throw new Error('axe: ' + (r.exceptionDetails.exception?.description || r.exceptionDetails.text));
    return r.result.value;
  };
  if (await run('typeof axe') === 'undefined') await run(axeSource + '; true');
  const found = JSON.parse(await run(`axe.run(document, { resultTypes: ['violations'] }).then((r) => JSON.stringify(r.violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.slice(0, 4).map((n) => n.html.slice(0, 200) + ' ' + (n.failureSummary || '').slice(0, 200)) }))))`));
  const bad = found.filter((v) => v.impact === 'serious' || v.impact === 'critical');
  want(bad.length === 0, `axe finds on ${where}: ${JSON.stringify(bad, null, 1)}`);
  return found;
}

// forms are the widths and colours in which a page is looked at: in the gate each once, in a soak and for pictures each with each.
export const forms = [['light', 1280, 'light'], ['phone-dark', 390, 'dark'], ['dark', 1280, 'dark'], ['phone', 390, 'light']].slice(0, process.env.RNIX_SOAK || shots ? 4 : 2);

// inForms looks at a page in its forms: as it is then it is kept as a picture, axe finds nothing serious, and nothing has to be scrolled sideways. first is what is
// done before, in each. It is as wide as a desktop and light afterwards.
export async function inForms(page, name, first = () => page.waitForTimeout(100)) {
  for (const [form, width, colorScheme] of forms) {
    await page.setViewportSize({ width, height: width < 760 ? 844 : 800 });
    await page.emulateMedia({ colorScheme });
    await first(form);
    await shot(page, `${name}-${form}`);
    await accessible(page, `${name} (${form})`);
    want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} (${form}) has to be scrolled sideways`);
  }
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.emulateMedia({ colorScheme: 'light' });
}

// advised finds a command that a page prints at sel, and has the test run it as a person does who pastes it. put completes it.
export async function advised(page, sel, pattern, put = (c) => c) {
  const place = page.locator(sel, { hasText: pattern });
  await place.waitFor();
  const text = await place.innerText();
  const found = text.match(pattern);
  want(found, `no ${pattern} in ${text}`);
  const said = await ask('run ' + put(found[1]));
  want(said === 'done', `${found[1]}: ${said}`);
}
