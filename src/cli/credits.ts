import { creditsAdd } from './credits-add.ts'
import { creditsBack } from './credits-back.ts'
import { runGroup } from './run-command.ts'

const HELP = `Usage
  tollgate credits add <amount> --reason <text>         add prepaid credit to the account
  tollgate credits back <request-id> … --reason <text>  give back what calls cost, each once

Each has options of its own: tollgate credits add --help, tollgate credits back --help.
`

/** Moves money on the account, over HTTP or on the data directory. */
export async function credits(args: readonly string[]): Promise<void> {
  await runGroup('credits', HELP, [creditsAdd, creditsBack], args)
}
