import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** Asks until there is an answer with this status, or with any. The milliseconds it took from `sinceMs` on. */
export async function untilAnswers(
  url: string,
  options: { readonly status?: number; readonly withinMs?: number; readonly sinceMs?: number } = {},
): Promise<number> {
  const { status, withinMs = 20_000, sinceMs = performance.now() } = options
  while (performance.now() - sinceMs < withinMs) {
    const answer = await statusOf(url)
    if (answer !== null && (status === undefined || answer === status)) return performance.now() - sinceMs
    await sleep(1)
  }
  throw new Error(`${url} did not answer within ${withinMs} ms`)
}

function statusOf(url: string): Promise<number | null> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode ?? null)
    })
    request.on('error', () => resolve(null))
  })
}
