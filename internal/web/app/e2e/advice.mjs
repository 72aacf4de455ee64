// The commands that pages print about one process do what they say, and so does the one for a server that is gone.
import { scenario, until, advised, ask, origin } from './browser.mjs';

const { big, bytes, cut } = JSON.parse(process.env.RNIX_UUIDS);

await scenario(async ({ page, problems }) => {
  const all = (c) => `test "$(${c} | wc -c)" -gt 2000000`; // and not just as much as the page has

  await page.goto(origin + '/#/process/' + big + '/files');
  await advised(page, 'main', /In a terminal: (rnix diff --max-bytes \d+ \d+)/, all);
  await page.goto(origin + '/#/process/' + big + '/files?from=0&to=1');
  await advised(page, 'main', /In a terminal: (rnix diff --max-bytes \d+ \d+ 0 1)/, all);

  await page.goto(origin + '/#/process/' + bytes + '/files');
  await advised(page, 'main', /not UTF-8. In a terminal: (rnix diff \d+)/, (c) => `${c} | LC_ALL=C grep -a '^+a.b$'`);

  await page.goto(origin + '/#/process/' + cut);
  await page.getByRole('link', { name: 'which they are, and what else can be done' }).click();
  await advised(page, 'main', /(rnix resume \d+ --on-in-doubt skip)/, (c) => `${c} 2>&1 | grep 'it is not run'`);

  problems.length = 0;
  await ask('gone');
  await page.locator('.away', { hasText: 'server is gone' }).waitFor();
  const once = (c) => `${c} --port 0 --no-open --json | { read -r line; pid=\${line##*:}; kill -INT "\${pid%\\}}"; cat; case $line in *login*) ;; *) exit 1;; esac; }`;
  await advised(page, '.away', /Start it again in a terminal: (rnix web)/, once);
  await until(async () => problems.length > 0, 'the browser has noticed, too');
  problems.length = 0; // that nobody answered is told on the console
});
