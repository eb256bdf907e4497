import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import { array, type Infer, object, string } from './answer-schema.ts'
import { amountField, defineApiCommand, idempotencyKey, onceKey, printAnswer } from './api.ts'
import { defineGroup, flag, option, UsageError } from './command.ts'
import { createProgress } from './progress.ts'
import { counted, print, printUnread, shownCount, shownText } from './terminal.ts'

const reason = option('<text>', 'what the books say it was for')

function requiredReason(given: string | undefined): string {
  if (given === undefined) throw new UsageError('--reason is required: what the books say it was for')
  return given
}

const credit = object({ id: string, amount_usd: string, balance_usd: string })

const add = defineApiCommand({
  name: 'credits add',
  summary: ['<amount> --reason <text>', 'add prepaid credit to the account'],
  usage: 'tollgate credits add <amount> --reason <text> [--idempotency-key <text>] [--json]',
  about: `Adds prepaid credit to the account, in USD with at most 9 decimals. From the first time on, calls are admitted only
while there is credit left.`,
  options: {
    reason,
    'idempotency-key': idempotencyKey('repeating the command with the same text adds nothing more'),
    json: flag("print the API's answer instead"),
  },
  params: { amount_usd: '<amount>' },
  examples: [
    'tollgate credits add 500 --reason "invoice 2026-114"',
    'tollgate credits add 0.25 --reason trial --idempotency-key trial-42',
  ],
  takesArguments: true,
  run(values, [amount, ...more]) {
    if (amount === undefined || more.length > 0) throw new UsageError('name one <amount> in USD, such as 500')
    const body = { amount_usd: amountField(amount), reason: requiredReason(values.reason) }
    return async (api) => {
      const answer = await api.ask(credit, 'POST', '/gateway/v1/credits', {
        body,
        idempotencyKey: onceKey(values),
      })
      const repeated = answer.headers.get('idempotent-replayed') === 'true'
      const done = repeated ? 'Added before, and not again:' : 'Added'
      await printAnswer(values, answer, ({ id, amount_usd, balance_usd }) => {
        const [sum, balance] = [shownText(amount_usd), shownText(balance_usd)]
        return `${done} ${sum} USD as ${shownText(id)}. The balance is ${balance} USD.\n`
      })
    }
  },
})

const creditBack = object({
  credited_usd: string,
  balance_usd: string,
  data: array(object({ request_id: string, outcome: string })),
})

const back = defineApiCommand({
  name: 'credits back',
  summary: ['<request-id> … --reason <text>', 'give back what calls cost, each once'],
  usage: [
    'tollgate credits back <request-id> … --reason <text> [--json]',
    'tollgate credits back - --reason <text> [--json] < ids',
  ],
  about: `Gives back what was paid for calls, as entries of the journal: each call once, however often it is asked. So a command
that broke off is simply run again. The key's month stays as it was.
  -                read request ids from standard input, with blanks or line ends between them`,
  options: {
    reason,
    json: flag(
      `print the API's answers instead, one on each line for every ${shownCount(limits.creditBackCallsMax)} calls`,
    ),
  },
  params: { request_ids: '<request-id>' },
  notes: 'It fails if a call was not found or is still in flight; the others are given back all the same.',
  examples: [
    'tollgate credits back req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --reason "refund, ticket 4711"',
    'tollgate credits back - --reason "leaked key" < fraud.ids',
  ],
  takesArguments: true,
  async run(values, args) {
    const reason = requiredReason(values.reason)
    const parts = await checkedParts(await readIds(args))
    return async (api) => {
      const progress = createProgress('Crediting back')
      const total = parts.reduce((sum, part) => sum + part.length, 0)
      const answers: Infer<typeof creditBack>[] = []
      try {
        let done = 0
        for (const part of parts) {
          progress.show(done, total)
          const body = { request_ids: part, reason }
          const { text, value } = await api.ask(creditBack, 'POST', '/gateway/v1/credits', { body })
          answers.push(value)
          done += part.length
          if (values.json) await printUnread(`${text}\n`)
        }
      } finally {
        progress.end()
      }
      const outcomes = Map.groupBy(
        answers.flatMap(({ data }) => data),
        ({ outcome }) => outcome,
      )
      if (!values.json) await print(summaryOf(answers, outcomes))
      const complaint =
        listed('Still in flight, ask again when they have ended', outcomes.get('in_flight')) +
        listed('There is no such call', outcomes.get('not_found'))
      if (complaint === '') return
      process.stderr.write(complaint)
      process.exitCode = 1
    }
  },
})

type Credited = Infer<typeof creditBack>['data'][number]

const OUTCOMES: Readonly<Record<string, string>> = {
  already_credited: 'Given back before',
  nothing_to_credit: 'Cost nothing',
  in_flight: 'Still in flight',
  not_found: 'Not found',
}

function summaryOf(
  answers: readonly Infer<typeof creditBack>[],
  outcomes: ReadonlyMap<string, readonly Credited[]>,
): string {
  const nanos = answers.reduce((sum, { credited_usd }) => sum + (parseUsd(credited_usd) ?? 0n), 0n)
  const credited = counted(outcomes.get('credited')?.length ?? 0, 'call')
  const balance = shownText(answers.at(-1)?.balance_usd ?? '')
  const others = [...outcomes].filter(([outcome]) => outcome !== 'credited')
  return [
    `Given back ${formatUsd(nanos)} USD for ${credited}. The balance is ${balance} USD.`,
    ...others.map(
      ([outcome, calls]) => `${shownText(OUTCOMES[outcome] ?? outcome)}: ${counted(calls.length, 'call')}.`,
    ),
    '',
  ].join('\n')
}

const LISTED_MAX = 20

function listed(what: string, calls: readonly Credited[] = []): string {
  if (calls.length === 0) return ''
  const lines = calls.slice(0, LISTED_MAX).map(({ request_id }) => `  ${shownText(request_id)}\n`)
  const more = calls.length > LISTED_MAX ? `  and ${calls.length - LISTED_MAX} more\n` : ''
  return `${what}:\n${lines.join('')}${more}`
}

const IDS_MAX = 1_000_000

/** The ids in batches that the API takes. All ids are checked before any is sent: a wrong list is to move no money. */
async function checkedParts(ids: readonly string[]): Promise<string[][]> {
  if (ids.length === 0)
    throw new UsageError('name one or more calls by their <request-id>, or - to read them')
  if (ids.length > IDS_MAX) throw new UsageError(`<request-id>: more than ${shownCount(IDS_MAX)} calls`)
  const known = new Set<string>()
  for (const id of ids) {
    if (known.has(id)) throw new UsageError(`<request-id>: ${shownText(id)} is there twice`)
    known.add(id)
  }
  const { requestIds } = await import('../management/credits.ts')
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

async function readIds(args: readonly string[]): Promise<string[]> {
  const named = args.filter((each) => each !== '-')
  if (named.length === args.length) return named
  let text = ''
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk
    if (text.length > STDIN_CHARS_MAX) throw new UsageError('- : standard input has more than 64 MiB')
  }
  return [...named, ...text.split(/\s+/).filter((id) => id !== '')]
}

/** Moves money on the account, over HTTP or on the data directory. */
export const command = defineGroup(
  'credits',
  'Each has options of its own: tollgate credits add --help, tollgate credits back --help.',
  [add, back],
)
