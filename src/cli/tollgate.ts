#!/usr/bin/env node
import { adminKey } from './admin-key.ts'
import { audit } from './audit.ts'
import { HELP, VERSION } from './help.ts'
import { prices } from './prices.ts'
import { createRateAgain, currentPrices } from './rate-again.ts'
import { rerate } from './rerate.ts'
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
  case 'prices':
    await prices(args)
    break
  case 'audit':
    await audit(args, createRateAgain())
    break
  case 'rerate':
    await rerate(args, currentPrices)
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
