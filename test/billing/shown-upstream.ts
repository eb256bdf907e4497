import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import type { Step } from '../support/upstream-script.ts'
import { sized } from '../support/wire-bytes.ts'

interface StreamEvent {
  readonly type: string
  readonly response?: unknown
}

const written = (event: StreamEvent) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`

/** An upstream that serves the objects of a test by method and path. Other requests get 404. */
export async function startShownUpstream() {
  const shown = new Map<string, readonly Step[]>()
  const upstream = await ScriptedUpstream.start()
  const answerText = (status: number, text: string) =>
    sized(`HTTP/1.1 ${status} Said`, ['Content-Type: application/json'], text)
  const answer = (status: number, body: unknown) => answerText(status, JSON.stringify(body))
  upstream.answer(({ method, target }) => shown.get(`${method} ${target}`) ?? [{ send: answer(404, {}) }])
  return {
    urls: upstream.urls,
    shows(what: string, body: unknown, status = 200) {
      shown.set(what, [{ send: answer(status, body) }])
    },
    showsText(what: string, text: string) {
      shown.set(what, [{ send: answerText(200, text) }])
    },
    /** Begins a stream with an event; `rest` ends it, with the last event if given. */
    streams(what: string, event: StreamEvent, rest: Promise<unknown>, last: StreamEvent | null = null) {
      const head = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n'
      const end = last === null ? [] : [{ send: written(last) }]
      shown.set(what, [{ send: head + written(event) }, { pause: rest }, ...end, { close: true }])
    },
    wasAsked: (what: string) =>
      upstream.requests.some(({ method, target }) => `${method} ${target}` === what),
    close: () => upstream.close(),
    [Symbol.asyncDispose]: () => upstream.close(),
  }
}
