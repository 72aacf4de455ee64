// Commands that a page prints for a terminal, complete, so that they can be pasted.

const diffBytes = 1 << 20; // what diff_files sends of a difference, as does "rnix diff"
const diffLimit = 16777216; // the most that --max-bytes takes

// diffCommand prints all of a difference of process p, of which `missing` bytes are not here. steps are none (all that
// it changed), one (what that step changed), or two (from the end of one to the end of the other).
export function diffCommand(p, steps, missing = 0) {
  const what = [p.pid, ...steps].join(' ');
  if (!missing) return `rnix diff ${what}`;
  return `rnix diff --max-bytes 16777216 ${what}` + (missing + diffBytes > diffLimit ? ' -- PATH' : '');
}

// doubtCommand resumes process p and says what becomes of its calls that have no result.
export const doubtCommand = (p, choice) => `rnix resume ${p.pid} --on-in-doubt ${choice}`;

// word returns a text as one word of a shell.
export const word = (s) => (/^[\w@%+=:,./-]+$/.test(s) ? s : "'" + s.replaceAll("'", "'\\''") + "'");

// away are the MCP servers of process p that cannot be reached, while it lives: what is known of each, and the command that starts it again.
export const away = (p) => (p.exit ? [] : (p.mcp_down || []).map((text) => ({ text, command: `rnix mcp reload --process ${p.pid} ${word(text.split(': ')[0])}` })));

// treeCommands are what a person can do in a terminal with the git work tree w, whose process has ended or not: [{what, command}].
export function treeCommands(w, ended) {
  const out = [];
  if (w.branch && !w.gone) out.push({ what: 'look at it', command: `cd ${word(w.dir)}` });
  if (w.branch && w.commits) out.push({ what: 'merge what is committed there by hand', command: `git -C ${word(w.repo)} merge ${word(w.branch)}` });
  if (w.branch && w.remote && w.commits) out.push({ what: 'push its branch', command: `git -C ${word(w.gone ? w.repo : w.dir)} push -u ${word(w.remote)} ${word(w.branch)}` });
  if (w.branch && w.remote && w.files.length) out.push({ what: 'print the commands that make a pull request', command: `rnix worktree pr ${w.pid}` });
  if (!w.gone && ended) out.push({ what: 'throw it away (what is in it is kept, and can be got back)', command: `rnix worktree rm ${w.pid}` });
  return out;
}

// undoCommand takes a merge back, as long as nothing was done since.
export const undoCommand = (m) => `git -C ${word(m.repo)} reset --keep ${m.before}`;
