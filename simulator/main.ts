import '../src/kernel/check-node.ts'
import { help, readFlags } from './read-flags.ts'
import { type SimulatorOptions, startSimulator } from './start-simulator.ts'

const flags = readFlags(process.argv.slice(2))
if (flags.kind === 'help') {
  console.log(help)
} else if (flags.kind === 'problem') {
  for (const problem of flags.problems) console.error(problem)
  console.error('\n--help lists the flags.')
  process.exitCode = 2
} else {
  await run(flags.options)
}

async function run(options: SimulatorOptions): Promise<void> {
  const simulator = await startSimulator(options).catch((error: unknown) => {
    const reason = error instanceof Error ? error.message : String(error)
    console.error(`The simulator could not start: ${reason}`)
    console.error('Another program may have this port: try --port 0.')
    process.exitCode = 1
  })
  if (simulator === undefined) return

  console.log(`
  The simulator is listening. No model is behind it and nothing is billed.

    Anthropic clients   base URL ${simulator.messagesUrl}
    OpenAI clients      base URL ${simulator.chatUrl}
    Provider keys       ${keysOf(options)}
    Pace                ${options.pace}, ${faultsOf(options)}

  Try it:  curl ${simulator.chatUrl}/chat/completions -H 'content-type: application/json' \\
             -d '{"model":"gpt-6-luna","messages":[{"role":"user","content":"Hello"}]}'

  Ctrl-C stops it.
`)
  const stop = async (): Promise<void> => {
    const { requests, aborted } = simulator
    await simulator.close()
    console.log(`The simulator stopped after ${requests} requests, ${aborted} of them left by the client.`)
  }
  process.once('SIGINT', stop)
  process.once('SIGTERM', stop)
}

function keysOf(options: SimulatorOptions): string {
  const describe = (key: string | undefined): string => (key === undefined ? 'any' : 'the one you gave')
  return `Messages: ${describe(options.messagesKey)}, Chat: ${describe(options.chatKey)}`
}

function faultsOf({ faultRate = 0, seed = 1 }: SimulatorOptions): string {
  return faultRate === 0
    ? 'no random faults'
    : `${faultRate * 100}% of requests fail at random (seed ${seed})`
}
