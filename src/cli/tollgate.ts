#!/usr/bin/env node
import { lstatSync, mkdirSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

// Source is stripped of its types and compiled once, not at every start: that halves the time until it serves. For
// the same reason each command loads only what it needs. The store's threads learn of it from the environment alone.
// Where nothing can be kept, it takes longer.
const directory = keepCompiled()
if (directory !== undefined) Object.assign(process.env, { NODE_COMPILE_CACHE: directory })

/**
 * What is kept is run as it lies there, so it lies where nobody but this user can write, or nowhere. Node's own choice
 * is a folder in the system's temporary one, which belongs to whoever came first. NODE_COMPILE_CACHE names another.
 */
function keepCompiled(): string | undefined {
  const chosen = getCompileCacheDir()
  if (chosen !== undefined) return chosen
  try {
    const cache = join(homedir(), '.cache')
    const own = join(cache, 'tollgate')
    if (!isAbsolute(cache) || !isOurs(cache) || !isOurs(own)) return undefined
    return enableCompileCache(own).directory
  } catch {
    // A user without a home, or one in which nothing can be made.
    return undefined
  }
}

/** Made if it is not there; a home that is not there is not. */
function isOurs(directory: string): boolean {
  try {
    mkdirSync(directory, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const { uid, mode } = lstatSync(directory)
  const isDirectory = (mode & 0o170_000) === 0o040_000
  return isDirectory && (mode & 0o022) === 0 && (process.getuid === undefined || uid === process.getuid())
}

/** What a mistyped one may have been. */
const COMMANDS = [
  ...['serve', 'admin-key', 'keys', 'usage', 'requests', 'credits', 'prices', 'audit', 'rerate'],
  ...['migrate-store', 'doctor', 'help', 'version', '--help', '--version'],
]

/** Exit codes that scripts can use: 0 done, 1 failed, 2 the command line or the configuration is wrong. */
const [command = 'serve', ...args] = process.argv.slice(2)

switch (command) {
  case 'serve': {
    const { serve } = await import('./serve.ts')
    await serve(args)
    break
  }
  case 'admin-key': {
    const { adminKey } = await import('./admin-key.ts')
    await adminKey(args)
    break
  }
  case 'keys': {
    const { keys } = await import('./keys.ts')
    await keys(args)
    break
  }
  case 'usage': {
    const { usage } = await import('./usage.ts')
    await usage(args)
    break
  }
  case 'requests': {
    const { requests } = await import('./requests.ts')
    await requests(args)
    break
  }
  case 'credits': {
    const { credits } = await import('./credits.ts')
    await credits(args)
    break
  }
  case 'prices': {
    const { prices } = await import('./prices.ts')
    await prices(args)
    break
  }
  case 'audit': {
    const { audit } = await import('./audit.ts')
    const { createRateAgain } = await import('./rate-again.ts')
    await audit(args, createRateAgain())
    break
  }
  case 'rerate': {
    const { rerate } = await import('./rerate.ts')
    const { currentPrices } = await import('./rate-again.ts')
    await rerate(args, currentPrices)
    break
  }
  case 'migrate-store': {
    const { migrateStore } = await import('./migrate-store.ts')
    const { createRateAgain } = await import('./rate-again.ts')
    await migrateStore(args, createRateAgain())
    break
  }
  case 'doctor': {
    const { doctor } = await import('./doctor.ts')
    await doctor(args)
    break
  }
  case 'help':
  case '--help':
  case '-h': {
    const { HELP } = await import('./help.ts')
    process.stdout.write(HELP)
    break
  }
  case 'version':
  case '--version':
  case '-v': {
    const { VERSION } = await import('../kernel/version.ts')
    process.stdout.write(`tollgate ${VERSION}\n`)
    break
  }
  default: {
    const { didYouMean } = await import('./did-you-mean.ts')
    const meant = didYouMean(command, COMMANDS)
    process.stderr.write(`tollgate: there is no command "${command}".${meant} See tollgate --help.\n`)
    process.exitCode = 2
  }
}
