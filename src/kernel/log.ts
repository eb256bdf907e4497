import { destination, type Logger, pino } from 'pino'
import { limits } from './limits.ts'

export type Log = Logger

export const LOG_LEVELS = ['silent', 'fatal', 'error', 'warn', 'info', 'debug', 'trace'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/**
 * JSON lines on standard error. Writes are buffered and asynchronous; when the reader is slow, lines beyond the
 * buffer are dropped. The ledger is the record of what happened, a log line is not, so no request waits for one.
 * Callers log names and ids, never headers or bodies: there is no redaction list to forget something on.
 */
export function createLog(level: LogLevel): Log {
  const stream = destination({ dest: 2, sync: false, minLength: 0, maxLength: limits.logBufferBytesMax })
  // A reader that went away (EPIPE) or a full disk must not become an uncaught exception.
  stream.on('error', () => {})
  return pino({ level, base: null, timestamp: () => `,"time":"${new Date().toISOString()}"` }, stream)
}
