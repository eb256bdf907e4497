import { startPair } from '../support/pair.ts'
import { after, test } from '../support/suite.ts'
import { surfaces } from '../support/surfaces.ts'
import { chunked, sized } from '../support/wire-bytes.ts'
import { eventsOf, goldenStreams } from './golden-streams.ts'

const pair = await startPair()
after(() => pair.close())

const json = '{"id":"x","content":[{"type":"text","text":"h\\u00e9 \xc3\xa9"}],"usage":{"input_tokens":3}}\n'
const requestLines = ['Content-Type: application/json', 'User-Agent: Tester/1.0', 'Accept: application/json']

for (const surface of surfaces) {
  test(`${surface.name}: a JSON call`, async () => {
    const lines = [
      'Date: Sun, 15 Nov 2026 01:02:03 GMT',
      'Content-Type: application/json',
      'request-id: req_up',
    ]
    const request = pair.request(surface, { lines: requestLines, body: surface.jsonBody })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', lines, json) }])
    await pair.compare(surface, request, () => [{ send: chunked('HTTP/1.1 200 OK', lines, [json]) }])
  })

  test(`${surface.name}: a GET without a body`, async () => {
    const request = pair.request(surface, { method: 'GET', target: '/v1/models', lines: ['Accept: */*'] })
    await pair.compare(surface, request, () => [{ send: sized('HTTP/1.1 200 OK', [], json) }])
  })
}

for (const stream of goldenStreams) {
  test(`${stream.name}: an event stream`, async () => {
    const lines = [
      'content-type: text/event-stream; charset=utf-8',
      'cache-control: no-cache',
      'x-request-id: up',
    ]
    const request = pair.request(stream.surface, { target: stream.endpoint, body: stream.body })
    const reply = chunked('HTTP/1.1 200 OK', lines, eventsOf(stream.bytes))
    await pair.compare(stream.surface, request, () => [{ send: reply }])
  })

  test(`${stream.name}: an error event in the middle of a stream`, async () => {
    const events = [...eventsOf(stream.bytes).slice(0, 3), 'event: error\ndata: {"type":"error"}\n\n']
    // A response that upstream stores would be asked for, to be billed by its usage.
    const body = JSON.stringify({ ...JSON.parse(String(stream.body)), store: false })
    const request = pair.request(stream.surface, { target: stream.endpoint, body })
    const reply = chunked('HTTP/1.1 200 OK', ['content-type: text/event-stream'], events)
    await pair.compare(stream.surface, request, () => [{ send: reply }])
  })
}
