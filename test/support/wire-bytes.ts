import { Buffer } from 'node:buffer'
import type { Bytes } from './wire-message.ts'
import { toBuffer } from './wire-message.ts'

/** A message of exactly these lines. */
export function message(startLine: string, headerLines: readonly string[], body: Bytes = ''): Buffer {
  const head = [startLine, ...headerLines, '', ''].join('\r\n')
  return Buffer.concat([Buffer.from(head, 'latin1'), toBuffer(body)])
}

/** A message whose last header line is its length. */
export function sized(startLine: string, headerLines: readonly string[], body: Bytes): Buffer {
  const bytes = toBuffer(body)
  return message(startLine, [...headerLines, `Content-Length: ${bytes.length}`], bytes)
}

export function chunked(
  startLine: string,
  headerLines: readonly string[],
  chunks: readonly Bytes[],
  trailerLines: readonly string[] = [],
): Buffer {
  const lines = [...headerLines, 'Transfer-Encoding: chunked']
  return message(startLine, lines, Buffer.concat([...chunks.map(chunk), lastChunk(trailerLines)]))
}

export function chunk(bytes: Bytes): Buffer {
  const content = toBuffer(bytes)
  return Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from('\r\n')])
}

export const lastChunk = (trailerLines: readonly string[] = []): Buffer =>
  Buffer.from(['0', ...trailerLines, '', ''].join('\r\n'), 'latin1')

/** Incompressible bytes, with no two similar offsets. */
export function noise(size: number, seed = 1): Buffer {
  const bytes = Buffer.allocUnsafe(size)
  let state = seed >>> 0 || 1
  for (let at = 0; at < size; at++) {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    bytes[at] = state & 0xff
  }
  return bytes
}
