import { formatUsd, type Nanos, withCommas } from '../kernel/money.ts'
import { toNanos } from './decimal.ts'
import {
  addTokens,
  NO_TOKENS,
  type RecordedRow,
  type ReportedRow,
  ReportedSum,
  TOKEN_KINDS,
  type TokenFigures,
  type TokenKind,
} from './figures.ts'

/** Compares what the gateway recorded with what the provider reports. Judged are sums per model over all days. */

export type Kind = TokenKind | 'cost'

export interface ComparedKind {
  readonly model: string
  readonly kind: Kind
  /** TokenFigures, or nanodollars. */
  readonly ours: bigint
  readonly reported: bigint
  readonly within: boolean
}

export interface ComparedDay {
  readonly day: string
  readonly model: string
  readonly tokens: TokenFigures
  readonly oursNanos: Nanos
  readonly reportedNanos: Nanos
}

export interface Comparison {
  readonly rows: readonly ComparedKind[]
  readonly days: readonly ComparedDay[]
  /** One sentence for each model beyond the tolerance. */
  readonly findings: readonly string[]
}

export interface CompareOptions {
  /** Millionths of the reported figure that may differ. */
  readonly toleranceMillionths: bigint
  /** The decimal places of a dollar in the unit of the reported amounts. */
  readonly placesOfDollar: 0 | 2
  /** The id of a model in the price book, for an id or alias. */
  nameOf(model: string): string
  /** Whether the provider reports the tokens of this model. */
  hasTokenReport(model: string): boolean
}

class ComparedSide {
  tokens: TokenFigures = NO_TOKENS
  nanos: Nanos = 0n
  calls = 0
  unpricedCalls = 0
  estimatedCalls = 0

  add(row: RecordedRow): void {
    this.tokens = addTokens(this.tokens, row.tokens)
    this.nanos += row.listNanos
    this.calls += row.calls
    this.unpricedCalls += row.unpricedCalls
    this.estimatedCalls += row.estimatedCalls
  }
}

export function compare(
  recorded: readonly RecordedRow[],
  reported: readonly ReportedRow[],
  options: CompareOptions,
): Comparison {
  const { nameOf } = options
  const ours = sumBy(recorded, ({ model }) => nameOf(model), ComparedSide)
  const theirs = sumBy(reported, ({ model }) => nameOf(model), ReportedSum)
  const models = [...new Set([...ours.keys(), ...theirs.keys()])].sort()
  const rows: ComparedKind[] = []
  const findings: string[] = []
  for (const model of models) {
    const one = ours.get(model) ?? new ComparedSide()
    const other = theirs.get(model) ?? new ReportedSum()
    const compared = compareModel(model, one, other, options)
    rows.push(...compared)
    if (compared.some(({ within }) => !within))
      findings.push(explain(model, compared, one, theirs.has(model)))
  }
  return { rows, days: daysOf(recorded, reported, options), findings }
}

function sumBy<Row, Sum extends { add(row: Row): void }>(
  rows: readonly Row[],
  keyOf: (row: Row) => string,
  Empty: new () => Sum,
): ReadonlyMap<string, Sum> {
  const sums = new Map<string, Sum>()
  for (const row of rows) {
    const sum = sums.get(keyOf(row)) ?? new Empty()
    sum.add(row)
    sums.set(keyOf(row), sum)
  }
  return sums
}

function compareModel(
  model: string,
  ours: ComparedSide,
  theirs: ReportedSum,
  { toleranceMillionths, placesOfDollar, hasTokenReport }: CompareOptions,
): readonly ComparedKind[] {
  const judge = (kind: Kind, one: bigint, other: bigint): ComparedKind => {
    const difference = one > other ? one - other : other - one
    return {
      model,
      kind,
      ours: one,
      reported: other,
      within: difference * 1_000_000n <= other * toleranceMillionths,
    }
  }
  const judgesTokens = theirs.hasTokens || hasTokenReport(model)
  const tokens = judgesTokens
    ? TOKEN_KINDS.map((kind) => judge(kind, ours.tokens[kind], theirs.tokens[kind])).filter(
        (row) => row.ours !== 0n || row.reported !== 0n,
      )
    : []
  return [...tokens, judge('cost', ours.nanos, toNanos(theirs.amount, placesOfDollar))]
}

