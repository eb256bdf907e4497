import { readFileSync } from 'node:fs'

/** package.json stands two folders above the source and three above the published build. */
export const VERSION: string = ((): string => {
  for (const path of ['../../package.json', '../../../package.json']) {
    try {
      const file = readFileSync(new URL(path, import.meta.url), 'utf8')
      return String((JSON.parse(file) as { version: unknown }).version)
    } catch {
      // package.json is at the other path.
    }
  }
  return 'unknown'
})()
