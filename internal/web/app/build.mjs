// Makes dist from the sources: node build.mjs [DIR]. The same sources give the same bytes.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { cp, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';

const here = import.meta.dirname;
const out = path.resolve(process.argv[2] || path.join(here, '../dist'));

const result = await build({
  absWorkingDir: here,
  entryPoints: { app: 'src/main.js' },
  outdir: out,
  bundle: true,
  minify: true,
  format: 'esm',
  target: ['es2022', 'chrome120', 'firefox120', 'safari17'],
  legalComments: 'none', // they stand in licenses.txt
  charset: 'utf8',
  metafile: true,
  write: false,
  logLevel: 'warning',
});

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
for (const f of result.outputFiles) await writeFile(f.path, f.contents);
for (const f of ['index.html', 'icon.svg']) await cp(path.join(here, f), path.join(out, f));
await writeFile(path.join(out, 'licenses.txt'), await licenses(Object.keys(result.metafile.inputs)));
await writeFile(path.join(out, 'sources.sha256'), (await sources()) + '\n');

// licenses returns the licence of each package of which something is in the bundle.
async function licenses(inputs) {
  const names = new Set();
  for (const f of inputs) {
    const at = f.lastIndexOf('node_modules/');
    if (at < 0) continue;
    const parts = f.slice(at + 'node_modules/'.length).split('/');
    names.add(f.slice(0, at) + 'node_modules/' + parts.slice(0, parts[0].startsWith('@') ? 2 : 1).join('/'));
  }
  let text = 'The dashboard contains these packages.\n';
  for (const dir of [...names].sort()) {
    const pkg = JSON.parse(await readFile(path.join(here, dir, 'package.json'), 'utf8'));
    const file = (await readdir(path.join(here, dir))).find((f) => /^(licen[cs]e|copying)([.-]|$)/i.test(f));
    if (!file) throw new Error(`${pkg.name} has no licence file`);
    text += `\n${'-'.repeat(72)}\n${pkg.name} ${pkg.version} (${pkg.license})\n\n${(await readFile(path.join(here, dir, file), 'utf8')).trim()}\n`;
  }
  return text;
}

// sources returns the hash of all that the bundle is made from: of each file its path, a NUL, its length, a NUL and its
// bytes, in the order of the paths. A Go test computes the same.
async function sources() {
  const list = ['build.mjs', 'icon.svg', 'index.html', 'package-lock.json', 'package.json'];
  for (const dir of ['src', 'style']) {
    for (const e of await readdir(path.join(here, dir), { recursive: true, withFileTypes: true })) {
      if (e.isFile()) list.push(path.relative(here, path.join(e.parentPath, e.name)));
    }
  }
  const hash = createHash('sha256');
  for (const name of list.sort((a, b) => (a < b ? -1 : 1))) {
    const body = await readFile(path.join(here, name));
    hash.update(`${name}\0${body.length}\0`).update(body);
  }
  return hash.digest('hex');
}
