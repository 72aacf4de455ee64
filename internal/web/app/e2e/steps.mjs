// The steps of a long history: it opens at once, what is scrolled to is read, a step that nobody has read can be led to, and all are searched.
import { scenario, shot, want, until, read, accessible, origin } from './browser.mjs';

const id = process.env.RNIX_ID, steps = Number(process.env.RNIX_STEPS);

await scenario(async ({ page, problems }) => {
  const sizes = [];
  page.on('response', async (r) => { if (r.url().includes('list_steps')) sizes.push((await r.body().catch(() => '')).length); });
  const list = page.locator('.inspector .rows');
  const row = (n) => page.locator('[role=option]', { hasText: new RegExp(`^${n} reads ${n}$`) });
  const heading = () => page.locator('.step h2').innerText();
  const shows = async (n) => {
    await until(async () => new RegExp(`^Step ${n}\\s`).test(await heading()), `step ${n} is shown, and not ${await heading()}`);
    await page.locator('.step', { hasText: `answer ${n}` }).waitFor();
    await page.locator('.step .box', { hasText: 'some text of a tool' }).first().waitFor();
    await row(n).waitFor();
    want((await row(n).getAttribute('aria-selected')) === 'true', `step ${n} is not the chosen one of the list`);
  };
  const began = Date.now();
  await page.goto(`${origin}/#/process/${id}/steps`);
  await shows(steps);
  console.log(`${steps} steps are there after ${Date.now() - began} ms`);
  await shot(page, 'steps-long');
  await accessible(page, 'the steps of a long history');

  // Up, a little and far: what comes into sight is read.
  await list.evaluate((el) => { el.scrollTop -= 300 * 30; });
  await row(steps - 300).waitFor();
  await list.evaluate((el) => { el.scrollTop = 0; });
  await row(1).waitFor();
  await row(1).click();
  await shows(1);
  want(await page.getByRole('button', { name: 'Previous' }).isDisabled(), 'there is a step before the first');
  await page.keyboard.press('ArrowRight');
  await shows(2);

  // A link to a step that nobody has read, and from there on.
  const middle = steps / 2;
  await page.goto(`${origin}/#/process/${id}/steps?step=${middle}`);
  await shows(middle);
  await page.keyboard.press('ArrowLeft');
  await shows(middle - 1);
  await page.getByRole('button', { name: 'Fork from here' }).click();
  await page.locator('dialog', { hasText: String(middle - 1) }).waitFor();
  await page.keyboard.press('Escape');

  // A search goes through all of them, in both directions and around.
  const needle = Math.floor(steps / 3);
  const search = page.getByRole('searchbox', { name: 'Search in the steps' });
  await search.fill('the needle');
  await search.press('Enter');
  await shows(needle);
  await search.press('Shift+Enter');
  await page.getByText('Only this step has it.').waitFor();
  await search.fill('no such text anywhere');
  await page.getByRole('button', { name: 'Find' }).click();
  await page.getByText('No step has it.').waitFor();
  await shot(page, 'steps-search');
  await accessible(page, 'a search that finds nothing');
  want(new RegExp(`^Step ${needle}\\s`).test(await heading()), 'a search that finds nothing leads away');

  // One that does not exist is said not to.
  want(problems.length === 0, problems.join('\n'));
  await page.goto(`${origin}/#/process/${id}/steps?step=${steps + 5}`);
  await page.locator('.step .problem', { hasText: String(steps + 5) }).waitFor();
  problems.length = 0; // that it was refused is told on the console
  await page.getByRole('button', { name: 'Previous' }).click();
  await shows(steps);

  await page.setViewportSize({ width: 390, height: 844 });
  await page.goto(`${origin}/#/process/${id}/steps?step=${middle}`);
  await shows(middle);
  want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it has to be scrolled sideways on a phone');
  await shot(page, 'steps-long-phone');
  await read(page);
  await accessible(page, 'the steps on a phone');
  want(Math.max(...sizes) < 200000, 'an answer of list_steps has ' + Math.max(...sizes) + ' bytes');
  console.log(`${sizes.length} answers, the largest of ${Math.max(...sizes)} bytes`);
});
