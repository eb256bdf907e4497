import type { Observation } from './data-dir-facts.ts'
import { examineDatabase, examineIntegrity } from './examine-database.ts'
import { examineDirectory, examineDisk } from './examine-directory.ts'

/**
 * The process that touches the data directory. A disk that does not answer, or a database of many gigabytes, blocks
 * whoever asks, and a thread in such a call cannot be ended; a process can be killed, and the report still comes.
 */

const [dataDir = '', books = 'books-here'] = process.argv.slice(2)

const directory = examineDirectory(dataDir)
await tell(['directory', directory])
if (directory.kind !== 'unusable') await tell(['disk', examineDisk(dataDir, directory)])
if (directory.kind === 'there' && books === 'books-here') {
  const database = examineDatabase(dataDir)
  await tell(['database', database])
  if (database.kind === 'open') await tell(['integrity', examineIntegrity(dataDir)])
}
process.disconnect()

/** Resolves when it was sent: what follows may block this process for good. */
function tell(observation: Observation): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send?.(observation, undefined, {}, (error) => (error === null ? resolve() : reject(error)))
  })
}
