#!/usr/bin/env node
import { lstatSync, mkdirSync } from 'node:fs'
import { enableCompileCache, getCompileCacheDir } from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

// The compile cache has source stripped of its types and compiled once, not at every start: that halves the time until
// the gateway serves. For the same reason each command loads only what it needs. The store's threads learn of the cache
// from the environment alone. Without a directory for the cache, every start takes longer.
const directory = keepCompiled()
if (directory !== undefined) Object.assign(process.env, { NODE_COMPILE_CACHE: directory })

/**
 * Cached code is run as it lies there, so the cache lies where only this user can write, or nowhere. Node's own choice
 * is a folder in the system's temporary one, which belongs to the user that came first. NODE_COMPILE_CACHE names another.
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
    // The user has no home, or a home in which no directory can be made.
    return undefined
  }
}

/** Makes the directory if it is missing; a missing home is not made. */
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

const { runCommandLine } = await import('./commands.ts')
await runCommandLine(process.argv.slice(2))
