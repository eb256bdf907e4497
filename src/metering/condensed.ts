import type { NameSet } from './name-set.ts'

export interface CondenseRules {
  /** Members of the outermost object that matter. The values of all others become null. */
  readonly keep: NameSet
  /** Members of objects below it whose values do not matter, wherever they are, and become null. */
  readonly drop: NameSet
}

/** How many containers may be open. A member with more becomes null. */
export const DEPTH_MAX = 256

export interface CondenseLimits {
  /** Strings are kept whole until they add up to this; from then on only their first bytes. */
  readonly textBytesMax: number
  readonly longStringBytesMax: number
  /** A member of the outermost object, or of an object that is one, which is longer even so becomes null. */
  readonly memberBytesMax: number
  readonly documentBytesMax: number
}

export const CONDENSE_LIMITS: CondenseLimits = {
  textBytesMax: 128 * 1024,
  longStringBytesMax: 256,
  memberBytesMax: 1024 * 1024,
  documentBytesMax: 4 * 1024 * 1024,
}

export type Condensed =
  | {
      readonly kind: 'json'
      readonly text: string
      /** How many member names `text` has: more than its value has when some are given twice. */
      readonly names: number
      /** Something that may matter was too long and is null now. */
      readonly overflow: boolean
    }
  | { readonly kind: 'too_large' }

/** The copy without its long strings, and with them: what is only to be looked into if somebody asks for text. */
export interface TwoCopies {
  readonly brief: Condensed
  readonly whole: Condensed
}
