import { keysCreate } from './keys-create.ts'
import { keysList } from './keys-list.ts'
import { keysRevoke } from './keys-revoke.ts'
import { keysRotate } from './keys-rotate.ts'
import { keysShow } from './keys-show.ts'
import { keysUpdate } from './keys-update.ts'
import { runGroup } from './run-command.ts'

const HELP = `Usage
  tollgate keys create --name <name>    create an API key and print it, once
  tollgate keys list                    list the keys, newest first, with what they spent this month
  tollgate keys show <key>              all there is to know of one
  tollgate keys update <key>            change its name or its limits
  tollgate keys revoke <key>            end it, at once and for good
  tollgate keys rotate <key>            create a key in its place, with the same limits

A <key> is named by its id, its name, its beginning or its last four characters.
Each has options of its own: tollgate keys create --help, and so on.
`

/** Manages API keys, over HTTP or on the data directory. */
export async function keys(args: readonly string[]): Promise<void> {
  const commands = [keysCreate, keysList, keysShow, keysUpdate, keysRevoke, keysRotate]
  await runGroup('keys', HELP, commands, args)
}
