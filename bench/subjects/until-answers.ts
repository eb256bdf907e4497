import { get } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

/** Polls until an answer has this status, or any where none is given. Resolves with the milliseconds since `sinceMs`. */
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
