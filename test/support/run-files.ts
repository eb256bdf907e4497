import { registerHooks } from 'node:module'
import { relative } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { runFile } from './suite.ts'

/** The program of a test process: runs the files of TEST_FILES, one after the other. */
const root = fileURLToPath(new URL('../../', import.meta.url))
const files = JSON.parse(process.env['TEST_FILES'] ?? '[]') as string[]
const urls = new Set(files.map((file) => pathToFileURL(file).href))

// The test files import node:test, and get the one whose hooks stay in the suite of their file.
registerHooks({
  resolve(specifier, context, next) {
    const isTest = specifier === 'node:test' && urls.has(context.parentURL ?? '')
    return isTest ? next(new URL('suite.ts', import.meta.url).href, context) : next(specifier, context)
  },
})
for (const file of files) await runFile(relative(root, file), pathToFileURL(file).href)
