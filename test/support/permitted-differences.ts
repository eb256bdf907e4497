import { headerName, headerValues } from './wire-message.ts'

/** How a call through the gateway may differ from a direct one; the rest is compared byte for byte. */

type Rule = { names: readonly string[]; reason: string }

export const surfaceNames = ['messages', 'chat'] as const
export type SurfaceName = (typeof surfaceNames)[number]

/** Credentials are removed from every request; the provider's own credential replaces the first. */
const credentials: Rule = {
  names: ['authorization', 'x-api-key', 'api-key'],
  reason: 'the client holds a key of the gateway; upstream must see the operator’s',
}

const accountSelectors: Rule = {
  names: ['proxy-authorization', 'cookie', 'openai-organization', 'openai-project', 'anthropic-workspace-id'],
  reason: 'they name an account, and the account is the operator’s',
}

const hopByHop: Rule = {
  names: [
    'connection',
    'keep-alive',
    'proxy-connection',
    'te',
    'trailer',
    'upgrade',
    'http2-settings',
    'proxy-authenticate',
    'expect',
  ],
  reason: 'they speak of one connection, and the gateway has two; it answers Expect itself',
}

const forwarding: Rule = {
  names: ['forwarded', 'via', 'x-real-ip', 'cf-connecting-ip'],
  reason: 'claims about the way here that a client can forge and upstream might believe',
}

const methodOverrides: Rule = {
  names: ['x-http-method-override', 'x-http-method', 'x-method-override'],
  reason: 'they ask for another method than the one that was metered and admitted',
}

const requestFraming: Rule = {
  names: ['host', 'content-length', 'transfer-encoding'],
  reason: 'framed anew for the hop: their place and case are the client library’s',
}

const replyFraming: Rule = {
  names: [
    'connection',
    'keep-alive',
    'proxy-connection',
    'proxy-authenticate',
    'transfer-encoding',
    'upgrade',
  ],
  reason: 'they speak of the upstream connection; the client has another one',
}

/** Our own figures: added to replies, and ignored when a client or an upstream sends them. */
const ownPrefix = 'x-svc-'
const forwardedPrefix = 'x-forwarded-'

/** Headers that a message needs end to end: Connection cannot remove them. */
const endToEnd = new Set([
  'content-length',
  'transfer-encoding',
  'host',
  'content-type',
  'content-encoding',
  'accept',
  'user-agent',
  'anthropic-version',
  'anthropic-beta',
  'openai-beta',
  ...credentials.names,
])

function nominated(lines: readonly string[]): Set<string> {
  const names = headerValues(lines, 'connection').flatMap((value) => value.split(','))
  return new Set(names.map((name) => name.trim().toLowerCase()).filter((name) => !endToEnd.has(name)))
}

/** The header lines that upstream must get, without framing, for those that the client sent. */
export function requestLinesExpected(sent: readonly string[], credentialLine: string | undefined): string[] {
  const dropped = nominated(sent)
  const lines: string[] = []
  let swapped = credentialLine === undefined
  for (const line of sent) {
    const name = headerName(line)
    if (credentials.names.includes(name)) {
      if (!swapped && credentialLine !== undefined) lines.push(credentialLine)
      swapped = true
    } else if (
      !dropped.has(name) &&
      ![accountSelectors, hopByHop, forwarding, methodOverrides, requestFraming].some((rule) =>
        rule.names.includes(name),
      ) &&
      !name.startsWith(ownPrefix) &&
      !name.startsWith(forwardedPrefix)
    ) {
      lines.push(lineCompared(line))
    }
  }
  return lines
}

/** The header lines that upstream got, without hop-by-hop lines, which are checked separately. */
export const requestLinesCompared = (received: readonly string[]): string[] =>
  received
    .filter((line) => ![...requestFraming.names, 'connection'].includes(headerName(line)))
    .map(lineCompared)

export type ReplyKind = { hasTrailers: boolean }

/** The header lines that a client must get for those that upstream sent. */
export function replyLinesExpected(sent: readonly string[], kind: ReplyKind): string[] {
  const dropped = nominated(sent)
  const kept = sent.filter((line) => {
    const name = headerName(line)
    if (replyFraming.names.includes(name) || dropped.has(name) || name.startsWith(ownPrefix)) return false
    // Without a chunked body no trailers follow, so they must not be declared.
    return name !== 'trailer' || kind.hasTrailers
  })
  return kept.map(lineCompared)
}

/** The header lines that the client got, without framing and the lines that the gateway adds. */
export function replyLinesCompared(received: readonly string[]): string[] {
  const compared = received.filter((line) => {
    const name = headerName(line)
    if (replyFraming.names.includes(name) || name.startsWith(ownPrefix)) return false
    return name !== 'trailer' || !announcesOnlyOurs(line)
  })
  return compared.map(lineCompared)
}

export const trailerLinesCompared = (received: readonly string[]): string[] =>
  received.filter((line) => !headerName(line).startsWith(ownPrefix)).map(lineCompared)

/** Whitespace around a value is framing, not part of the value. */
export function lineCompared(line: string): string {
  const at = line.indexOf(':')
  return `${line.slice(0, at)}: ${line.slice(at + 1).replace(/^[ \t]+|[ \t]+$/g, '')}`
}

/** The version belongs to the hop; code and reason phrase are upstream's, exactly. */
export const statusCompared = (statusLine: string): string => statusLine.replace(/^HTTP\/1\.[01]/, 'HTTP/1.x')

function announcesOnlyOurs(line: string): boolean {
  return headerValues([line], 'trailer').every((value) =>
    value.split(',').every((name) => name.trim().toLowerCase().startsWith(ownPrefix)),
  )
}
