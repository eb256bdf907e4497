import type { SourceFile } from './source-tree.ts'

/** What a reader of `src` has to hold in the head. Indentation tells where things end, because Biome formats the source. */
export interface Measured {
  readonly size: number
  readonly name: string
  readonly path: string
}

const MODIFIERS = '(?:(?:readonly|private|protected|public|static|declare|override|accessor) )*'
const FIELD = new RegExp(`^  ${MODIFIERS}#?\\w+[!?]?(?:: |: *$| = |$)`)
const CLASS = /^(?:export )?(?:abstract )?class (\w+)/
const FUNCTION =
  /^(?:export )?(?:default )?(?:async )?function\*? (\w+)|^(?:export )?const (\w+)\b.*=>\s*\{\s*$/
const METHOD = /^ {2}(?:static |async |override |protected |private |get |set |\*)*(#?\w+)\(.*\{$/
/** Functions in tables, such as the handlers of routes. */
const MEMBER = /^ {2,}(?:async )?(\w+)\(.*\{$|^ {2,}(\w+): (?:async )?\(.*=> \{$/

export function fieldsOfClasses(files: readonly SourceFile[]): Measured[] {
  return files.flatMap(({ path, text }) => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const name = CLASS.exec(line)?.[1]
      if (name === undefined) return []
      const body = lines.slice(at + 1, lines.indexOf('}', at))
      return { path, name, size: body.filter((each) => FIELD.test(each)).length }
    })
  })
}

export function linesOfFunctions(files: readonly SourceFile[]): Measured[] {
  return files.flatMap(({ path, text }) => {
    const lines = text.split('\n')
    return lines.flatMap((line, at) => {
      const found = FUNCTION.exec(line) ?? METHOD.exec(line) ?? MEMBER.exec(line)
      const name = found?.[1] ?? found?.[2]
      if (name === undefined || /^(?:if|for|while|switch|catch)$/.test(name)) return []
      const indent = /^ */.exec(line)?.[0] ?? ''
      const size = lines.slice(at).findIndex((each, i) => i > 0 && each.startsWith(`${indent}}`)) + 1
      return { path, name, size }
    })
  })
}

const EXPORT = /^export (?:async )?(?:function\*?|const|class) (\w+)/gm
const TYPE = /^(?:export )?(?:interface|type|class) (\w+)/gm

/** Every command exports `register`. */
export function namesExportedTwice(files: readonly SourceFile[]): Measured[] {
  return repeated(files, EXPORT).filter(({ name }) => name !== 'register')
}

export function typesDeclaredTwice(files: readonly SourceFile[]): Measured[] {
  return repeated(files, TYPE)
}

/** A function with several signatures is one. */
function repeated(files: readonly SourceFile[], pattern: RegExp): Measured[] {
  const places = new Map<string, string[]>()
  for (const { path, text } of files) {
    for (const name of new Set(Array.from(text.matchAll(pattern), ([, found = '']) => found)))
      places.set(name, [...(places.get(name) ?? []), path])
  }
  return Array.from(places, ([name, paths]) => ({ name, size: paths.length, path: paths.join(' ') })).filter(
    ({ size }) => size > 1,
  )
}

const PROVIDER_WORD =
  /(?:===|!==|case|startsWith\(|endsWith\(|includes\(|test\() *['"`](?:\/v1\/(?!keys|usage)|(?:gpt|claude|o\d)-|messages'|chat')/

/** Tests of a provider's paths, models or surface, which belong in `providers`. */
export function testsOfProviderWords(files: readonly SourceFile[]): Measured[] {
  return files.flatMap(({ path, text }) => {
    const size = text.split('\n').filter((line) => PROVIDER_WORD.test(line)).length
    return path.startsWith('src/providers/') || size === 0 ? [] : { path, name: 'in', size }
  })
}

const IDIOMS = /\.\.\.\{|Readonly<typeof N/

/** `...{ a, b }` only packs lines; `Readonly<typeof NOTHING>` hides a type that an interface would state. */
export function hiddenShapes(files: readonly SourceFile[]): Measured[] {
  return files.flatMap(({ path, text }) => {
    const size = text.split('\n').filter((line) => IDIOMS.test(line)).length
    return size === 0 ? [] : { path, name: 'in', size }
  })
}
