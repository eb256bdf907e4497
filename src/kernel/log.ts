import { writeSync } from 'node:fs'
import { destination, type Logger, pino } from 'pino'
import type { LogLevel } from './log-levels.ts'

/** Buffer for a slow reader of the log. If it is full, lines are dropped. */
const LOG_BUFFER_BYTES_MAX = 8 * 1024 ** 2

export type Log = Pick<Logger, 'fatal' | 'error' | 'warn' | 'info' | 'debug' | 'trace'>

/** If the buffer is full, lines are dropped: no request waits for the log. Log names and ids, never headers or bodies. */
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

/** Writes synchronously at process exit. Text is lost if the reader is too slow. */
export function writeLast(fd: 1 | 2, text: string): void {
  try {
    for (let rest = Buffer.from(text); rest.length > 0; ) rest = rest.subarray(writeSync(fd, rest))
  } catch {
    // The reader is gone or does not read. Exit anyway.
  }
}
