import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Knows our documented options and fails on others. `CURL_EXPECTS` names the status; '' is any below 400. */
export function curlStandIn(): { readonly folder: string; dispose(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-curl-'))
  const file = join(folder, 'curl')
  writeFileSync(file, `#!${process.execPath}\n${script}`)
  chmodSync(file, 0o755)
  return { folder, dispose: () => rmSync(folder, { recursive: true }) }
}

const script = `
const args = process.argv.slice(2)
let url, body, method, ca, showHead = false, fail = false
const headers = {}
while (args.length > 0) {
  const arg = args.shift()
  if (/^-[sSfiN]+$/.test(arg)) {
    if (arg.includes('i')) showHead = true
    if (arg.includes('f')) fail = true
  }
  else if (arg === '-X') method = args.shift()
  else if (arg === '-H') {
    const [name, value] = args.shift().split(/: (.*)/s)
    headers[name.toLowerCase()] = value
  }
  else if (arg === '-d') {
    body = args.shift()
    if (body.startsWith('@')) body = require('node:fs').readFileSync(body.slice(1), 'utf8').replace(/[\\r\\n]/g, '')
  }
  else if (arg === '--cacert') ca = require('node:fs').readFileSync(args.shift(), 'utf8')
  else if (arg.startsWith('http')) url = arg
  else throw new Error('unknown option ' + arg)
}
if (body !== undefined) headers['content-type'] ??= 'application/x-www-form-urlencoded'
const stop = (code, message) => {
  console.error('curl: (' + code + ') ' + message)
  process.exit(code)
}
const pairs = (raw) => raw.flatMap((name, at) => (at % 2 === 0 ? [name + ': ' + raw[at + 1]] : []))
const { request: open } = require(url.startsWith('https:') ? 'node:https' : 'node:http')
const request = open(url, { method: method ?? (body === undefined ? 'GET' : 'POST'), headers, ca })
request.on('error', (error) => stop(7, error.message))
request.on('response', async (response) => {
  const chunks = []
  for await (const chunk of response) chunks.push(chunk)
  const text = Buffer.concat(chunks)
  const expects = process.env.CURL_EXPECTS
  if (expects !== undefined && (expects || response.statusCode >= 400) && expects !== String(response.statusCode)) {
    stop(22, url + ' answered ' + response.statusCode + ', expected ' + (expects || 'no error') + ': ' + text)
  }
  if (fail && response.statusCode >= 400) stop(22, 'The requested URL returned error: ' + response.statusCode)
  const head = ['HTTP/1.1 ' + response.statusCode + ' ' + response.statusMessage, ...pairs(response.rawHeaders)]
  if (showHead) console.log(head.join('\\n') + '\\n')
  process.stdout.write(text)
  if (showHead && response.rawTrailers.length > 0) console.log(pairs(response.rawTrailers).join('\\n'))
})
request.end(body)
`
