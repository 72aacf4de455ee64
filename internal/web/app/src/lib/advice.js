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
