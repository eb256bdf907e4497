import type { JsonObject } from '../json.ts'
import type { OutputItem } from './output-items.ts'

/** Everything about a response that is decided before the first byte is sent. */
export interface ResponsePlan {
  readonly id: string
  readonly createdAt: number
  /** The members of the response object that the request decides. */
  readonly echo: JsonObject
  readonly items: readonly OutputItem[]
  readonly isIncomplete: boolean
  readonly usage: JsonObject | undefined
  readonly outputTokens: number
  readonly padding: string
}
