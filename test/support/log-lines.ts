import type { Log } from '../../src/kernel/log.ts'

/** A log that stores its lines as `level: message`. */
export function createLogLines(): { readonly log: Log; readonly lines: string[] } {
  const lines: string[] = []
  const write = (level: string) => (_details: object, message: string) => {
    lines.push(`${level}: ${message}`)
  }
  const log = { info: write('info'), warn: write('warn'), error: write('error') }
  return { log: log as unknown as Log, lines }
}
