#!/usr/bin/env node
import '../kernel/check-node.ts'
import { lstatSync, mkdirSync } from 'node:fs'
import nodeModule from 'node:module'
import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

// This file must load on any Node.js version, so that check-node.ts can run: all other imports are names of built-in
// modules that old versions have. The compile cache halves the startup time. The database threads read the path of the
// cache from the environment.
const directory = cacheDirectory()
if (directory !== undefined) Object.assign(process.env, { NODE_COMPILE_CACHE: directory })
const { runCommandLine } = await import('./program.ts')
await runCommandLine(process.argv.slice(2))

/** Cached code is executed, so no other user may write it: the system's temporary directory is not safe. */
function cacheDirectory(): string | undefined {
  const chosen = nodeModule.getCompileCacheDir()
  if (chosen !== undefined) return chosen
  try {
    const cache = join(homedir(), '.cache')
    const own = join(cache, 'tollgate')
    if (!isAbsolute(cache) || !isPrivate(cache) || !isPrivate(own)) return undefined
    return nodeModule.enableCompileCache(own).directory
  } catch {
    // No home directory, or not writable.
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
