#!/usr/bin/env node
import { adminKey } from './admin-key.ts'
import { HELP, VERSION } from './help.ts'
import { serve } from './serve.ts'

/** Exit codes that scripts can use: 0 done, 1 failed, 2 the command line or the configuration is wrong. */
const [command = 'serve', ...args] = process.argv.slice(2)

switch (command) {
  case 'serve':
    await serve(args)
    break
  case 'admin-key':
    await adminKey(args)
    break
  case 'help':
  case '--help':
  case '-h':
    process.stdout.write(HELP)
    break
  case 'version':
  case '--version':
  case '-v':
    process.stdout.write(`tollgate ${VERSION}\n`)
    break
  default:
    process.stderr.write(`tollgate: there is no command "${command}". See tollgate --help.\n`)
    process.exitCode = 2
}
