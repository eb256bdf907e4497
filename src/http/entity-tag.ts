import { createHash } from 'node:crypto'
import { type RawHeaders, tokensOf } from './raw-headers.ts'

/** A strong entity tag of this content. What is behind it tells its codings apart. */
export function entityTag(content: string | Uint8Array, behind = ''): string {
  return `"${createHash('sha256').update(content).digest('hex').slice(0, 32)}${behind}"`
}

/** Whether the client has what bears this tag already. Tags of ours have no capital letters. */
export function hasTagged(headers: RawHeaders, tag: string): boolean {
  const known = tokensOf(headers, 'if-none-match').map((token) => token.replace(/^w\//, ''))
  return known.includes('*') || known.includes(tag)
}
