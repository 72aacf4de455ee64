// Every page, with a real daemon behind it: what it shows, in light and dark, wide and narrow, and that nothing runs that an agent has said.
import { scenario, shot, want, until, read, accessible, origin } from './browser.mjs';

const ids = JSON.parse(process.env.RNIX_IDS);

await scenario(async ({ page }) => {
  const at = async (hash) => {
    await page.goto(origin + '/#' + hash);
    await read(page);
  };
  const text = (sel = 'main') => page.locator(sel).first().innerText();
  const has = async (what, sel) => until(async () => (await text(sel)).includes(what), `"${what}" on ${page.url()}: ${(await text(sel)).slice(0, 800)}`);

  // Every way of looking at one process.
  for (const [tab, word] of [['summary', 'How it ended'], ['timeline', 'model'], ['steps', 'What the model said'], ['conversation', 'build a thing'], ['context', 'What fills it'],
    ['files', 'thing.txt'], ['calls', 'done'], ['log', 'step 1'], ['lineage', 'done']]) {
    await at(`/process/${ids.builder}/${tab}`);
    await has(word);
    want((await page.locator('.problem[role=alert]').count()) === 0, `${tab} has a problem: ` + (await text('main')));
    await page.waitForTimeout(300);
    await shot(page, 'process-' + tab);
    await accessible(page, 'process ' + tab);
  }

  // A server that is away, with the reason, and the command that starts it again.
  await at(`/process/${ids.served}/summary`);
  await page.locator('.without', { hasText: 'Works without the MCP server tracker: ' }).waitFor();
  want(/\/no\/such\/program/.test(await text('.without')), 'why: ' + (await text('.without')));
  want(/^rnix mcp reload --process \d+ tracker$/.test(await text('.without code')), 'the command: ' + (await text('.without code')));
  await shot(page, 'process-away');
  await accessible(page, 'a server that is away');

  // Its labels, as rnix ps shows them.
  await at(`/process/${ids.builder}/summary`);
  await has('env=prod title="a thing"');
  await at(`/process/${ids.hostile}/summary`);
  await has('note="<script>window.pwned=1</script><img src=x');

  // The timeline adds up.
  await at(`/process/${ids.builder}/timeline`);
  const shares = [...(await text()).matchAll(/(\d+) %/g)].map((m) => Number(m[1]));
  want(shares.length > 0 && shares.reduce((a, b) => a + b, 0) <= 102, 'the path that decided adds up to ' + shares);
  want((await page.locator('.bar.model').count()) > 0 && (await page.locator('.bar.tool').count()) > 0, 'no models or tools in the waterfall');

  // From a step to what it changed, and to a fork of it.
  await at(`/process/${ids.builder}/steps?step=4`);
  await page.getByRole('button', { name: 'Show what it changed' }).click();
  await has('+three');
  await page.getByRole('button', { name: 'Show the prompt' }).click();
  await has('of', '.step');
  await shot(page, 'step');
  await page.keyboard.press('ArrowLeft');
  await until(async () => (await text('.step h2')).includes('Step 3'), 'the key leads to the step before');
  await page.getByRole('button', { name: 'Fork from here' }).click();
  await page.getByRole('textbox', { name: 'Name of the fork' }).fill('again');
  await shot(page, 'fork');
  await accessible(page, 'the question of a fork');
  await page.locator('dialog').getByRole('button', { name: 'Fork' }).click();
  await until(async () => (await text('.head h1')).includes('again'), 'the fork is shown');
  await at(`/process/${ids.builder}/lineage`);
  await until(async () => (await page.locator('.drawing .box').count()) === 2, 'the fork is in the family');
  await shot(page, 'lineage-fork');
  await accessible(page, 'the family');

  // One click shows it beside its fork.
  await page.getByRole('region', { name: 'lineage' }).getByRole('link', { name: 'Side by side' }).click();
  await until(async () => (await page.locator('.one h2').count()) === 2, 'both are side by side');
  const beside = async (name) => {
    await page.locator('.one', { has: page.locator('h2', { hasText: name }) }).locator('ul.files', { hasText: 'thing.txt' }).waitFor();
    return page.locator('.one', { has: page.locator('h2', { hasText: name }) }).innerText();
  };
  for (const name of ['builder', 'again']) want(/claude-sonnet-4-5[^]*Works in/.test(await beside(name)), `the card of ${name}: ` + await beside(name));
  want(/of=[0-9a-f-]{36}(,|%2C)[0-9a-f-]{36}$/.test(page.url()) && page.url().includes(ids.builder), 'the address of the two: ' + page.url());
  want((await page.locator('main .problem').count()) === 0, 'side by side there is a problem: ' + await text());
  await shot(page, 'lineage-beside');
  await accessible(page, 'a process beside its fork');
  await page.goBack();
  await until(async () => (await page.locator('.drawing .box').count()) === 2, 'back at the family');

  // What it has used with its child, and with its fork; in the list, too.
  await at(`/process/${ids.builder}/summary`);
  await page.locator('.family', { hasText: 'with its descendants: 2 processes' }).waitFor();
  await page.locator('.family', { hasText: 'with all forks of its start: 3 processes' }).waitFor();
  want(/with its descendants: 2 processes\s+[\d.k]+ tokens\s+cost \$0\.\d+/.test(await text('.head')), 'the sum: ' + (await text('.head')));
  await shot(page, 'process-family');
  await at('/');
  await page.getByLabel('ended ones too').check();
  await page.locator('.row[data-pid] .sum').first().waitFor();
  await page.waitForTimeout(300);
  await shot(page, 'overview-family');
  await accessible(page, 'the list with sums');
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, 'overview-family-phone');
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByLabel('ended ones too').uncheck();

  // The tasks have the sums of their families, each process once.
  await at('/compare');
  await has('build a thing');
  await page.locator('.table tr', { hasText: 'build a thing' }).filter({ hasText: /3 with descendants/ }).waitFor();
  const task = await text('.table tr:has-text("build a thing")');
  want(/[\d.]+k\s+\$0\.\d+\s+\d/.test(task), 'the sums of the task: ' + task);
  await accessible(page, 'the tasks');
  await shot(page, 'compare-tasks');

  // Answers about another process come late: nothing of it is shown.
  const slow = async (route) => {
    const about = JSON.parse(route.request().postData()).target;
    const answer = await route.fetch();
    await new Promise((r) => setTimeout(r, about === ids.builder ? 1200 : 300));
    await route.fulfill({ response: answer }).catch(() => {}); // the page may have taken the call back
  };
  const late = /\/api\/v1\/(get_proc_detail|families|list_messages|mailbox)$/;
  await page.evaluate(() => {
    window.wrong = [];
    window.looks = new MutationObserver(() => {
      const shown = document.querySelector('.head h1')?.textContent || '';
      if (shown && location.hash.includes(window.now) && shown.includes(window.not)) window.wrong.push(shown);
      if (location.hash.includes(window.now) && document.querySelector('.talk')?.textContent.includes('build a thing')) window.wrong.push('its conversation');
    });
    window.looks.observe(document.body, { subtree: true, childList: true, characterData: true });
  });
  await page.route(late, slow);
  await at(`/process/${ids.builder}/conversation`);
  await has('builder', '.head h1');
  await page.evaluate(([now, other]) => { Object.assign(window, { now, not: 'builder' }); location.hash = `#/process/${other}`; setTimeout(() => { location.hash = `#/process/${now}`; }, 100); }, [ids.hostile, ids.builder]);
  await has('mallory', '.head h1');
  await page.waitForTimeout(1500);
  want((await text('.head h1')).includes('mallory'), 'a late answer is shown: ' + await text('.head h1'));
  want((await page.evaluate(() => window.wrong)).length === 0, 'of another process is shown: ' + JSON.stringify(await page.evaluate(() => window.wrong)));
  await page.evaluate(() => window.looks.disconnect());
  await page.unroute(late, slow);

  // Hostile text, everywhere that text is.
  for (const tab of ['summary', 'timeline', 'steps', 'conversation', 'context', 'calls', 'log']) {
    await at(`/process/${ids.hostile}/${tab}`);
    await page.waitForTimeout(200);
    want((await page.evaluate(() => window.pwned)) === undefined, 'hostile text ran on ' + tab);
    want((await page.locator('main script, main img, main iframe, main a[href^="javascript"]').count()) === 0, 'hostile text became markup on ' + tab);
  }
  await shot(page, 'hostile-log');

  // A workflow, while it runs.
  await at('/compose');
  await has('release');
  await shot(page, 'workflows');
  await accessible(page, 'workflows');
  await page.getByRole('link', { name: 'release' }).click();
  await until(async () => (await page.locator('[data-node]').count()) === 5, 'five nodes');
  await until(async () => (await page.locator('[data-node=plan]').getAttribute('data-state')) === 'succeeded', 'plan succeeds');
  await until(async () => (await page.locator('[data-node=build]').getAttribute('data-state')) === 'running', 'build runs');
  await until(async () => (await page.locator('[data-node=check]').textContent()).includes('3 of 3'), 'the fan is done');
  await shot(page, 'workflow');
  await accessible(page, 'a workflow');
  await page.locator('[data-node=build]').click();
  await has('node build hang');
  await page.locator('#say').waitFor();
  await page.keyboard.press('s');
  await page.keyboard.type('go on now');
  await page.keyboard.press('Enter');
  await page.locator('.message.waits', { hasText: 'go on now' }).waitFor();
  await at(`/compose/${ids.run}`);

  // The others.
  await at('/history');
  await has('builder');
  await shot(page, 'history');
  await accessible(page, 'the history');
  await page.keyboard.press('/');
  await page.keyboard.type('mallory');
  await until(async () => (await page.locator('.row[data-pid]').count()) === 1, 'one is found');
  want(page.url().includes('q=mallory') || (await until(async () => page.url().includes('q=mallory'), 'the search is in the address')), '');
  for (const by of ['day', 'agent', 'model', 'process']) {
    await at('/cost?by=' + by);
    await has('Tokens');
    await accessible(page, 'cost by ' + by);
  }
  await shot(page, 'cost');
  await at('/system');
  await has('Calls now');
  await has('Calls at once');
  await has('The largest histories');
  await has('Chosen');
  await shot(page, 'system');
  await accessible(page, 'the system');
  await page.getByRole('button', { name: 'Let another browser in' }).click();
  await page.locator('dialog', { hasText: '/login?token=' }).waitFor();
  await accessible(page, 'a link for another browser');
  await page.keyboard.press('Escape');

  // What is alive can be ended from its page.
  await at(`/process/${ids.alive}`);
  await page.keyboard.press('K');
  await page.locator('dialog').getByRole('button', { name: 'End it' }).click();
  await until(async () => (await text('.head .badge')).includes('cancelled'), 'it has ended');
  await page.locator('.head .outcome', { hasText: 'A signal ended it.' }).waitFor();

  // What is done is not resumed before a person has said what is to be done: no model is paid for a click.
  let resumed = 0;
  page.on('request', (r) => { resumed += r.url().endsWith('/api/v1/resume') ? 1 : 0; });
  const question = page.locator('dialog');
  for (const hash of ['/history?q=builder', `/process/${ids.builder}/summary`]) {
    await at(hash);
    await page.getByRole('button', { name: 'Resume…' }).first().click();
    await question.getByRole('textbox', { name: 'What to do next' }).waitFor();
    await question.getByRole('button', { name: 'Resume' }).click();
    await page.waitForTimeout(200);
    want((await question.count()) === 1 && resumed === 0, `${hash}: resumed with nothing to do`);
    await shot(page, 'resume-' + hash.split(/[/?]/)[1]);
    await accessible(page, 'the question of a resume');
    await question.getByRole('button', { name: 'Cancel' }).click();
    want(resumed === 0, `${hash}: resumed after Cancel`);
  }
  await page.keyboard.press('R');
  await question.getByRole('textbox', { name: 'What to do next' }).fill('go on now');
  await question.getByRole('button', { name: 'Resume' }).click();
  await until(() => resumed === 1, 'it is resumed');
  await at(`/process/${ids.builder}/conversation`);
  await has('I was steered.');

  // Dark, and on a phone.
  await page.emulateMedia({ colorScheme: 'dark' });
  for (const hash of [`/process/${ids.builder}/timeline`, `/compose/${ids.run}`, `/process/${ids.builder}/steps`, '/history', '/cost', '/system']) {
    await at(hash);
    await page.waitForTimeout(200);
    await accessible(page, hash + ' in the dark');
    await shot(page, 'dark-' + hash.split('/').filter((w) => !w.includes('-')).join('-'));
  }
  await page.setViewportSize({ width: 390, height: 844 });
  for (const hash of [`/process/${ids.builder}/timeline`, `/process/${ids.builder}/steps`, `/process/${ids.builder}/conversation`, `/process/${ids.builder}/files`, `/compose/${ids.run}`, '/history', '/cost', '/system']) {
    await at(hash);
    await page.waitForTimeout(200);
    want(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), hash + ' has to be scrolled sideways on a phone');
    want(await page.evaluate(() => [...document.querySelectorAll('.tabs [aria-current]')].every((a) => { const r = a.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth; })), hash + ' does not show on a phone which tab it is');
    await accessible(page, hash + ' on a phone');
    await shot(page, 'phone-' + hash.split('/').filter((w) => !w.includes('-')).join('-'));
  }
});
