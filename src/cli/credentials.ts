import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { fileProblem } from '../kernel/errors.ts'
import { Failure } from './command.ts'

/** What `tollgate login` keeps, per URL of a gateway. */
const credentialSchema = z.object({
  token: z.string(),
  expires_at: z.number().describe('Unix time in milliseconds.'),
  email: z.string().optional(),
})
export type StoredCredential = z.infer<typeof credentialSchema>

const fileSchema = z.record(z.string(), credentialSchema)

function credentialsFile(): string {
  const environment = process.env
  const configured = environment['XDG_CONFIG_HOME'] || join(environment['HOME'] || homedir(), '.config')
  return join(configured, 'tollgate', 'credentials.json')
}

function readAll(): Readonly<Record<string, StoredCredential>> {
  const file = credentialsFile()
  try {
    return fileSchema.parse(JSON.parse(readFileSync(file, 'utf8')))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    const why = error instanceof Error && 'code' in error ? fileProblem(error) : 'it was changed by hand'
    throw new Failure(`${file} cannot be read: ${why}. Delete it and run \`tollgate login\`.`)
  }
}

export function readCredential(url: string): StoredCredential | null {
  return readAll()[url] ?? null
}

/** The URLs at which this terminal is signed in. */
export function signedInUrls(): readonly string[] {
  return Object.keys(readAll())
}

/** Null removes it. Other commands may read meanwhile, so the file is replaced whole. */
export function storeCredential(url: string, credential: StoredCredential | null): void {
  const file = credentialsFile()
  const { [url]: _, ...others } = readAll()
  const all = credential === null ? others : { ...others, [url]: credential }
  const next = `${file}.${process.pid}`
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileSync(next, `${JSON.stringify(all, null, 2)}\n`, { mode: 0o600 })
    renameSync(next, file)
  } catch (error) {
    throw new Failure(`${file} cannot be written: ${fileProblem(error)}.`)
  }
}
