import { createHash } from 'node:crypto'
import type { Exchange } from '../http/exchange.ts'
import { valuesOf } from '../http/raw-headers.ts'
import type { Once } from '../kernel/once.ts'
import { type Checked, refused } from './check-input.ts'

export const ONCE_HEADER = 'Idempotency-Key'

/** What the sender calls this command, or null where it gave it no name. */
export function readOnce(
  { method, headers }: Pick<Exchange, 'method' | 'headers'>,
  path: string,
  body: Buffer,
  sender: { readonly accountId: string; readonly atMs: number },
): Checked<Once | null> {
  const names = new Set(valuesOf(headers, ONCE_HEADER.toLowerCase()))
  if (names.size > 1) return refused(`${ONCE_HEADER} is there twice with different values.`, ONCE_HEADER)
  const [name] = names
  if (name === undefined) return { kind: 'ok', value: null }
  if (!/^[\x20-\x7e]{1,255}$/.test(name)) {
    return refused(`${ONCE_HEADER} must have 1 to 255 printable ASCII characters.`, ONCE_HEADER)
  }
  // Neither a method nor a path has a blank or a line end in it, so the three cannot be mistaken for one another.
  const fingerprint = createHash('sha256').update(`${method} ${path}\n`).update(body).digest()
  return { kind: 'ok', value: { ...sender, name, fingerprint } }
}
