// A run of several agents is watched, paused, steered and ended in the browser; the daemon goes away and comes back.
import { scenario, shot, want, until, accessible, advised, ask, origin } from './browser.mjs';

import { cost, count } from '../src/lib/format.js';

const program = process.env.RNIX_TEST_PROGRAM; // which "./test" builds; without it no advice is followed
const { parent, worker, listener, hostile } = JSON.parse(process.env.RNIX_PIDS);

await scenario(async ({ page, problems }) => {
  const row = (pid) => page.locator(`.row[data-pid="${pid}"]`);
  const step = async (pid) => Number((await row(pid).locator('.step').textContent()).split('/')[0]);
  const word = (pid) => row(pid).locator('.badge').textContent();
  const press = (pid, name) => row(pid).getByRole('button', { name: new RegExp('^' + name) }).click();
  for (const pid of [parent, worker, listener, hostile]) await row(pid).waitFor();

  // It lives.
  const first = await step(worker);
  await until(async () => (await step(worker)) > first, 'the worker takes a step');

  // What an agent says is text.
  const what = await row(hostile).locator('.what').textContent();
  want(what.includes('<script>') && what.includes('‹U+202E›') && what.includes('␛[31m'), 'hostile text is shown as ' + what);
  want((await page.evaluate(() => window.pwned)) === undefined, 'hostile text ran');
  want((await page.locator('main script, main img, main iframe').count()) === 0, 'hostile text became markup');
  await shot(page, 'live');
  await accessible(page, 'a live run');

  // Pause: its time and its steps stand still.
  await press(worker, 'Pause');
  await until(async () => (await word(worker)).includes('paused'), 'it is paused');
  const [s, stood] = [await step(worker), await row(worker).locator('.elapsed').textContent()];
  await page.waitForTimeout(1500);
  want((await step(worker)) === s, 'it takes steps while it is paused');
  want((await row(worker).locator('.elapsed').textContent()) === stood, 'its time goes on while it is paused');
  want((await ask('state ' + worker)) === 'suspended', 'the daemon knows nothing of the pause');
  await press(worker, 'Resume');
  await until(async () => (await step(worker)) > s, 'it goes on');

  // Steer.
  await press(listener, 'Steer');
  await page.getByRole('textbox', { name: 'What it should know' }).fill('go on now');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('.toast', { hasText: 'Sent' }).waitFor();
  await until(async () => (await row(listener).count()) === 0, 'the steered one ends');

  // What is refused is said.
  await page.evaluate(() => { window.real = fetch; window.fetch = (u, o) => window.real(u, u.endsWith('/steer') ? { ...o, body: '{"target":"999999","text":"x"}' } : o); });
  await press(worker, 'Steer');
  await page.getByRole('textbox', { name: 'What it should know' }).fill('x');
  await page.getByRole('button', { name: 'Send' }).click();
  await page.locator('dialog .problem', { hasText: '999999' }).waitFor();
  want((await page.getByRole('textbox', { name: 'What it should know' }).inputValue()) === 'x', 'a refusal loses what was to be said');
  await page.evaluate(() => { window.fetch = window.real; });
  await page.getByRole('button', { name: 'Cancel' }).click();

  // End the parent with all below it; not without being asked.
  await press(parent, 'End');
  await page.getByRole('button', { name: 'Cancel' }).click();
  want((await ask('state ' + parent)) === 'running', 'it was ended without a yes');
  await press(parent, 'End');
  await page.getByRole('button', { name: 'End it' }).click();
  await until(async () => (await row(parent).count()) === 0 && (await row(worker).count()) === 0, 'parent and worker are gone');
  await page.getByLabel('ended ones too').check();
  await until(async () => (await word(parent).catch(() => '')).includes('cancelled'), 'the ended ones are shown');
  await shot(page, 'ended');

  // The same numbers as ps, at the same place in the log.
  const ps = await until(async () => {
    const at = await page.locator('.totals').getAttribute('data-seq');
    const r = JSON.parse(await ask('ps'));
    return String(r.seq) === at && r;
  }, 'the page is where ps is');
  const totals = () => page.locator('.totals dd').allTextContents();
  const t = ps.totals;
  await until(async () => (await totals())[3] === String(ps.ended.failed), 'the failed ones are counted: ' + await totals());
  const cells = (await totals()).slice(0, 4);
  const same = [t.running, t.waiting, t.suspended, ps.ended.failed].map(String);
  want(ps.ended.failed === ps.procs.filter((p) => p.exit?.code).length && ps.ended.failed > 0, 'failed are ' + JSON.stringify(ps.ended));
  want(JSON.stringify(cells) === JSON.stringify(same), `totals are ${cells}, and ps has ${same}`);
  await until(async () => /^~?[1-9]/.test((await totals())[4]), 'the tokens of today are those of what has ended, too');
  for (const p of ps.procs) {
    const shown = await Promise.all(['step', 'tokens', 'cost'].map((c) => row(p.pid).locator('.' + c).textContent()));
    const wanted = [p.step + (p.max_steps ? '/' + p.max_steps : ''), (p.estimated ? '~' : '') + count(p.tokens_used), cost(p)];
    want(JSON.stringify(shown) === JSON.stringify(wanted), `PID ${p.pid} has ${shown}, and in ps ${wanted}`);
  }

  // What the page advises is a command, and does what it says.
  if (program) {
    await page.goto(origin + '/#/compose');
    await page.locator('main', { hasText: 'No workflow was run' }).waitFor();
    await advised(page, 'main', /in a terminal: (rnix compose up -f FILE)/, (c) => c.replace('FILE', 'flow.yaml -d --name flow'));
    await page.getByRole('link', { name: 'flow', exact: true }).waitFor();
    await page.goto(origin + '/');
    await page.locator('.wire.live').waitFor();
  }

  // The daemon goes away, and comes back: so does the page.
  problems.length = 0;
  await ask('stop');
  await page.locator('.away', { hasText: 'rnix daemon start' }).waitFor();
  await shot(page, 'away');
  await accessible(page, 'without a daemon');
  if (!program) await ask('start');
  else await advised(page, '.away', /Start it in a terminal: (rnix daemon start)/);
  await page.locator('.wire.live').waitFor();
  await until(async () => (await page.locator('.away').count()) === 0, 'the page says no more that the daemon is away');
  problems.length = 0; // that nobody answered for a while is told on the console
});
