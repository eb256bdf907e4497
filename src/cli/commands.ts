import { VERSION } from '../kernel/version.ts'
import { asksForHelp, didYouMean } from './command.ts'

interface Entry {
  readonly name: string
  /** Behind `tollgate` in the help. */
  readonly usage: string
  readonly summary: string
  /** A command loads what it needs only when it is called. */
  load(): Promise<{ run(args: readonly string[]): Promise<void> }>
}

export const COMMANDS: readonly Entry[] = [
  {
    name: 'serve',
    usage: '[serve]',
    summary: 'serve; with no provider configured, from the built-in simulator',
    load: async () => ({
      async run(args) {
        if (asksForHelp(args)) process.stdout.write(HELP)
        else await (await import('./serve.ts')).serve(args)
      },
    }),
  },
  {
    name: 'keys',
    usage: 'keys create|list|show|update|revoke|rotate',
    summary: 'API keys and their limits',
    load: async () => (await import('./keys.ts')).keys,
  },
  {
    name: 'usage',
    usage: 'usage',
    summary: 'what was used and what it cost, by day, model or key',
    load: async () => (await import('./usage.ts')).usage,
  },
  {
    name: 'requests',
    usage: 'requests [--follow]',
    summary: 'the log of calls: look, export, or watch them as they end',
    load: async () => (await import('./requests.ts')).requests,
  },
  {
    name: 'credits',
    usage: 'credits add|back',
    summary: 'add prepaid credit, or give back what calls cost',
    load: async () => (await import('./credits.ts')).credits,
  },
  {
    name: 'admin-key',
    usage: 'admin-key create|list|revoke',
    summary: 'the keys that manage the gateway',
    load: async () => (await import('./admin-key.ts')).adminKey,
  },
  {
    name: 'prices',
    usage: 'prices show|check|import',
    summary: 'look at the price book, check an overlay, make one from a public list',
    load: async () => (await import('./prices.ts')).prices,
  },
  {
    name: 'audit',
    usage: 'audit',
    summary: 'derive every balance and every bill again from the records, and compare',
    load: async () => (await import('./audit.ts')).audit,
  },
  {
    name: 'rerate',
    usage: 'rerate --from <date>',
    summary: 'price calls again after a price was corrected',
    load: async () => (await import('./rerate.ts')).rerate,
  },
  {
    name: 'migrate-store',
    usage: 'migrate-store',
    summary: 'move the books from SQLite into PostgreSQL, for more than one node',
    load: async () => (await import('./migrate-store.ts')).migrateStore,
  },
  {
    name: 'doctor',
    usage: 'doctor',
    summary: 'check configuration, store, disk, upstreams, prices; say what to do',
    load: async () => (await import('./doctor.ts')).doctor,
  },
]

/** Exit codes that scripts can use: 0 done, 1 failed, 2 the command line or the configuration is wrong. */
export async function runCommandLine([name = 'serve', ...args]: readonly string[]): Promise<void> {
  const entry = COMMANDS.find((each) => each.name === name)
  if (entry !== undefined) return await (await entry.load()).run(args)
  if (['help', '--help', '-h'].includes(name)) process.stdout.write(HELP)
  else if (['version', '--version', '-v'].includes(name)) process.stdout.write(`tollgate ${VERSION}\n`)
  else {
    const known = [...COMMANDS.map((each) => each.name), 'help', 'version', '--help', '--version']
    const meant = didYouMean(name, known)
    process.stderr.write(`tollgate: there is no command "${name}".${meant} See tollgate --help.\n`)
    process.exitCode = 2
  }
}

const SUMMARY_COLUMN = 38

/** A usage that is too long for its column has its summary on the next line. */
function usageLine({ usage, summary }: Pick<Entry, 'usage' | 'summary'>): string {
  const left = `  tollgate ${usage}`
  if (left.length < SUMMARY_COLUMN) return `${left.padEnd(SUMMARY_COLUMN)}${summary}\n`
  return `${left}\n${' '.repeat(SUMMARY_COLUMN)}${summary}\n`
}

export const HELP = `tollgate ${VERSION} - a transparent billing gateway for model APIs

Usage
${COMMANDS.map(usageLine).join('')}  tollgate <command> --help           the options and examples of a command
  tollgate --help | --version

Environment
  TOLLGATE_HOST           address to listen on                            127.0.0.1
  TOLLGATE_PORT           port to listen on, 0 for any                    8787
  TOLLGATE_DATA_DIR       database, pepper, first admin key               ./data
  TOLLGATE_DATABASE_URL   postgres://… for many nodes on one PostgreSQL   SQLite in the data dir
  TOLLGATE_CONFIG         JSON file with the other settings               ./tollgate.json, if there
  TOLLGATE_ADMIN_KEY      an admin key of your own, 32 characters or more
  TOLLGATE_MESSAGES_URL   upstream of the Messages surface                https://api.anthropic.com
  TOLLGATE_MESSAGES_KEY   its key; falls back to ANTHROPIC_API_KEY
  TOLLGATE_CHAT_URL       upstream of the Chat/Responses surface          https://api.openai.com/v1
  TOLLGATE_CHAT_KEY       its key; falls back to OPENAI_API_KEY
  TOLLGATE_DISCOUNT       off list prices, as a fraction such as 0.15     0
  TOLLGATE_PRICES         price overlay file; SIGHUP reads it again
  TOLLGATE_PEPPER         secret the stored key digests are made with     <data dir>/pepper
  TOLLGATE_PREFIX         beginning of keys and of the x-…- headers       svc
  TOLLGATE_LOG_LEVEL      silent fatal error warn info debug trace        info
                          on a terminal, from info on, a line for each call

Examples
  npm start                                            try it, with the simulator
  ANTHROPIC_API_KEY=sk-ant-… tollgate serve            the Messages surface for real
  TOLLGATE_CHAT_URL=http://127.0.0.1:11434/v1 tollgate a local model server, no key

Exit codes
  0 done   1 failed   2 the command line or the configuration is wrong
`
