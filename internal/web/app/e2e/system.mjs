// What doctor finds: it is shown when it is there, nothing else on the page waits for it, and it can be asked for again.
import { scenario, shot, want, until, accessible, ask, origin, inForms } from './browser.mjs';

await scenario(async ({ page, problems }) => {
  await page.goto(origin + '/#/system');
  const row = (check) => page.locator(`li[data-check="${check}"]`);

  // The checks are not done yet: everything else is there.
  await page.getByText('Chosen:').waitFor();
  await page.getByRole('heading', { name: 'Can agents be run here?' }).waitFor();
  await page.getByText('The largest histories').first().waitFor({ state: 'attached' });
  want((await page.locator('li[data-check]').count()) === 0, 'findings are shown before there are any');
  await ask('found');
  await row('disk').waitFor();
  const cells = async (check) => (await Promise.all(['.state', '.check', '.found', '.mend'].map((c) => row(check).locator(c).allTextContents()))).map((s) => s.join(' ').trim());
  const disk = await cells('disk');
  want(disk[0] === 'broken' && disk[2].startsWith('12.0M free at /: agents stop') && disk[3] === 'make room, or set RNIX_DATA_DIR', 'the disk is shown as ' + disk);
  want((await cells('daemon'))[0] === 'ok' && (await cells('cursor-agent'))[0] === 'absent', 'the others are shown as they are');
  const model = await cells('model');
  want(model[0] === 'warning' && model[2].includes('<script>') && model[2].includes('‹U+202E›'), 'hostile text is shown as ' + model[2]);
  want((await page.evaluate(() => window.pwned)) === undefined && (await page.locator('main script, main img').count()) === 0, 'hostile text ran');
  const said = () => page.locator('.doctor [role=status]').textContent();
  want((await said()) === '1 thing is broken, 1 warning.', 'it is summed up as ' + (await said()));
  await inForms(page, 'doctor');

  // It is mended: with the keyboard alone, one looks again.
  await page.getByRole('button', { name: 'Check again' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Checking …' }).waitFor();
  want((await cells('disk'))[0] === 'broken', 'what was found goes while one looks again');
  await ask('mended');
  await until(async () => (await cells('disk'))[0] === 'ok', 'the disk is well');
  want((await said()) === '1 warning.', 'it is summed up as ' + (await said()));
  want(await page.evaluate(() => document.activeElement.textContent === 'Check again'), 'the button has lost the keyboard');

  // A check hangs: that is said, and what was found before stays.
  await ask('hang');
  await page.getByRole('button', { name: 'Check again' }).click();
  const problem = page.locator('.problem[role=alert]', { hasText: 'the checks are not done after' });
  await problem.waitFor();
  await accessible(page, 'a check that hangs');
  await shot(page, 'doctor-hangs');
  await ask('well');
  await problem.getByRole('button', { name: 'Try again' }).click();
  await until(async () => (await said()) === 'Nothing is broken.', 'it is asked again');
  want((await problem.count()) === 0, 'that it hangs is still said');
  problems.length = 0; // that it was refused is told on the console
});
