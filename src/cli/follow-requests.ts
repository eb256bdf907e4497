import { setTimeout as pause } from 'node:timers/promises'
import { callTable } from './call-table.ts'
import { CallFollower } from './follow-calls.ts'
import { Unreachable } from './http-client.ts'
import { type LoggedCall, type LogQuery, readCalls } from './logged-call.ts'
import type { Look } from './look.ts'
import type { ManagementClient } from './management-client.ts'
import { print } from './print.ts'
import type { OptionNames } from './read-answer.ts'

const LOOK_EVERY_MS = 1_000

export interface Followed {
  readonly path: string
  readonly filter: LogQuery
  readonly options: OptionNames
  /** How many earlier calls are shown first. */
  readonly limit: number
  readonly asJson: boolean
}

/** Prints calls as they become final, until it is interrupted. */
export async function followRequests(
  client: ManagementClient,
  followed: Followed,
  look: Look,
): Promise<void> {
  const { path, filter, options, limit, asJson } = followed
  const stopping = new AbortController()
  const stop = () => stopping.abort()
  // Only once: who presses it again wants it to end whatever it is doing.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stop)
  const { signal } = stopping
  const list = (query: LogQuery) => readCalls(client, path, query, options, signal)
  const follower = new CallFollower(list, filter)
  const table = callTable(look)
  const show = async (calls: readonly LoggedCall[]) => {
    for (const call of calls) await print(asJson ? `${call.json}\n` : table.line(call))
  }
  try {
    const earlier = await follower.begin(limit)
    if (!asJson) await print(table.title)
    await show(earlier)
    let isLost = false
    while (!signal.aborted) {
      await pause(LOOK_EVERY_MS, undefined, { signal })
      try {
        await show(await follower.look())
        if (isLost) process.stderr.write('The gateway answers again.\n')
        isLost = false
      } catch (error) {
        if (signal.aborted || !(error instanceof Unreachable)) throw error
        // A gateway that restarts is no reason to stop looking; what ends meanwhile is found afterwards.
        if (!isLost) process.stderr.write(`${error.message}\nTrying again until it answers, or Ctrl-C.\n`)
        isLost = true
      }
    }
  } catch (error) {
    if (!signal.aborted) throw error
  }
}
