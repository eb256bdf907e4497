import { parseArgs } from 'node:util'
import { z } from 'zod'
import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import { requestIds } from '../management/credits.ts'
import { CONNECTION_HELP, CONNECTION_OPTIONS, EXIT_HELP, withClient } from './connection.ts'
import { print } from './print.ts'
import { createProgress } from './progress.ts'
import { readAnswer } from './read-answer.ts'
import { type Command, UsageError } from './run-command.ts'
import { shownText } from './shown-text.ts'

const creditBack = z.object({
  credited_usd: z.string(),
  balance_usd: z.string(),
  data: z.array(z.object({ request_id: z.string(), outcome: z.string() })),
})

export const creditsBack: Command = {
  name: 'credits back',
  help: `Usage
  tollgate credits back <request-id> … --reason <text> [--json]
  tollgate credits back - --reason <text> [--json] < ids

Gives back what was paid for calls, as entries of the journal: each call once, however often it is asked. So a command
that broke off is simply run again. The key's month stays as it was.
  -                 read request ids from standard input, with blanks or line ends between them
  --reason <text>   what the books say it was for
  --json            print the API's answers instead, one on each line for every ${limits.creditBackCallsMax.toLocaleString('en-US')} calls

It fails if a call was not found or is still in flight; the others are given back all the same.

Examples
  tollgate credits back req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --reason "refund, ticket 4711"
  tollgate credits back - --reason "leaked key" < fraud.ids

${CONNECTION_HELP}
${EXIT_HELP}`,
  async run(args) {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { ...CONNECTION_OPTIONS, reason: { type: 'string' }, json: { type: 'boolean' } },
    })
    const { reason } = values
    if (reason === undefined) throw new UsageError('--reason is required: what the books say it was for')
    const parts = checkedParts(await readIds(positionals))
    await withClient(values, async (client) => {
      const progress = createProgress('Crediting back')
      const total = parts.reduce((sum, part) => sum + part.length, 0)
      const summary = new Summary()
      try {
        for (const part of parts) {
          progress.show(summary.calls, total)
          const body = { request_ids: part, reason }
          const answer = await client.ask('POST', '/gateway/v1/credits', { body })
          summary.add(
            readAnswer(client, answer, creditBack, { request_ids: '<request-id>', reason: '--reason' }),
          )
          if (values.json === true) await print(`${answer.text}\n`)
        }
      } finally {
        progress.end()
      }
      if (values.json !== true) await print(summary.text())
      if (summary.isComplete) return
      process.stderr.write(summary.complaint())
      process.exitCode = 1
    })
  },
}

class Summary {
  calls = 0
  #nanos = 0n
  #balance = ''
  readonly #counts = new Map<string, number>()
  readonly #open: string[] = []
  readonly #missing: string[] = []

  add({ credited_usd, balance_usd, data }: z.infer<typeof creditBack>): void {
    this.#nanos += parseUsd(credited_usd) ?? 0n
    this.#balance = balance_usd
    for (const { request_id: id, outcome } of data) {
      this.calls += 1
      this.#counts.set(outcome, (this.#counts.get(outcome) ?? 0) + 1)
      if (outcome === 'in_flight') this.#open.push(id)
      if (outcome === 'not_found') this.#missing.push(id)
    }
  }

  get isComplete(): boolean {
    return this.#open.length === 0 && this.#missing.length === 0
  }

  text(): string {
    const credited = this.#counts.get('credited') ?? 0
    const others = [...this.#counts].filter(([outcome]) => outcome !== 'credited')
    return [
      `Given back ${formatUsd(this.#nanos)} USD for ${count(credited)}. The balance is ${shownText(this.#balance)} USD.`,
      ...others.map(([outcome, calls]) => `${shownText(OUTCOMES[outcome] ?? outcome)}: ${count(calls)}.`),
      '',
    ].join('\n')
  }

  complaint(): string {
    return (
      listed('Still in flight, ask again when they have ended', this.#open) +
      listed('There is no such call', this.#missing)
    )
  }
}

const OUTCOMES: Readonly<Record<string, string>> = {
  already_credited: 'Given back before',
  nothing_to_credit: 'Cost nothing',
  in_flight: 'Still in flight',
  not_found: 'Not found',
}

const LISTED_MAX = 20

function listed(what: string, ids: readonly string[]): string {
  if (ids.length === 0) return ''
  const more = ids.length > LISTED_MAX ? `\n  and ${ids.length - LISTED_MAX} more` : ''
  return `${what}:\n${ids
    .slice(0, LISTED_MAX)
    .map((id) => `  ${shownText(id)}`)
    .join('\n')}${more}\n`
}

function count(calls: number): string {
  return `${calls.toLocaleString('en-US')} ${calls === 1 ? 'call' : 'calls'}`
}

const IDS_MAX = 1_000_000

/** In the parts that the API takes. All are looked at before any is sent: a wrong list is to move no money. */
function checkedParts(ids: readonly string[]): string[][] {
  if (ids.length === 0)
    throw new UsageError('name one or more calls by their <request-id>, or - to read them')
  if (ids.length > IDS_MAX)
    throw new UsageError(`<request-id>: more than ${IDS_MAX.toLocaleString('en-US')} calls`)
  const known = new Set<string>()
  for (const id of ids) {
    if (known.has(id)) throw new UsageError(`<request-id>: ${shownText(id)} is there twice`)
    known.add(id)
  }
  const parts: string[][] = []
  for (let at = 0; at < ids.length; at += limits.creditBackCallsMax) {
    const part = ids.slice(at, at + limits.creditBackCallsMax)
    const [issue] = requestIds.safeParse(part).error?.issues ?? []
    const wrong = issue === undefined ? '' : shownText(part[Number(issue.path[0])] ?? '')
    if (issue !== undefined) throw new UsageError(`<request-id>: ${wrong} is none. ${issue.message}`)
    parts.push(part)
  }
  return parts
}

const STDIN_CHARS_MAX = 64 * 1024 * 1024

async function readIds(positionals: readonly string[]): Promise<string[]> {
  const named = positionals.filter((each) => each !== '-')
  if (named.length === positionals.length) return named
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk
    if (text.length > STDIN_CHARS_MAX) throw new UsageError('- : standard input has more than 64 MiB')
  }
  return [...named, ...text.split(/\s+/).filter((id) => id !== '')]
}
