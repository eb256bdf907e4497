import type { ShowCall, ShownCall } from '../gateway/gateway.ts'
import { formatUsd } from '../kernel/money.ts'
import type { Look } from './look.ts'
import { shownText } from './shown-text.ts'

/** A line for each call, for whoever sits before the gateway. `write` must not wait for anybody. */
export function createCallLines(write: (line: string) => void, look: Look): ShowCall {
  return (call) => write(`${callLine(call, look)}\n`)
}

/** Time (UTC), method and path, model, status, tokens, cost and milliseconds. */
export function callLine(call: ShownCall, look: Look): string {
  const { atMs, method, path, model, status, code, tokens, costNanos, ms } = call
  const answered = `${status ?? 'no answer'}${code === null ? '' : ` ${code}`}`
  const style = status !== null && status < 400 ? 'green' : 'red'
  return [
    look.paint('dim', new Date(atMs).toISOString().slice(11, 19)),
    `${shownText(method, 20)} ${shownText(path, 60)}`,
    model === null ? '-' : shownText(model, 40),
    look.paint(style, answered),
    ...(tokens === null ? [] : [shownTokens(tokens)]),
    `${formatUsd(costNanos)} USD`,
    `${Math.round(ms)} ms`,
  ].join('  ')
}

function shownTokens({ input, output, cacheRead, cacheWrite }: NonNullable<ShownCall['tokens']>): string {
  const cached = cacheRead === 0 ? '' : ` + ${cacheRead} cached`
  const written = cacheWrite === 0 ? '' : ` + ${cacheWrite} to cache`
  return `${input}${cached}${written} in, ${output} out`
}