function daysOf(
  recorded: readonly RecordedRow[],
  reported: readonly ReportedRow[],
  { nameOf, placesOfDollar }: CompareOptions,
): readonly ComparedDay[] {
  const keyOf = ({ day, model }: { readonly day: string; readonly model: string }) =>
    `${day} ${nameOf(model)}`
  const ours = sumBy(recorded, keyOf, ComparedSide)
  const theirs = sumBy(reported, keyOf, ReportedSum)
  return [...new Set([...ours.keys(), ...theirs.keys()])].sort().map((key) => {
    const one = ours.get(key)
    return {
      day: key.slice(0, 10),
      model: key.slice(11),
      tokens: one?.tokens ?? NO_TOKENS,
      oursNanos: one?.nanos ?? 0n,
      reportedNanos: toNanos(theirs.get(key)?.amount ?? new ReportedSum().amount, placesOfDollar),
    }
  })
}

const WORDS: Readonly<Record<Kind, string>> = {
  input: 'input',
  output: 'output',
  cache_read: 'cached',
  cache_write: 'cache write',
  cost: 'cost',
}

function explain(
  model: string,
  rows: readonly ComparedKind[],
  ours: ComparedSide,
  isReported: boolean,
): string {
  const notes = notesOn(ours)
  if (ours.calls === 0 && ours.nanos === 0n)
    return `${model}: only the provider reports it. Calls went past the gateway: compare only the gateway's key with --api-key-id, and revoke keys that nobody should use.`
  if (!isReported)
    return `${model}: only the gateway recorded it.${notes} The report may be late, or a filter excludes the key of the gateway.`
  const beyond = rows.filter(({ within }) => !within)
  const tokens = beyond.filter(({ kind }) => kind !== 'cost')
  if (tokens.length === 0) {
    const [cost] = beyond
    const side = (cost?.ours ?? 0n) > (cost?.reported ?? 0n) ? 'the gateway' : 'the provider'
    return `${model}: the tokens agree, but ${side} has the higher cost (${shown(cost)}).${notes} Check the price with \`tollgate prices\`, set it with \`tollgate prices set\`, then run \`tollgate rerate\`.`
  }
  const input = rows.find(({ kind }) => kind === 'input')
  const cached = rows.find(({ kind }) => kind === 'cache_read')
  if (input !== undefined && cached !== undefined && !input.within && cached.within) {
    const surplus = input.reported - input.ours
    if (surplus > 0n && surplus === cached.reported)
      return `${model}: the provider has more input tokens, exactly by its cached tokens (${shown(input)}). It counts cached tokens as input too.`
  }
  const higher = tokens.filter((row) => row.reported > row.ours)
  const lower = tokens.filter((row) => row.reported < row.ours)
  const said = [
    higher.length === 0 ? '' : `the provider has more ${list(higher)}`,
    lower.length === 0 ? '' : `the gateway has more ${list(lower)}`,
  ].filter((text) => text !== '')
  const advice =
    lower.length === 0
      ? 'Calls went past the gateway, or a call was lost: compare only the key of the gateway with --api-key-id.'
      : 'The report may be late, or a filter excludes the key of the gateway.'
  return `${model}: ${said.join(', and ')}.${notes} ${advice}`
}

function list(rows: readonly ComparedKind[]): string {
  return `${rows.map((row) => `${WORDS[row.kind]} tokens (${shown(row)})`).join(', ')}`
}

function shown(row: ComparedKind | undefined): string {
  if (row === undefined) return ''
  const write = row.kind === 'cost' ? (nanos: bigint) => `$${formatUsd(nanos)}` : withCommas
  return `${write(row.ours)} here, ${write(row.reported)} there`
}

function notesOn({ unpricedCalls, estimatedCalls }: ComparedSide): string {
  const parts = [
    unpricedCalls > 0 ? `${withCommas(unpricedCalls)} unpriced` : '',
    estimatedCalls > 0 ? `${withCommas(estimatedCalls)} estimated` : '',
  ].filter((text) => text !== '')
  return parts.length === 0 ? '' : ` Of the calls here, ${parts.join(' and ')}.`
}
