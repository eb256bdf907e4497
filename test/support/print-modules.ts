import { registerHooks } from 'node:module'

/** Preloaded into a program: writes the name of every package to stderr when it is loaded. */
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
