import type { Nanos } from '../kernel/money.ts'
import { addDecimals, type Decimal, ZERO } from './decimal.ts'

export const TOKEN_KINDS = ['input', 'output', 'cache_read', 'cache_write'] as const

export type TokenKind = (typeof TOKEN_KINDS)[number]

export type TokenFigures = Readonly<Record<TokenKind, bigint>>

export const NO_TOKENS: TokenFigures = { input: 0n, output: 0n, cache_read: 0n, cache_write: 0n }

/** Fees that providers report apart from the tokens of a model. They stand in the table as rows of their own. */
export const FEES = ['web searches', 'file searches', 'containers'] as const

export type Fee = (typeof FEES)[number]

/** What the gateway recorded for one day and model, or for one day and fee. */
export interface RecordedRow {
  readonly day: string
  readonly model: string
  readonly tokens: TokenFigures
  readonly listNanos: Nanos
  readonly calls: number
  readonly unpricedCalls: number
  readonly estimatedCalls: number
}

/** What a provider reports for one day and model. Its answers state tokens and amounts in separate reports. */
export interface ReportedRow {
  readonly day: string
  readonly model: string
  /** Null: the report states only an amount. */
  readonly tokens: TokenFigures | null
  /** In the unit of the report. Null: the report states only tokens. */
  readonly amount: Decimal | null
}

export function addTokens(one: TokenFigures, other: TokenFigures): TokenFigures {
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cache_read: one.cache_read + other.cache_read,
    cache_write: one.cache_write + other.cache_write,
  }
}

export class ReportedSum {
  tokens: TokenFigures = NO_TOKENS
  amount: Decimal = ZERO
  /** Whether a report of tokens names the model. Images and Realtime have only amounts. */
  hasTokens = false

  add({ tokens, amount }: ReportedRow): void {
    if (tokens !== null) {
      this.tokens = addTokens(this.tokens, tokens)
      this.hasTokens = true
    }
    if (amount !== null) this.amount = addDecimals(this.amount, amount)
  }
}
