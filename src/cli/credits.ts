import type { Command } from 'commander'
import { limits } from '../kernel/limits.ts'
import { formatUsd, parseUsd } from '../kernel/money.ts'
import { type FieldOption, type Listing, registerAll } from './api-command.ts'
import type { ApiAnswer, Client, CommandOptions, ObjectOf } from './client.ts'
import { Failure, UsageError } from './command.ts'
import { connect } from './find-by-name.ts'
import { counted, print, printIgnoringClosedPipe, shownText, shownUsd } from './terminal.ts'

const PATH = '/gateway/v1/credits'

const LEDGER: Listing = {
  noun: 'entries',
  columns: {
    at: 'created_at',
    entry: 'id',
    kind: 'kind',
    'amount (USD)': 'amount_usd',
    'balance after': 'balance_after_usd',
    by: 'actor.name|actor.kind',
    reason: 'reason',
  },
  dispensable: ['entry', 'by'],
}

const REASON: FieldOption = [
  '--reason <text>',
  'reason',
  'reason, as recorded in the ledger',
  { isRequired: true },
]

const LIST = { listing: LEDGER, examples: ['tollgate credits list --limit 20'] }

const ADD = {
  options: [REASON],
  once: true,
  help: '\nA negative amount is a correction.',
  examples: [
    'tollgate credits add 500 --reason "invoice 2026-114"',
    'tollgate credits add --reason "typo in invoice 2026-114" -- -50',
  ],
  show: printAdded,
} as const

const BACK = {
  options: [REASON],
  help: '\nWith - as the id, ids are read from standard input. An interrupted command can be repeated.',
  examples: [
    'tollgate credits back req_01JCN1ZV5M3T9Q8W7E6R5T4Y3X --reason "refund, ticket 4711"',
    'tollgate credits back - --reason "leaked key" < fraud.ids',
  ],
}

export function register(group: Command): void {
  if (group.name() === 'balance') {
    registerAll(group, 'balance', [['', '', 'GET', '/gateway/v1/balance']])
    return
  }
  const [, , creditBackCommand] = registerAll(group, 'credit', [
    ['list', 'list the credit ledger, newest first', 'GET', PATH, LIST],
    ['add <amount_usd>', 'add prepaid credit, in USD', 'POST', PATH, ADD],
    ['back <request-id...>', 'credit the cost of calls back, once for each call', 'POST', PATH, BACK],
  ])
  creditBackCommand?.action(creditBack)
}

async function printAdded({ value, headers }: ApiAnswer<ObjectOf<'credit'>>): Promise<void> {
  const { amount_usd: amount, balance_after_usd: after, id } = value
  const done = amount.startsWith('-') ? 'Removed' : 'Added'
  const isReplay = headers.get('idempotent-replayed') === 'true'
  const summary = isReplay ? `Already ${done.toLowerCase()} by an earlier run of this command:` : done
  const sum = shownUsd(amount.replace('-', ''))
  await print(`${summary} ${sum} as ${shownText(id)}. The balance is ${shownUsd(after)}.\n`)
}

type AddedBack = ObjectOf<'credit'>

type Outcomes = {
  readonly [Name in 'credited' | 'already_credited' | 'not_credited']: NonNullable<AddedBack[Name]>
}

async function creditBack(args: readonly string[], options: CommandOptions): Promise<void> {
  const ids = checkedIds(await readIds(args))
  const client = await inAccountOf(ids[0] ?? '', options)
  const entries: AddedBack[] = []
  const outcomes: Outcomes[] = []
  for (let at = 0; at < ids.length; at += limits.creditBackCallsMax) {
    const body = { request_ids: ids.slice(at, at + limits.creditBackCallsMax), reason: options['reason'] }
    try {
      const answer = await client.request('credit', 'POST', PATH, { body })
      entries.push(answer.value)
      outcomes.push(answer.value as Outcomes)
      if (options.json) await printIgnoringClosedPipe(`${answer.text}\n`)
    } catch (error) {
      // Nothing is left to credit, for example after an interrupted command.
      const details = error instanceof Failure ? (error.details as Partial<Outcomes> | null) : null
      if (details?.not_credited === undefined) throw error
      outcomes.push(details as Outcomes)
    }
  }
  await printOutcomes(entries, outcomes, options)
}

