import { ScriptedUpstream } from '../support/scripted-upstream.ts'
import { sized } from '../support/wire-bytes.ts'

/** An upstream that shows the objects of a test, by method and path. Other requests get 404. */
export async function startShownUpstream() {
  const shown = new Map<string, Buffer>()
  const upstream = await ScriptedUpstream.start()
  const answer = (status: number, body: unknown) =>
    sized(`HTTP/1.1 ${status} Said`, ['Content-Type: application/json'], JSON.stringify(body))
  upstream.answer(({ method, target }) => [{ send: shown.get(`${method} ${target}`) ?? answer(404, {}) }])
  return {
    urls: { messagesUrl: upstream.url, chatUrl: `${upstream.url}/v1` },
    shows(what: string, body: unknown, status = 200) {
      shown.set(what, answer(status, body))
    },
    wasAsked: (what: string) =>
      upstream.requests.some(({ method, target }) => `${method} ${target}` === what),
    close: () => upstream.close(),
  }
}
