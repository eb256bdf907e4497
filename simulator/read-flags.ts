import { parseArgs } from 'node:util'
import type { SimulatorOptions } from './start-simulator.ts'

export type Flags =
  | { kind: 'run'; options: SimulatorOptions }
  | { kind: 'help' }
  | { kind: 'problem'; problems: string[] }

export const help = `Simulator: an Anthropic and an OpenAI upstream on one port, with no model behind it.

Usage: npm run simulator -- [flags]

  --port <n>            port to listen on, 0 for any (8788)
  --host <address>      address to listen on (127.0.0.1)
  --pace <pace>         realistic or instant (realistic)
  --seed <n>            seed of the random faults (1)
  --fault-rate <share>  share of requests that meet a fault, 0 to 1 (0)
  --messages-key <key>  provider key that Messages calls must carry (any)
  --chat-key <key>      provider key that Chat calls must carry (any)
  --hurry <factor>      how many times faster batches and background responses go (1)
  --deterministic       ids and times follow from the request alone
  --help                this text

A request asks for single behaviours with the header x-simulator, for example
"x-simulator: cut=event:3". simulator/README.md lists them all.`

const flags = {
  port: { type: 'string' },
  host: { type: 'string' },
  pace: { type: 'string' },
  seed: { type: 'string' },
  'fault-rate': { type: 'string' },
  'messages-key': { type: 'string' },
  'chat-key': { type: 'string' },
  hurry: { type: 'string' },
  deterministic: { type: 'boolean' },
  help: { type: 'boolean' },
} as const

/** Reads the command line; all problems are reported at once, each with the values that would be right. */
export function readFlags(args: readonly string[]): Flags {
  let values: ReturnType<typeof parse>
  try {
    values = parse(args)
  } catch (error) {
    return { kind: 'problem', problems: [error instanceof Error ? error.message : String(error)] }
  }
  if (values.help === true) return { kind: 'help' }

  const problems: string[] = []
  const number = (name: 'port' | 'seed' | 'fault-rate' | 'hurry', initial: number, max: number): number => {
    const text = values[name]
    if (text === undefined) return initial
    const isNumber =
      name === 'fault-rate' || name === 'hurry' ? /^(\d+|\d*\.\d+)$/.test(text) : /^\d+$/.test(text)
    if (isNumber && Number(text) <= max) return Number(text)
    problems.push(`--${name} ${text}: expected a number from 0 to ${max}`)
    return initial
  }
  const port = number('port', 8788, 65_535)
  const seed = number('seed', 1, 0xffff_ffff)
  const faultRate = number('fault-rate', 0, 1)
  const hurry = number('hurry', 1, 1_000_000)
  const pace = values.pace ?? 'realistic'
  const isPace = pace === 'realistic' || pace === 'instant'
  if (!isPace) problems.push(`--pace ${pace}: expected realistic or instant`)
  if (!isPace || problems.length > 0) return { kind: 'problem', problems }
  return {
    kind: 'run',
    options: {
      host: values.host ?? '127.0.0.1',
      port,
      pace,
      seed,
      faultRate,
      hurry,
      deterministic: values.deterministic ?? false,
      ...(values['messages-key'] === undefined ? {} : { messagesKey: values['messages-key'] }),
      ...(values['chat-key'] === undefined ? {} : { chatKey: values['chat-key'] }),
    },
  }
}

function parse(args: readonly string[]) {
  return parseArgs({ args: [...args], options: flags, strict: true, allowPositionals: false }).values
}
