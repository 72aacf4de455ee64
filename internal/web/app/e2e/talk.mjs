// A person talks with agents: what a model says is there while it says it, also over a crash of the daemon.
import { scenario, shot, want, until, accessible, ask, origin, inForms } from './browser.mjs';

await scenario(async ({ page, problems }) => {
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
  await inForms(page, 'talk-live');

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
  await until(async () => (await page.locator('.message.assistant details.thought').count()) === 1, 'what it thought is kept beside its answer');
  problems.length = 0; // that nobody answered for a while is told on the console

  // What has ended is followed up: with a new line in the message, and over a reload and an error.
  const field = page.getByRole('textbox', { name: 'Your message to it' });
  await field.fill('now say');
  await field.press('Shift+Enter');
  await field.pressSequentially('more <b>please</b>');
  await page.reload();
  await field.waitFor();
  want((await field.inputValue()) === 'now say\nmore <b>please</b>', 'what was typed is lost: ' + await field.inputValue());
  await page.evaluate(() => { window.real = fetch; window.fetch = (u, o) => window.real(u, u.endsWith('/resume') ? { ...o, body: '{"target":"999999"}' } : o); });
  await field.press('Enter');
  await page.locator('.say .problem', { hasText: '999999' }).waitFor();
  want((await field.inputValue()) === 'now say\nmore <b>please</b>', 'an error loses what was typed');
  await accessible(page, 'a message that was refused');
  await page.evaluate(() => { window.fetch = window.real; });
  problems.length = 0; // the refusal is told on the console
  await field.press('Enter');
  await until(async () => (await field.inputValue()) === '', 'it is sent');
  await page.locator('.message.user', { hasText: 'more <b>please</b>' }).waitFor();
  await until(async () => (await talk()).includes('You said more'), 'the answer comes');
  want(count(await talk(), 'You said more') === 1, 'the answer is there twice');

  // One that works is steered, waits for it meanwhile, and is interrupted.
  const busy = await ask('spawn busily');
  await page.goto(`${origin}/#/process/${busy}`);
  await page.locator('.act', { hasText: 'sleep' }).waitFor();
  await field.fill('and now say more');
  await page.route('**/api/v1/steer', async (r) => { await r.fetch(); await r.abort(); }, { times: 1 }); // it is heard, and the answer lost
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await page.locator('.say .problem', { hasText: 'does not answer' }).waitFor();
  problems.length = 0; // that is told on the console
  await page.reload();
  await field.waitFor();
  await page.locator('.wire.live').waitFor();
  await field.press('Enter');
  await until(async () => (await field.inputValue()) === '', 'it is sent again');
  await page.locator('.message.waits', { hasText: 'and now say more' }).waitFor();
  want((await page.locator('.message.waits').count()) === 1, 'what is sent again after the page was loaded anew is heard twice');
  await inForms(page, 'talk-waits');
  await ask('release');
  await until(async () => (await talk()).includes('You said more'), 'it was steered');
  await until(async () => (await page.locator('.message.waits').count()) === 0, 'what was heard waits no more');
  const hangs = await ask('spawn slowly without end');
  await page.goto(`${origin}/#/process/${hangs}`);
  await live.locator('.prose').waitFor();
  await page.getByRole('button', { name: 'Interrupt' }).click();
  await until(async () => (await page.locator('.head .badge').textContent()).includes('cancelled'), 'it is interrupted');
  await page.getByRole('button', { name: 'Send and resume' }).waitFor();

  // A paused one is resumed with what is said.
  const paused = await ask('spawn slowly without end, too');
  await page.goto(`${origin}/#/process/${paused}`);
  await live.locator('.prose').waitFor();
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Send and resume' }).waitFor();
  await field.fill('say more');
  await field.press('Enter');
  await until(async () => (await talk()).includes('You said more'), 'it is resumed with it');

  // Everything that text can do to a page.
  const hostile = await ask('spawn show all');
  await page.goto(`${origin}/#/process/${hostile}`);
  await page.getByText('the last line').waitFor();
  for (const sel of ['.prose h3', '.prose table td', '.prose .code pre', '.prose .diff .add', '.prose ol li']) await page.locator(sel).first().waitFor();
  want((await page.evaluate(() => window.pwned)) === undefined, 'it ran');
  want((await page.locator('.talk a:not([href^="#/"]), .talk img, .talk script, .talk iframe, .talk b:not(.tool):not(header b)').count()) === 0, 'it became markup');
  for (const sign of ['<script>', '<img src=x', '(javascript:', '‹U+202E›', '␛[31m', 'https://evil.example/']) want((await talk()).includes(sign), `${sign} is not seen`);
  await page.locator('.act', { hasText: 'made.txt' }).locator('.diff .add').first().waitFor();
  const whole = page.locator('.act', { hasText: 'The whole file, as it was written.' }).getByRole('link', { name: 'What step 1 changed' });
  want((await whole.getAttribute('href')).endsWith('/files?to=1'), 'it leads to ' + await whole.getAttribute('href'));
  await inForms(page, 'talk-markdown');

  // What the kernel says to the agent is the system's, and no person's.
  const silent = await ask('spawn say nothing');
  await page.goto(`${origin}/#/process/${silent}`);
  const notice = page.locator('.message.notice-from', { hasText: 'Your last answer was empty' });
  await notice.waitFor();
  want(/^system\s+a notice to the agent/.test(await notice.innerText()), 'a notice is said by: ' + await notice.innerText());
  want(/^user\s+said by a person/.test(await page.locator('.message.user', { hasText: 'say nothing' }).innerText()), 'the intent is no person\'s');
  await inForms(page, 'talk-notice');

  // A question is answered beside the conversation, and a parent has the sums of its family.
  const asking = await ask('spawn ask me');
  await page.goto(`${origin}/#/process/${asking}`);
  await page.locator('.card', { hasText: 'Which colour?' }).waitFor();
  await accessible(page, 'a question beside the conversation');
  await shot(page, 'talk-question');
  await page.waitForTimeout(600); // the cards have moved
  await page.getByRole('button', { name: /^Answer ask \d+ with blue/ }).click();
  await until(async () => (await talk()).includes('You like blue'), 'the answer is heard');
  const parent = await ask('spawn have a child');
  await page.goto(`${origin}/#/process/${parent}`);
  await page.locator('.family', { hasText: '2 processes' }).waitFor();

  // Notifications come when a person wants them, and only while no one looks.
  await page.addInitScript(() => {
    window.notes = [];
    window.asked = 0;
    window.Notification = class {
      static get permission() { return window.asked ? 'granted' : 'default'; }
      static async requestPermission() { window.asked++; return 'granted'; }
      constructor(title, { body }) { window.notes.push(`${title}: ${body}`); }
    };
    document.hasFocus = () => false;
  });
  await page.reload();
  await page.locator('.wire.live').waitFor();
  want((await page.evaluate(() => window.asked)) === 0, 'the permission is asked for without a click');
  await page.getByRole('button', { name: 'Notifications' }).click();
  await page.locator('.bell[aria-pressed=true]').waitFor();
  await accessible(page, 'notifications');
  await until(async () => { // the stream has begun some time after the click
    await ask('spawn quickly');
    return (await page.evaluate(() => window.notes)).some((n) => n.endsWith('is done: quickly'));
  }, 'it is told that an agent is done');
  await ask('spawn ask me');
  await ask('spawn fail');
  await until(async () => { const n = (await page.evaluate(() => window.notes)).join('\n'); return n.includes('asks you') && /PID \d+.* failed/.test(n); }, 'it is told of an ask and of a failure');
  await page.getByRole('button', { name: 'Notifications' }).click();
  await page.locator('.bell[aria-pressed=false]').waitFor();
  problems.length = 0; // what fails is told on the console
});
