import { registerHooks } from 'node:module'

/** Loaded before a program: writes the name of every package to the error output when the program loads it. */
const seen = new Set<string>()

registerHooks({
  load(url, context, nextLoad) {
    const name = /\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1]
    if (name !== undefined && !seen.has(name)) {
      seen.add(name)
      process.stderr.write(`package ${name}\n`)
    }
    return nextLoad(url, context)
  },
})
