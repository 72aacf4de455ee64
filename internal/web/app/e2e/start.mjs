// A person starts agents from the page: what is wrong stands beside its field, several models stand side by side, and work is merged.
import { scenario, shot, want, until, accessible, advised, ask, origin, inForms } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  const field = (name) => page.locator(`[data-field=${name}]`);
  const put = (name, text) => field(name).locator('input, textarea').first().fill(text);
  const start = page.getByRole('button', { name: /^Start/ });
  const text = () => page.locator('main').innerText();

  await page.getByRole('link', { name: 'Start', exact: true }).click();
  await field('agent').locator('option', { hasText: 'assistant' }).waitFor({ state: 'attached' });
  want((await field('cwd').locator('input').getAttribute('placeholder')).includes('/'), 'the page does not say where agents are started');
  await inForms(page, 'start');

  // What is wrong, before anything is asked and as the daemon says it.
  await page.getByText('More', { exact: true }).click();
  await put('tokens', 'many');
  await put('usd', 'a dollar');
  await put('timeout', 'soon');
  await start.click();
  for (const [name, words] of [['intent', 'Say what is to be done'], ['tokens', 'such as 50000, 200k'], ['usd', 'such as 2.50'], ['timeout', '90s or 10m']]) await field(name).locator('.error', { hasText: words }).waitFor();
  want(await page.evaluate(() => document.activeElement.name) === 'intent', 'the first mistake has not the focus');
  await inForms(page, 'start-errors');
  for (const name of ['usd', 'timeout']) await put(name, '');
  await put('tokens', '200k');
  await put('intent', 'write a poem <b>now</b>');
  const refused = async (name, value, words) => {
    await put(name, value);
    await start.click();
    await field(name).locator('.error', { hasText: words }).waitFor();
    await put(name, '');
  };
  await refused('cwd', '/no/such/place', '/no/such/place');
  await refused('hosts', 'bad/', 'is no host');
  await field('tree').getByRole('checkbox').check();
  await refused('branch', 'main', 'main');
  want((await field('intent').locator('textarea').inputValue()) === 'write a poem <b>now</b>', 'a refusal loses the task');
  problems.length = 0; // the refusals are told on the console
  await put('branch', '');
  await page.route('**/api/v1/spawn', () => {}, { times: 1 }); // no answer comes before the page is loaded again
  await start.click();
  await page.getByRole('button', { name: 'Starting …' }).waitFor();
  await page.reload();
  await page.locator('.start .problem', { hasText: 'look at the overview before you start it again' }).waitFor();
  await page.reload();
  await until(async () => (await field('intent').locator('textarea').inputValue()) === 'write a poem <b>now</b>', 'a reload loses the task');
  want(!(await field('tree').getByRole('checkbox').isChecked()), 'the box of the work tree ticks itself');
  await field('tree').getByRole('checkbox').check();

  // Two models, each in a work tree, side by side.
  await put('model', 'claude-sonnet-4-5, claude-haiku-4-5');
  await page.getByRole('button', { name: 'Start 2 agents' }).click();
  await page.locator('.one').nth(1).waitFor();
  await until(async () => (await page.locator('.one .badge', { hasText: 'done' }).count()) === 2, 'both are done');
  await until(async () => (await page.locator('.one .files li', { hasText: 'poem.txt' }).count()) === 2, 'the files of both are there');
  want((await ask('budget')) === '200000 200000', 'the budgets are ' + await ask('budget'));
  await inForms(page, 'compare');
  await page.locator('.one h2 a').first().click();
  await page.locator('.head').getByRole('link', { name: 'Side by side' }).click();
  await until(async () => (await page.locator('.one').count()) === 2, 'a process leads to those with the same task');
  await page.getByRole('button', { name: 'Keys' }).click(); // a dialog does not stay over another page
  await page.locator('dialog[open]').waitFor();
  await page.goto(origin + '/#/compare');
  await page.locator('dialog[open]').waitFor({ state: 'detached' });
  await page.getByRole('link', { name: 'write a poem <b>now</b>' }).click();
  await until(async () => (await page.locator('.one').count()) === 2, 'the choice leads to both');

  // The work of one is merged, with a preview; that of the other meets it, and nothing is lost. The commands do what they say.
  const [one, two] = JSON.parse(await ask('uuids'));
  await page.goto(`${origin}/#/process/${one}/files`);
  await page.getByRole('button', { name: 'Merge…' }).click();
  const dialog = page.locator('dialog');
  await dialog.locator('.files').getByText('poem.txt').waitFor();
  await dialog.locator('.problem', { hasText: /PID \d+.* has changed poem\.txt, too/ }).waitFor();
  await shot(page, 'merge');
  await accessible(page, 'the preview of a merge');
  await dialog.getByRole('button', { name: 'Cancel' }).click();
  want((await ask('read poem.txt')) === '', 'it was merged without a yes');
  await page.getByRole('button', { name: 'Merge…' }).click();
  await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.locator('.done-note', { hasText: 'Merged' }).waitFor();
  want((await ask('read poem.txt')).startsWith('a poem'), 'it was not merged');
  await page.getByText('In a terminal', { exact: true }).click();
  await inForms(page, 'tree');
  const undo = await page.locator('.done-note code').last().textContent();
  await page.reload(); // it is known then that nothing is left to be merged
  await page.locator('.done-note', { hasText: 'has all of it already' }).waitFor();
  want((await page.getByRole('button', { name: 'Merge…' }).count()) === 0, 'what is merged is offered again');
  await page.goto(`${origin}/#/process/${two}/files`);
  await page.getByRole('button', { name: 'Merge…' }).click();
  await dialog.getByRole('button', { name: 'Merge', exact: true }).click();
  await page.locator('.toast.bad', { hasText: 'merge by hand' }).getByRole('button').click();
  problems.length = 0; // the refusal is told on the console
  want((await ask('run ' + undo)) === 'done', undo + ' fails');
  want((await ask('read poem.txt')) === '', 'the merge was not undone');
  await page.getByText('In a terminal', { exact: true }).click();
  const command = async (what) => page.locator('.commands li', { hasText: what }).locator('code').textContent();
  const byHand = await command('by hand');
  want((await ask('run ' + byHand)) === 'done', byHand + ' fails');
  want((await ask('read poem.txt')).startsWith('a poem'), 'it was not merged by hand');
  want((await ask('run ' + await command('push its branch'))) === 'done', 'its branch cannot be pushed');
  if (process.env.RNIX_TEST_PROGRAM) await advised(page, '.commands', /(rnix worktree pr \d+)/, (c) => `${c} | grep 'push -u origin'`);

  // A side whose work tree was removed says so calmly, with its branch and its commits.
  want((await ask('remove ' + one)) === 'done', 'the work tree cannot be removed');
  await page.goto(`${origin}/#/compare?of=${one},${two}`);
  await page.locator('.one .removed', { hasText: /Its work tree was removed\. Its branch .+ is still in .+, with 1 commit at [0-9a-f]{10}\./ }).waitFor();
  want((await page.locator('.one .problem[role=alert]').count()) === 0, 'the card shows an error: ' + (await page.locator('.one').allInnerTexts()));
  await page.locator('.one summary', { hasText: 'What was kept of its files' }).click();
  await page.locator('.one code', { hasText: /^git --git-dir=.* for-each-ref refs\/rnix\/rescue\// }).waitFor();
  await inForms(page, 'compare-removed');
});
