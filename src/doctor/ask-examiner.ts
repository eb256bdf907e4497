import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { DoctorContext } from './check.ts'
import type { DataDirFacts, Observation } from './examiner.ts'

export interface Examination {
  readonly facts: Partial<DataDirFacts>
  /** Why facts are missing: the examiner was late or failed. Null: the examiner has told all there is to tell. */
  readonly cutShort: 'late' | 'failed' | null
}

/** Source runs as .ts, the published package as .js: the examiner's file has the ending of this file. */
const EXAMINER = fileURLToPath(
  new URL(`./examiner${import.meta.url.endsWith('.ts') ? '.ts' : '.js'}`, import.meta.url),
)
const PROGRESS_EVERY_MS = 200

/** Has the data directory examined, and waits for each part no longer than the part's deadline. Never rejects. */
export async function askExaminer(
  dataDir: string,
  books: 'books-here' | 'books-elsewhere',
  { deadlines, progress }: DoctorContext,
): Promise<Examination> {
  // Written to measure fsync, and removed after it. No name twice: a doctor that was killed leaves its file behind.
  const fsyncFile = join(dataDir, `.doctor-${randomUUID()}.tmp`)
  // The examiner needs no environment, and gets none of the secrets in ours.
  const child = fork(EXAMINER, [dataDir, books, fsyncFile], {
    env: {},
    execArgv: [],
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  const facts: Partial<DataDirFacts> = {}
  const { promise, resolve } = Promise.withResolvers<Examination['cutShort']>()
  let timer = setTimeout(resolve, deadlines.checkMs, 'late')
  let stopWatching = () => {}

  child.on('message', (observation) => {
    const [about, told] = observation as Observation
    Object.assign(facts, { [about]: told })
    clearTimeout(timer)
    const integrityIsNext = about === 'database'
    timer = setTimeout(resolve, integrityIsNext ? deadlines.integrityMs : deadlines.checkMs, 'late')
    if (integrityIsNext) stopWatching = watchReading(child, facts.database, progress)
  })
  child.on('error', () => resolve('failed'))
  // Not 'exit': at that moment the examiner's last message may still be on its way.
  child.on('close', (code) => resolve(code === 0 ? null : 'failed'))

  const cutShort = await promise
  clearTimeout(timer)
  stopWatching()
  if (cutShort === 'late') {
    child.kill('SIGKILL')
    // A disk that hangs makes this removal hang too: it is tried, not waited for.
    rm(fsyncFile, { force: true }).catch(() => {})
  }
  return { facts, cutShort }
}

/**
 * SQLite does not tell how far a check has come. But SQLite reads each page twice, once along the trees and once for
 * the rows, and Linux counts the bytes that a process reads.
 */
function watchReading(
  child: ChildProcess,
  database: DataDirFacts['database'] | undefined,
  progress: DoctorContext['progress'],
): () => void {
  if (database?.kind !== 'open') return () => {}
  const totalBytes = 2 * (database.bytes + database.bodiesBytes)
  const startBytes = bytesRead(child)
  const timer = setInterval(() => {
    const nowBytes = bytesRead(child)
    if (startBytes !== null && nowBytes !== null) progress.show(nowBytes - startBytes, totalBytes)
  }, PROGRESS_EVERY_MS)
  return () => {
    clearInterval(timer)
    progress.end()
  }
}

function bytesRead({ pid }: ChildProcess): number | null {
  try {
    const counted = /^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, 'utf8'))?.[1]
    return counted === undefined ? null : Number(counted)
  } catch {
    return null
  }
}
