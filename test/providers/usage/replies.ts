import type { Quantities, UsagePart } from '../../../src/kernel/usage.ts'
import type { Metered } from '../../../src/metering/meter.ts'
import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'

export type Json = Readonly<Record<string, unknown>>

export type Outcome = Metered

export const EVENTS = 'text/event-stream; charset=utf-8'
export const JSON_TYPE = 'application/json'

/** Meters these chunks of a reply. Each chunk is overwritten afterwards, as its owner may do. */
export function meterPieces(
  reader: UsageReader,
  contentType: string,
  pieces: readonly Uint8Array[],
  whole = true,
): Outcome {
  const meter = createMeter(reader, contentType)
  for (const piece of pieces) {
    const chunk = Buffer.from(piece)
    meter.write(chunk)
    chunk.fill('"')
  }
  return meter.end(whole)
}

export function meterBody(reader: UsageReader, body: Json | string): Outcome {
  const text = typeof body === 'string' ? body : JSON.stringify(body)
  return meterPieces(reader, JSON_TYPE, [Buffer.from(text)])
}

export function meterStream(reader: UsageReader, stream: string, whole = true): Outcome {
  return meterPieces(reader, EVENTS, [Buffer.from(stream)], whole)
}

/** A stream as each surface writes it: named events if they have a type, else plain data. */
export function streamOf(events: readonly (Json | string)[]): string {
  return events
    .map((event) => {
      if (typeof event === 'string') return `data: ${event}\n\n`
      const type = event['type']
      const name = typeof type === 'string' ? `event: ${type}\n` : ''
      return `${name}data: ${JSON.stringify(event)}\n\n`
    })
    .join('')
}

export function part(quantities: Quantities, promptTokens: number, model: string | null = null): UsagePart {
  return { model, quantities, promptTokens }
}

const UNITS: Readonly<Record<string, keyof Quantities>> = {
  in: 'input_tokens',
  out: 'output_tokens',
  read: 'cache_read_tokens',
  w5m: 'cache_write_5m_tokens',
  w30m: 'cache_write_30m_tokens',
  w1h: 'cache_write_1h_tokens',
  w12h: 'cache_write_12h_tokens',
  imageIn: 'image_input_tokens',
  imageRead: 'image_cache_read_tokens',
  imageOut: 'image_output_tokens',
  webSearches: 'web_searches',
  fileSearches: 'file_searches',
  containers: 'containers',
  code: 'code_executions',
}

/** A part from words such as `in 100 out 40`. Its prompt is all input, with cache reads and writes. */
export function words(text: string, model: string | null = null): UsagePart {
  const pairs = [...text.matchAll(/(\w+) (\d+)/g)].map(
    ([, unit = '', count]) => [unit, Number(count)] as const,
  )
  const isPrompt = (unit: string) => /^(?:in|read|w\d+.|imageIn|imageRead)$/.test(unit)
  const prompt = pairs.filter(([unit]) => isPrompt(unit)).reduce((sum, [, count]) => sum + count, 0)
  return part(Object.fromEntries(pairs.map(([unit, count]) => [UNITS[unit], count])), prompt, model)
}

export function cutEvery(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}
