import { accessSync, constants, readFileSync, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Secret } from '../kernel/secret.ts'
import { createKeyDigest, pepperFingerprint } from '../keys/key-digest.ts'
import type { DirectoryFacts, DiskFacts, PepperFile } from './data-dir-facts.ts'
import { measureFsync } from './measure-fsync.ts'

export function examineDirectory(dataDir: string): DirectoryFacts {
  try {
    const stat = statSync(dataDir)
    if (!stat.isDirectory()) return { kind: 'unusable', reason: 'it is not a folder' }
    return {
      kind: 'there',
      mode: stat.mode & 0o777,
      writable: isWritable(dataDir),
      pepper: examinePepper(join(dataDir, 'pepper')),
      adminKeyMode: modeOf(join(dataDir, 'admin-key')),
    }
  } catch (error) {
    if (!isMissing(error)) return { kind: 'unusable', reason: (error as Error).message }
    const above = nearestAbove(dataDir)
    return { kind: 'missing', above, aboveWritable: isWritable(above) }
  }
}

export function examineDisk(dataDir: string, directory: DirectoryFacts): DiskFacts {
  const isThere = directory.kind === 'there'
  const { bavail, blocks, bsize } = statfsSync(isThere ? dataDir : nearestAbove(dataDir))
  const fsync = isThere && directory.writable ? measureFsync(dataDir) : null
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, fsync }
}

function examinePepper(file: string): PepperFile {
  try {
    const mode = statSync(file).mode & 0o777
    const pepper = new Secret(readFileSync(file, 'utf8').trim())
    return { kind: 'there', mode, fingerprint: pepperFingerprint(createKeyDigest(pepper)) }
  } catch (error) {
    return isMissing(error) ? { kind: 'missing' } : { kind: 'unreadable', reason: (error as Error).message }
  }
}

function modeOf(file: string): number | null {
  try {
    return statSync(file).mode & 0o777
  } catch {
    return null
  }
}

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === 'ENOENT'
}

function nearestAbove(path: string): string {
  let above = dirname(path)
  while (modeOf(above) === null && dirname(above) !== above) above = dirname(above)
  return above
}