/** Calls are credited in their own account: that of the first call, unless the command names one. */
async function inAccountOf(requestId: string, options: CommandOptions): Promise<Client> {
  const client = await connect(options)
  if ((await client.everyAccount()) === undefined) return client
  const path = `/gateway/v1/requests/${encodeURIComponent(requestId)}`
  try {
    const { value } = await client.request('request', 'GET', path, { query: { wait: '0' } })
    return client.inAccount(value.account_id)
  } catch (error) {
    // The credit is then refused, which names the call.
    if (error instanceof Failure && error.code === 'not_found') return client
    throw error
  }
}

/** Prints the outcome of each call. If some calls may need another attempt, it names them and the command fails. */
async function printOutcomes(
  entries: readonly AddedBack[],
  outcomes: readonly Outcomes[],
  { json }: CommandOptions,
): Promise<void> {
  const others = outcomes.flatMap(({ not_credited }) => not_credited)
  const idsOf = (why: string) =>
    others.filter(({ reason }) => reason === why).map(({ request_id }) => `  ${shownText(request_id)}\n`)
  const [free, inFlight, missing] = ['nothing_to_credit', 'in_flight', 'not_found'].map(idsOf)
  const counts = [
    ['Already credited', outcomes.flatMap(({ already_credited }) => already_credited)],
    ['Free calls, so there is nothing to credit back', free],
    ['Still in flight', inFlight],
    ['Not found', missing],
  ] as const
  const nanos = entries.reduce((sum, { amount_usd }) => sum + (parseUsd(amount_usd) ?? 0n), 0n)
  const calls = outcomes.reduce((sum, { credited }) => sum + credited.length, 0)
  const last = entries.at(-1)
  const balance = last === undefined ? '' : ` The balance is ${shownUsd(last.balance_after_usd)}.`
  const lines = [
    `Credited ${shownUsd(formatUsd(nanos))} for ${counted(calls, 'call')}.${balance}\n`,
    ...counts.flatMap(([label, ids = []]) =>
      ids.length === 0 ? [] : [`${label}: ${counted(ids.length, 'call')}.\n`],
    ),
  ]
  if (!json) await print(lines.join(''))
  for (const [label, ids = []] of [
    ['Still in flight. Repeat the command when these calls have ended', inFlight],
    ['Not found', missing],
  ] as const) {
    if (ids.length === 0) continue
    const more = ids.length > NAMED_MAX ? `  and ${ids.length - NAMED_MAX} more\n` : ''
    process.stderr.write(`${label}:\n${ids.slice(0, NAMED_MAX).join('')}${more}`)
    process.exitCode = 1
  }
}

const NAMED_MAX = 20
const REQUEST_ID = /^req_[0-9A-HJKMNP-TV-Z]{26}$/

/** Checks all ids before the request, so that a wrong list does not change any balance. */
function checkedIds(ids: readonly string[]): readonly string[] {
  if (ids.length === 0)
    throw new UsageError('Give the request ids of the calls, or - to read them from standard input.')
  const wrong = ids.find((id) => !REQUEST_ID.test(id))
  if (wrong !== undefined)
    throw new UsageError(`${shownText(wrong)} is not a request id. It must be \`req_\` followed by a ULID.`)
  if (new Set(ids).size < ids.length)
    throw new UsageError('A request id occurs twice. List each request id once.')
  return ids
}

async function readIds(args: readonly string[]): Promise<string[]> {
  const named = args.filter((each) => each !== '-')
  if (named.length === args.length) return named
  const { text } = await import('node:stream/consumers')
  const given = (await text(process.stdin)).split(/\s+/)
  return [...named, ...given.filter((id) => id !== '')]
}
