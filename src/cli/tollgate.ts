#!/usr/bin/env node
import '../kernel/check-node.ts'
import { lstatSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

// This file must load on any Node.js for the check to run: it imports no package, nothing else of ours, and no name that an
// old version does not export. The compile cache halves the time to start. The store's threads learn of it from the
// environment.
const directory = cacheDirectory()
if (directory !== undefined) Object.assign(process.env, { NODE_COMPILE_CACHE: directory })
const { runCommandLine } = await import('./program.ts')
await runCommandLine(process.argv.slice(2))

/**
 * Cached code is run as it is found, so the cache must be writable by this user alone. Node's default is a folder in the
 * system's temporary directory, which belongs to the user that came first. NODE_COMPILE_CACHE names another.
 */
function cacheDirectory(): string | undefined {
  const chosen = nodeModule.getCompileCacheDir()
  if (chosen !== undefined) return chosen
  try {
    const cache = join(homedir(), '.cache')
    const own = join(cache, 'tollgate')
    if (!isAbsolute(cache) || !isPrivate(cache) || !isPrivate(own)) return undefined
    return nodeModule.enableCompileCache(own).directory
  } catch {
    // The user has no home, or one in which no directory can be created.
    return undefined
  }
}

/** Creates the directory if it is missing, but not its parents. */
function isPrivate(directory: string): boolean {
  try {
    mkdirSync(directory, 0o700)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const { uid, mode } = lstatSync(directory)
  const isDirectory = (mode & 0o170_000) === 0o040_000
  return isDirectory && (mode & 0o022) === 0 && (process.getuid === undefined || uid === process.getuid())
}
