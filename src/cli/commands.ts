import { VERSION } from '../kernel/version.ts'
import { defineCommand, didYouMean } from './command.ts'

const ENVIRONMENT = `Environment
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
  TOLLGATE_TLS_CERT       certificate, a PEM file: https is served; SIGHUP reads it again
  TOLLGATE_TLS_KEY        its key, a PEM file
  TOLLGATE_LOG_LEVEL      silent fatal error warn info debug trace        info
                          on a terminal, from info on, a line for each call
`

const EXAMPLES = [
  'npm start                                            try it, with the simulator',
  'ANTHROPIC_API_KEY=sk-ant-… tollgate serve            the Messages surface for real',
  'TOLLGATE_CHAT_URL=http://127.0.0.1:11434/v1 tollgate a local model server, no key',
]

/** The serve command is declared here: the modules that serve take a while to load, and its help does not need them. */
const serve = defineCommand({
  name: 'serve',
  usage: 'tollgate [serve]',
  about: `Serves until it is stopped. Clients call it as they call the provider, with keys that tollgate keys create makes; what
each call has cost is in its answer, in the books and on the dashboard. Variables and a file of settings configure it,
and tollgate doctor checks them. With no provider configured, answers come from a simulator. The first start makes an
admin key and prints it, once, with a first call to copy.`,
  options: {},
  examples: EXAMPLES,
  sections: [
    ENVIRONMENT,
    `Signals
  SIGTERM, SIGINT   no new requests; running streams may finish for 30 s (shutdown.drain_seconds). Again: it ends at once
  SIGHUP            reads the files of TOLLGATE_PRICES and TOLLGATE_TLS_CERT again; one that is wrong changes nothing
`,
  ],
  exitCodes:
    '0 stopped   1 it could not serve, or its store failed   2 the command line or the configuration is wrong',
  run: async () => await (await import('./serve.ts')).serve(),
})

/** The module of a command is loaded only when the command is called. */
type Load = () => Promise<{ readonly command: { run(args: readonly string[]): Promise<void> } }>

/** The commands in the order of the help: name, arguments that may follow, summary, module. */
export const COMMANDS: readonly (readonly [name: string, args: string, does: string, load: Load])[] = [
  [
    'serve',
    '',
    'serve; with no provider configured, from the built-in simulator',
    async () => ({ command: serve }),
  ],
  ['keys', 'create|list|show|update|revoke|rotate', 'API keys and their limits', () => import('./keys.ts')],
  ['usage', '', 'what was used and what it cost, by day, model or key', () => import('./usage.ts')],
  [
    'requests',
    '[--follow]',
    'the log of calls: look, export, or watch them as they end',
    () => import('./requests.ts'),
  ],
  ['credits', 'add|back', 'add prepaid credit, or give back what calls cost', () => import('./credits.ts')],
  [
    'webhooks',
    'create|list|show|update|delete|…',
    'be told of budgets, credit and keys, in Slack or by a program',
    () => import('./webhooks.ts'),
  ],
  ['admin-key', 'create|list|revoke', 'the keys that manage the gateway', () => import('./admin-key.ts')],
  [
    'prices',
    'show|check|import',
    'look at the price book, check an overlay, make one from a public list',
    () => import('./prices.ts'),
  ],
  [
    'audit',
    '',
    'derive every balance and every bill again from the records, and compare',
    () => import('./audit.ts'),
  ],
  ['rerate', '--from <date>', 'price calls again after a price was corrected', () => import('./rerate.ts')],
  [
    'doctor',
    '',
    'check configuration, store, disk, upstreams, prices; say what to do',
    () => import('./doctor.ts'),
  ],
]

/** Exit codes that scripts can use: 0 done, 1 failed, 2 the command line or the configuration is wrong. */
export async function runCommandLine([typed = 'serve', ...args]: readonly string[]): Promise<void> {
  const [, , , load] = COMMANDS.find(([name]) => name === typed) ?? []
  if (load !== undefined) await (await load()).command.run(args)
  else if (['help', '--help', '-h'].includes(typed)) process.stdout.write(HELP)
  else if (['version', '--version', '-v'].includes(typed)) process.stdout.write(`tollgate ${VERSION}\n`)
  else {
    const meant = didYouMean(typed, [...COMMANDS.map(([name]) => name), ...OTHERS])
    process.stderr.write(`tollgate: there is no command "${typed}".${meant} See tollgate --help.\n`)
    process.exitCode = 2
  }
}

const OTHERS = ['help', 'version', '--help', '--version']
const SUMMARY_COLUMN = 38

/** A command line that is too long for its column has its summary on the next line. */
function usageLine([name, args, does]: (typeof COMMANDS)[number]): string {
  const left = `  tollgate ${name === 'serve' ? '[serve]' : name} ${args}`.trimEnd()
  if (left.length < SUMMARY_COLUMN) return `${left.padEnd(SUMMARY_COLUMN)}${does}\n`
  return `${left}\n${' '.repeat(SUMMARY_COLUMN)}${does}\n`
}

export const HELP = `tollgate ${VERSION} - a transparent billing gateway for model APIs

Usage
${COMMANDS.map(usageLine).join('')}  tollgate <command> --help           the options and examples of a command
  tollgate --help | --version

${ENVIRONMENT}
Examples
${EXAMPLES.map((example) => `  ${example}\n`).join('')}
Exit codes
  0 done   1 failed   2 the command line or the configuration is wrong
`
