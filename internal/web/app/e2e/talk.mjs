// A person talks with agents: what a model says is there while it says it, also over a crash of the daemon.
import { scenario, shot, want, until, accessible, ask, origin } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  const forms = async (name) => {
    for (const [form, width, scheme] of [['light', 1280, 'light'], ['dark', 1280, 'dark'], ['phone', 390, 'light']]) {
      await page.setViewportSize({ width, height: width < 760 ? 844 : 800 });
      await page.emulateMedia({ colorScheme: scheme });
      await page.waitForTimeout(100);
      await shot(page, `${name}-${form}`);
      await accessible(page, `${name} (${form})`);
      want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name} (${form}) has to be scrolled sideways`);
    }
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.emulateMedia({ colorScheme: 'light' });
  };
  const live = page.locator('.message.live');
  const count = (text, word) => text.split(word).length - 1;
  const talk = () => page.locator('.talk').innerText();

  // Text and thinking come while the model speaks.
  const slow = await ask('spawn slowly');
  await page.goto(`${origin}/#/process/${slow}`);
  await live.locator('.prose').waitFor();
  const first = (await live.innerText()).length;
  await until(async () => (await live.innerText()).length > first, 'more text comes');
  want(await live.locator('details.thought').count() === 1 && !(await live.locator('details.thought').evaluate((d) => d.open)), 'thinking is not folded');
  await live.locator('summary').click();
  await live.getByText('first I consider').waitFor();
  await forms('talk-live');

  // A second reader that comes late has the same, and the same words once.
  const again = await page.context().newPage();
  await again.goto(`${origin}/#/process/${slow}`);
  await again.locator('.message.live', { hasText: 'word0 ' }).waitFor();
  await again.close();

  // The daemon is killed: the page says so, and goes on with the new answer, without doubled text.
  problems.length = 0;
  await ask('kill');
  await page.locator('.away').waitFor();
  await ask('start');
  await page.locator('.wire.live').waitFor();
  await until(async () => (await talk()).includes('the end of it'), 'it comes to its end');
  await until(async () => (await live.count()) === 0, 'the recorded answer takes the place of what was heard');
  const all = await talk();
  for (const word of ['word0 ', 'word7 ', 'the end of it']) want(count(all, word) === 1, `${word} is there ${count(all, word)} times: ${all}`);
  want(await page.locator('.message.assistant details.thought').count() === 1, 'what it thought is not kept beside its answer');
  problems.length = 0; // that nobody answered for a while is told on the console
});
