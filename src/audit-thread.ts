import { parentPort, workerData } from 'node:worker_threads'
import { runAudit } from './ledger/audit.ts'
import type { AuditMessage, BooksToAudit } from './ledger/audit-runs.ts'
import { createRateAgain } from './pricing/rate-again.ts'

/** A thread that audits the books once: it reads as `tollgate audit` does, and no call waits for it. */

const port = parentPort
if (port === null) throw new Error('audit-thread.ts runs as a worker thread only')

const TOLD_EVERY_MS = 500

const { file, databaseUrl } = workerData as BooksToAudit
const tell = (message: AuditMessage) => port.postMessage(message)

async function openBooks() {
  if (databaseUrl === null) return await (await import('./store/sqlite/ledger-file.ts')).openBooks(file)
  return await (await import('./store/postgres/ledger-snapshot.ts')).openBooks(databaseUrl)
}

const books = await openBooks()
if (books === null) throw new Error('there are no books to audit')
let toldMs = -Infinity
const report = await runAudit(books, createRateAgain(), (done, total) => {
  if (performance.now() - toldMs < TOLD_EVERY_MS) return
  toldMs = performance.now()
  tell({ kind: 'progress', done, total })
})
await books.close()
tell({ kind: 'report', report })
