import type { Quantities, UsagePart } from '../../../src/kernel/usage.ts'
import type { Metered } from '../../../src/metering/meter.ts'
import type { UsageReader } from '../../../src/providers/endpoint.ts'
import { createMeter } from '../../../src/providers/surfaces.ts'

export type Json = Readonly<Record<string, unknown>>

/** The outcome of a meter, as plain data that can be compared. */
export type Outcome = Metered

export const EVENTS = 'text/event-stream; charset=utf-8'
export const JSON_TYPE = 'application/json'

/** Meters these pieces of a reply. Each piece is overwritten once it was seen, as its owner may do. */
export function meterPieces(
  reader: UsageReader,
  contentType: string,
  pieces: readonly Uint8Array[],
  whole = true,
): Outcome {
  const meter = createMeter(reader, { status: 200, contentType })
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

/** A stream as each surface writes it: named events where they have a type, plain data where they have none. */
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

export function cutEvery(bytes: Buffer, size: number): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += size) pieces.push(bytes.subarray(at, at + size))
  return pieces
}
