/**
 * Readers for a file of settings. They are few and plain, and are needed before anything else of the program is: the
 * library that checks the bodies of requests takes a tenth of a second to load.
 */

/** Tells a problem, with the setting's full name. */
export type Tell = (name: string, problem: string) => void

/** The setting, or undefined after telling what is wrong with it. */
export type SettingReader<T> = (given: unknown, name: string, tell: Tell) => T | undefined

export type SettingsOf<Readers> = {
  readonly [Name in keyof Readers]?: Readers[Name] extends SettingReader<infer T> ? T | undefined : never
}

/** Settings by name. A name that is not known is refused: a typo must not weaken a limit. */
export function section<Readers extends Readonly<Record<string, SettingReader<unknown>>>>(
  readers: Readers,
): SettingReader<SettingsOf<Readers>> {
  return (given, name, tell) => {
    if (!isObject(given)) return refuseKind('an object', given, name, tell)
    const settings: Record<string, unknown> = {}
    for (const [key, reader] of Object.entries(readers)) {
      if (Object.hasOwn(given, key)) settings[key] = reader(given[key], within(name, key), tell)
    }
    for (const key of Object.keys(given)) {
      if (Object.hasOwn(readers, key)) continue
      // A short name is near to nearly any other name.
      const near = nearestName(key, Object.keys(readers), Math.min(3, Math.floor(key.length / 3)))
      const hint = near === null ? '' : ` (did you mean "${within(name, near)}"?)`
      tell(within(name, key), `is not a setting${hint}`)
    }
    return settings as SettingsOf<Readers>
  }
}

/** Any names, with settings of one kind. */
export function settingsByName<T>(reader: SettingReader<T>): SettingReader<Readonly<Record<string, T>>> {
  return (given, name, tell) => {
    if (!isObject(given)) return refuseKind('an object', given, name, tell)
    const settings: [string, T][] = []
    for (const [key, value] of Object.entries(given)) {
      if (key === '') {
        tell(`${name}.`, 'must have a name')
        continue
      }
      const setting = reader(value, within(name, key), tell)
      if (setting !== undefined) settings.push([key, setting])
    }
    return Object.fromEntries(settings)
  }
}

/** Several settings of one kind, in their order. */
export function listOf<T>(reader: SettingReader<T>): SettingReader<readonly T[]> {
  return (given, name, tell) => {
    if (!Array.isArray(given)) return refuseKind('a list', given, name, tell)
    const settings = given.map((each: unknown, i) => reader(each, `${name}[${i}]`, tell))
    return settings.filter((setting) => setting !== undefined)
  }
}

/** A limit that null takes away; 0 says the same. */
export function orNone(reader: SettingReader<number>): SettingReader<number> {
  return (given, name, tell) => (given === null ? 0 : reader(given, name, tell))
}

export function oneOf<const Choice extends string>(
  choices: readonly Choice[],
  problem = `must be one of ${choices.map((choice) => `"${choice}"`).join(', ')}`,
): SettingReader<Choice> {
  return (given, name, tell) => {
    const choice = choices.find((each) => each === given)
    if (choice === undefined) tell(name, problem)
    return choice
  }
}

export const yesOrNo: SettingReader<boolean> = (given, name, tell) =>
  typeof given === 'boolean' ? given : refuseKind('true or false', given, name, tell)

export function textLike(pattern: RegExp, problem: string): SettingReader<string> {
  return (given, name, tell) => {
    if (typeof given !== 'string') return refuseKind('a text', given, name, tell)
    if (pattern.test(given)) return given
    tell(name, problem)
    return undefined
  }
}

export function numberFrom(min: number, max: number, kind = 'a number'): SettingReader<number> {
  return (given, name, tell) => {
    if (typeof given === 'number' && given >= min && given <= max) return given
    return refuseKind(`${kind} from ${min} to ${max}`, given, name, tell)
  }
}

export function wholeNumberFrom(min: number, max: number): SettingReader<number> {
  const reader = numberFrom(min, max, 'a whole number')
  return (given, name, tell) => {
    const isBroken = typeof given === 'number' && Number.isFinite(given) && !Number.isInteger(given)
    return isBroken ? refuseKind('a whole number', given, name, tell) : reader(given, name, tell)
  }
}

function within(name: string, key: string): string {
  return name === '' ? key : `${name}.${key}`
}

function isObject(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === 'object' && given !== null && !Array.isArray(given)
}

function refuseKind(expected: string, given: unknown, name: string, tell: Tell): undefined {
  tell(name, `must be ${expected}, not ${kindOf(given)}`)
}

/** A number is shown, anything else only by its kind: it may be long, or a secret in the wrong place. */
function kindOf(given: unknown): string {
  if (given === null || typeof given === 'number') return String(given)
  if (Array.isArray(given)) return 'a list'
  if (typeof given === 'string') return 'a text in quotes'
  return typeof given === 'boolean' ? 'true or false' : 'an object'
}

/** Which of the known names was probably meant; null if none is near. For command lines and settings, which are short. */
export function nearestName(name: string, known: readonly string[], changesMax: number): string | null {
  let nearest: string | null = null
  let least = changesMax
  for (const candidate of known) {
    const changes = changesBetween(name, candidate)
    if (changes > least || (changes === least && nearest !== null)) continue
    nearest = candidate
    least = changes
  }
  return nearest
}

/** Levenshtein's distance, with two characters that changed places as one change. */
function changesBetween(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const substituted = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next[j] = Math.min(substituted, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1)
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        next[j] = Math.min(next[j] ?? 0, (before[j - 2] ?? 0) + 1)
    }
    before = row
    row = next
  }
  return row[b.length] ?? 0
}
