// Asks the rules of Rnix about each call of a tool, before it is made. A call about which that fails is not made.
import { spawn } from "node:child_process"

// Before this stands: const command = ["program", "argument"...]

const ask = (question) =>
  new Promise((resolve, reject) => {
    const child = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] })
    let out = "", err = ""
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text))
    child.stderr.setEncoding("utf8").on("data", (text) => (err += text))
    child.on("error", reject)
    child.stdin.on("error", () => {}) // it has ended, which says why
    child.on("close", (code) => (code === 0 ? resolve(out) : reject(new Error(err.trim() || "the rules could not be asked about this call"))))
    child.stdin.end(JSON.stringify(question))
  })

export const Judge = async () => ({
  // What keeps every tool from it without this plugin.
  config: async (config) => {
    if (config.permission) delete config.permission["?*"]
  },
  "tool.execute.before": async (call, output) => {
    const answer = JSON.parse(await ask({ tool: call.tool, session: call.sessionID, call: call.callID, input: output.args }))
    if (!answer.allow) throw new Error(answer.why)
    if (!answer.input) return
    for (const key of Object.keys(output.args)) delete output.args[key]
    Object.assign(output.args, answer.input)
  },
})
