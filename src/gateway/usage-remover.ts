import { firstValue, type RawHeaders } from '../http/raw-headers.ts'
import { codingOf } from '../metering/content-coding.ts'
import { UsageCutter } from '../providers/chat-usage/cut-usage-out.ts'
import { RecodedStream, type TakeBytes } from '../providers/chat-usage/recode-stream.ts'
import { isOutdated } from './forwarded-headers.ts'

/** Takes out of a reply what our asking for usage has put in. */
export interface UsageRemover {
  /** A promise means: the next chunk waits for it. `broken` ends the reply as a cut one. */
  write(chunk: Buffer, take: TakeBytes): Promise<'open' | 'broken'> | null
  end(take: TakeBytes): Promise<'whole' | 'broken'>
  /** Upstream was cut; what may still leave, leaves. */
  breakOff(take: TakeBytes): Promise<void>
  destroy(): void
}

/** For a stream of events that usage was asked into; null for every other reply, which passes as it is. */
export function createUsageRemover(status: number, headers: RawHeaders): UsageRemover | null {
  const type = firstValue(headers, 'content-type') ?? ''
  if (status < 200 || status > 299 || !/^\s*text\/event-stream\b/i.test(type)) return null
  const coding = codingOf(firstValue(headers, 'content-encoding'))
  if (coding === 'unknown') return null
  return coding === 'identity' ? plainRemover() : new RecodedStream(coding.coding)
}

/** Upstream's headers without those that speak of bytes we change. */
export function withoutOutdated(headers: RawHeaders): string[] {
  const kept: string[] = []
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? ''
    const value = headers[i + 1] ?? ''
    if (!isOutdated(name.toLowerCase(), value)) kept.push(name, value)
  }
  return kept
}

function plainRemover(): UsageRemover {
  const cutter = new UsageCutter()
  return {
    write(chunk, take) {
      const bytes = cutter.write(chunk)
      const wait = bytes === null ? null : take(bytes)
      return wait === null ? null : wait.then(() => 'open' as const)
    },
    async end(take) {
      const rest = cutter.end()
      if (rest !== null) await take(rest)
      return 'whole'
    },
    async breakOff(take) {
      const rest = cutter.end()
      if (rest !== null) await take(rest)
    },
    destroy() {},
  }
}
