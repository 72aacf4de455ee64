// A text of five megabytes in one line, with everything that texts can do to a browser.
import { scenario, shot, want, accessible } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  await page.waitForSelector('[data-pid="1"]');
  await page.locator('.row[data-pid="1"]').getByRole('button', { name: /^Pause/ }).click();
  const toast = page.locator('.toast.bad');
  await toast.waitFor();
  const shown = await toast.textContent();
  want(shown.length < 2000, `${shown.length} characters are shown at once`);
  for (const sign of ['<script>', '<img src=x onerror=', 'javascript:', '␛[2J', '␛]8;;', '‹U+202E›', '‹U+2066›', '␇', '{{constructor', '__proto__']) want(shown.includes(sign), `${sign} is not seen in ${shown}`);
  await toast.getByRole('button', { name: /^Show 100k of the \d/ }).click();
  want((await toast.textContent()).length > 100000, 'no more is shown');
  await shot(page, 'hostile');
  want((await page.evaluate(() => window.pwned)) === undefined, 'it ran');
  want((await page.evaluate(() => ({}).polluted)) === undefined, 'it has changed what all objects have');
  want((await page.locator('#app script, #app img, #app iframe, .toast a').count()) === 0, 'it became markup');
  want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'it makes the page wide');
  problems.length = 0; // the refusal is told on the console
});
