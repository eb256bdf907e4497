import { setTimeout as sleep } from 'node:timers/promises'
import { type ApiCommand, prepareRequest } from './api-command.ts'
import type { CommandOptions } from './client.ts'
import { outputStyle, print, shownInstant, shownText } from './terminal.ts'

const EVERY_MS = 1_000
const PAGE = 200

/** Prints each call once when it has ended, until the command is interrupted. Calls that ended before are not printed. */
export async function followCalls(
  row: ApiCommand,
  args: ReadonlyMap<string, string>,
  options: CommandOptions,
): Promise<never> {
  const { client, path, query } = await prepareRequest(row, args, { ...options, limit: String(PAGE) })
  const style = outputStyle(options)
  const printed = new Set<string>()
  for (let isFirst = true; ; isFirst = false) {
    const { data } = await client.list('/gateway/v1/requests', query, path)
    const ended = data.filter(({ id, state }) => !/^(?:waiting|in_flight)$/.test(state) && !printed.has(id))
    for (const call of ended.toReversed()) {
      printed.add(call.id)
      if (isFirst) continue
      const {
        started_at: at,
        id,
        key_name: key,
        model_served: served,
        model,
        state,
        status,
        cost_usd: cost,
      } = call
      const cells = [
        shownInstant(at),
        id,
        key ?? '-',
        served ?? model ?? '-',
        status ?? state,
        `${cost ?? '-'} USD`,
      ]
      const line = options.json
        ? JSON.stringify(call)
        : cells.map((cell) => shownText(String(cell), 40)).join('  ')
      await print(`${status !== null && Number(status) >= 400 ? style.paint('red', line) : line}\n`)
    }
    await sleep(EVERY_MS)
  }
}
