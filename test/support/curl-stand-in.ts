import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * A folder with a `curl` that knows the options our documentation uses (-s, -S, -f, -i, -H, -d, --cacert) and nothing else,
 * because a bare machine has none. An option that is not known fails, so the documentation cannot outgrow it unseen.
 */
export function curlStandIn(): { readonly folder: string; dispose(): void } {
  const folder = mkdtempSync(join(tmpdir(), 'tollgate-curl-'))
  const file = join(folder, 'curl')
  writeFileSync(file, `#!${process.execPath}\n${script}`)
  chmodSync(file, 0o755)
  return { folder, dispose: () => rmSync(folder, { recursive: true }) }
}

const script = `
const args = process.argv.slice(2)
let url, body, showHead = false, fail = false
const headers = []
while (args.length > 0) {
  const arg = args.shift()
  if (/^-[sSfi]+$/.test(arg)) {
    if (arg.includes('i')) showHead = true
    if (arg.includes('f')) fail = true
  }
  else if (arg === '-H') headers.push(args.shift().split(/: (.*)/s).slice(0, 2))
  else if (arg === '-d') {
    body = args.shift()
    if (body.startsWith('@')) body = require('node:fs').readFileSync(body.slice(1), 'utf8').replace(/[\\r\\n]/g, '')
  }
  else if (arg === '--cacert') {
    require('node:tls').setDefaultCACertificates([require('node:fs').readFileSync(args.shift(), 'utf8')])
  }
  else if (arg.startsWith('http')) url = arg
  else throw new Error('unknown option ' + arg)
}
if (body !== undefined && !headers.some(([name]) => name.toLowerCase() === 'content-type')) {
  headers.push(['content-type', 'application/x-www-form-urlencoded'])
}
fetch(url, { method: body === undefined ? 'GET' : 'POST', headers, body }).then(async (response) => {
  if (fail && response.status >= 400) {
    console.error('curl: (22) The requested URL returned error: ' + response.status)
    process.exit(22)
  }
  if (showHead) {
    console.log('HTTP/1.1 ' + response.status + ' ' + response.statusText)
    for (const [name, value] of response.headers) console.log(name + ': ' + value)
    console.log()
  }
  process.stdout.write(Buffer.from(await response.arrayBuffer()))
})
`
