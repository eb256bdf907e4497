import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { runEnds, runFile } from './suite.ts'

/** The program of a test process: runs the files of TEST_FILES, one after the other. */
const root = fileURLToPath(new URL('../../', import.meta.url))
for (const file of JSON.parse(process.env['TEST_FILES'] ?? '[]') as string[])
  await runFile(relative(root, file), pathToFileURL(file).href)
await runEnds()
