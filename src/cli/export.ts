import { open } from 'node:fs/promises'
import type { Command } from 'commander'
import { readConfig } from '../config.ts'
import { exportLines, whyNotExported } from '../store/export-rows.ts'
import { countCalls } from '../store/operations/audit.ts'
import { examples, Failure } from './command.ts'
import { holdDataDir, openDatabaseSnapshot } from './open-database.ts'
import { createProgress } from './progress.ts'
import { counted, print } from './terminal.ts'

/** Writes all tables to a file, for `tollgate import` into the other kind of store. The gateway must be stopped. */
export function register(command: Command): void {
  command
    .argument('<file>', 'the file to create')
    .addHelpText(
      'after',
      examples(
        'tollgate export tollgate.ndjson',
        'TOLLGATE_DATABASE_URL=postgres://… tollgate import tollgate.ndjson',
      ),
    )
    .action(exportStore)
}

async function exportStore(path: string): Promise<void> {
  const config = readConfig(process.env)
  const snapshot = await openDatabaseSnapshot(config)
  const lock = holdDataDir(config)
  const progress = createProgress('Exporting')
  try {
    const reason = await whyNotExported(snapshot)
    if (reason !== null) throw new Failure(reason)
    const calls = await countCalls(snapshot.ask)
    const file = await open(path, 'wx', 0o600).catch((error: Error) => {
      throw new Failure(`${path} cannot be created: ${error.message}`)
    })
    let rows = 0
    try {
      const lines = exportLines(snapshot, (done) => {
        rows = done
        progress.show(done, Math.max(calls, done))
      })
      for await (const some of lines) if (some.length > 0) await file.write(`${some.join('\n')}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    progress.end()
    await print(
      `Exported ${counted(rows, 'row')} to ${path}. Import it with the same pepper: copy the file "pepper" too.\n`,
    )
  } finally {
    progress.end()
    lock?.release()
    await snapshot.close()
  }
}
