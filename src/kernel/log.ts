import { writeSync } from 'node:fs'
import { destination, type Logger, pino } from 'pino'
import type { LogLevel } from './vocabulary.ts'

/** Log lines that wait for a slow log reader, in bytes. Beyond it lines are dropped, never requests. */
const LOG_BUFFER_BYTES_MAX = 8 * 1024 ** 2

export type Log = Pick<Logger, 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'>

/**
 * JSON lines on standard error. Writes are buffered and asynchronous; when the reader is slow, lines beyond the
 * buffer are dropped. The ledger is the record of what happened, a log line is not, so no request waits for one.
 * Callers log names and ids, never headers or bodies: there is no redaction list to forget something on.
 */
export function createLog(level: LogLevel, stream: LogStream = droppingStream(2)): Log {
  return pino({ level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` }, stream)
}

export type LogStream = ReturnType<typeof droppingStream>

/** Writes to a file descriptor without blocking: if the reader is too slow, lines are dropped. */
export function droppingStream(fd: 1 | 2) {
  const stream = destination({ dest: fd, sync: false, minLength: 0, maxLength: LOG_BUFFER_BYTES_MAX })
  // A reader that went away (EPIPE) or a full disk must not become an uncaught exception.
  stream.on('error', () => {})
  return stream
}

/** For the end of the process, when no event loop runs any more. Text that the reader is too slow for is lost. */
export function writeLast(fd: 1 | 2, text: string): void {
  try {
    for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(fd, rest))
  } catch {
    // The reader is gone or does not read, and the process must end.
  }
}
